"""Pictures of a house in text and HTML."""
