"""The shop as a web site: the native environment's pages over HTTP, for people and for agents with a browser."""
