"""What a customer wants, and what a purchase is worth."""
