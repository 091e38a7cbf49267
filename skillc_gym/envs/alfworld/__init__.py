"""ALFWorld, natively: household tasks in text with upstream's answers."""
