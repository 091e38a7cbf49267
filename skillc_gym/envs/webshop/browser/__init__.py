"""The shop in a real browser: the same episodes as the text environment's, read off the pages of the site."""
