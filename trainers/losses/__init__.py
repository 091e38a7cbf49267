"""Losses: small objects with named inputs."""
