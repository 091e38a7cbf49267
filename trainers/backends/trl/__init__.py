"""Training with TRL; nothing else in the project imports it."""
