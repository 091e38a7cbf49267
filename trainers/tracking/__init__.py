"""What a run leaves behind, and what a person sees while it runs."""
