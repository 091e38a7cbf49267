"""Curricula: which tasks and which condition an agent meets next."""
