"""Pages of the shop and the way between them."""
