"""The coin collector: find the coin in a maze of rooms, and take it."""
