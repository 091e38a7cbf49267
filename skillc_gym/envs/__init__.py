"""The environments, one folder each, and what they have in common."""
