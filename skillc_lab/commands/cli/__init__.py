"""The command line ``skillc``: one module per command, one grammar, one way to say that something is wrong."""
