"""The shop as a web site: the native environment's pages over HTTP, for people and for agents with a browser."""

from skillc_gym.envs.webshop.site.access import AGENT, PERSON
from skillc_gym.envs.webshop.site.server import ThreadedSite, address_of_socket, bound_socket, open_site, serve

__all__ = ["AGENT", "PERSON", "ThreadedSite", "address_of_socket", "bound_socket", "open_site", "serve"]
