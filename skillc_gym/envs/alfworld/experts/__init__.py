"""Players that need no learning."""
