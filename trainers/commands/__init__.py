"""The command line ``skillc``."""
