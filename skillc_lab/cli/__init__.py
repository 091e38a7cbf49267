"""The command line: how words become a command's options, how a command runs, and how ``skillc`` finds it."""
