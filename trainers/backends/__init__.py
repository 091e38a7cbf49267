"""Who owns the optimiser: one folder per training library."""
