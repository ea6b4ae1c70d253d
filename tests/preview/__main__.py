"""`python -m tests.preview`: 1,000 random clusters, what the preview says against what happens."""

import argparse
import sys

from tests.preview import check


def main():
    """Check cases, print what differs, and fail where the preview is not right often enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    summary = check.run(chosen.first, chosen.count, chosen.processes, tell)
    tell(str(summary))
    sys.exit(0 if summary.passes else 1)


def tell(line):
    """Print a line at once, also into a file."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
