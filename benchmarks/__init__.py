"""Measurements, comparisons with upstream and their records; not installed with the package."""
