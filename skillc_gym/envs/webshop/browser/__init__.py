"""The shop in a real browser: the same episodes as the text environment's, read off the pages of the site."""

from skillc_gym.envs.webshop.browser.env import WebShopBrowserEnv
from skillc_gym.envs.webshop.browser.launch import BrowserSettings
from skillc_gym.envs.webshop.browser.transports import TRANSPORTS

__all__ = ["TRANSPORTS", "BrowserSettings", "WebShopBrowserEnv"]
