"""Products: read, generated, stored."""
