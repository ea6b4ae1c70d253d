"""`python -m cli`: the same as `koord`."""

import sys

from cli import main

if __name__ == "__main__":
    sys.exit(main.main())
