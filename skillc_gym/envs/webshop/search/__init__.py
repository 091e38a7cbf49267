"""Full-text search as Lucene does it."""
