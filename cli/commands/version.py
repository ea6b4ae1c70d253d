"""Which release of Koord this is."""

import argparse
import importlib.metadata
import platform

from cli import clusters
from cli.output import terminal
from process.runtime import entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord version`."""
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    body = {
        "version": importlib.metadata.version("koord"),
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    if chosen.output == "json":
        terminal.document(body)
    else:
        terminal.say(f"koord {body['version']} (Python {body['python']}, {body['platform']})")
    return entry.OK
