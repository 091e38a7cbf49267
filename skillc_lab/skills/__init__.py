"""Making skill libraries from transcripts, and looking at those that exist."""
