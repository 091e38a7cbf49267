"""Fuzzers of everything that reads what strangers wrote; :data:`~benchmarks.fuzz.target.NAMES` says where each is."""
