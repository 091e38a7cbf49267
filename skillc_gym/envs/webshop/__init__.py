"""WebShop: a shop of products, goals to buy for, and the pages between them."""
