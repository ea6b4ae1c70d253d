"""The arguments that name a Prometheus, alike in every command that asks one."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

from cli.prometheus import client


def add_arguments(parser: argparse.ArgumentParser, help_text: str, among: Any = None) -> None:
    """Declare them; `among` is a group of arguments that exclude the address."""
    (among or parser).add_argument("--prometheus", default="", metavar="URL", help=help_text)
    parser.add_argument(
        "--prometheus-token", type=Path, metavar="FILE", help="file with a bearer token for it"
    )
    parser.add_argument(
        "--prometheus-ca", type=Path, metavar="FILE", help="certificates to trust it by"
    )


def opened(
    chosen: argparse.Namespace,
) -> contextlib.AbstractAsyncContextManager[client.Prometheus]:
    """Return the Prometheus that was named, ready to be entered."""
    return client.opened(chosen.prometheus, chosen.prometheus_token, chosen.prometheus_ca)
