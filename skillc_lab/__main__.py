"""``python -m skillc_lab``: the same as ``skillc``, for launchers that want a module."""

import sys

from skillc_lab.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
