"""`-w`: a command that shows something shows it again and again, as `kubectl get -w` does."""

import argparse
import asyncio
from collections.abc import Callable
from typing import Final

from process.runtime import clock as clocks
from process.runtime import entry

SECONDS: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that asks for it."""
    parser.add_argument("-w", "--watch", action="store_true", help="again every two seconds")


def run(
    chosen: argparse.Namespace,
    once: Callable[[argparse.Namespace], int],
    clock: clocks.Clock | None = None,
) -> int:
    """Run a command once, or until it fails or a person ends it; return its exit code."""
    clock = clock or clocks.SystemClock()
    try:
        while True:
            code = once(chosen)
            if code != entry.OK or not chosen.watch:
                return code
            asyncio.run(clock.sleep(SECONDS))
    except KeyboardInterrupt:
        if not chosen.watch:
            raise
        return entry.OK
