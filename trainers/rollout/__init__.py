"""Playing groups of episodes and turning them into rows of tokens."""
