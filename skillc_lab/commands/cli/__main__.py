"""``python -m skillc_lab.commands.cli``: the same as ``skillc``, for launchers that want a module."""

import sys

from skillc_lab.commands.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
