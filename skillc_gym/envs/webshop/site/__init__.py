"""The shop as a web site: the native environment's pages over HTTP, for people and for agents with a browser."""

from skillc_gym.envs.webshop.site.server import address_of_socket, bound_socket, open_site, serve

__all__ = ["address_of_socket", "bound_socket", "open_site", "serve"]
