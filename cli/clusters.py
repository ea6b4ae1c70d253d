"""Which cluster a command talks to."""

import argparse
from pathlib import Path

DEV_KUBECONFIG = Path(".dev") / "kubeconfig"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name a cluster."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        help=f"kubeconfig file; {DEV_KUBECONFIG} while `koord dev` runs here, else the usual one",
    )
    parser.add_argument("--context", help="context in the kubeconfig")


def kubeconfig(chosen: argparse.Namespace) -> Path | None:
    """Return the file to use, None for the usual places."""
    named: Path | None = chosen.kubeconfig
    if named is None and chosen.context is None and DEV_KUBECONFIG.exists():
        return DEV_KUBECONFIG
    return named
