"""Which cluster a command talks to, and where the product is installed in it."""

import argparse
import os
from pathlib import Path
from typing import Final

from api import names
from cli import endpoints
from cli.output import terminal
from kube.client import access as accesses
from kube.client import connect as connections

DEV_KUBECONFIG: Final = Path(".dev") / "kubeconfig"
FORMATS: Final = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name a cluster."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        help="kubeconfig file; without it $KUBECONFIG, then the pod this runs in, then "
        f"{DEV_KUBECONFIG} of a `koord dev` in this folder, then ~/.kube/config",
    )
    parser.add_argument("--context", help="context in the kubeconfig")


def add_installation(parser: argparse.ArgumentParser, *, alias: bool = True) -> None:
    """Declare the namespace of the installation, which is called alike in every command.

    Without `alias`, the older name ``--namespace`` is left to the command.
    """
    parser.add_argument(
        "--koord-namespace",
        default=names.NAMESPACE,
        metavar="NAMESPACE",
        help="namespace of the installation (default %(default)s)",
    )
    if alias:
        parser.add_argument(
            "--namespace", dest="koord_namespace", action=_Renamed, help=argparse.SUPPRESS
        )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare the format of the output."""
    parser.add_argument(
        "-o", "--output", choices=FORMATS, default=FORMATS[0], type=_format,
        help="for people or for programs (default %(default)s)",
    )  # fmt: skip


def add_target(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    """Declare where files are written to."""
    one = parser.add_mutually_exclusive_group(required=required)
    one.add_argument("--to", dest="output", type=Path, metavar="PATH", help=what)
    one.add_argument("--output", dest="output", action=_Renamed, type=Path, help=argparse.SUPPRESS)


class _Renamed(argparse.Action):
    """An older name of an option: it works, and a note gives the present name."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        present = {"koord_namespace": "--koord-namespace", "output": "--to"}[self.dest]
        terminal.warn(f"note: {option_string} is called {present} now")
        setattr(namespace, self.dest, values)


def _format(text: str) -> str:
    # What `text` was called in some commands.
    return "text" if text == "table" else text


def kubeconfig(chosen: argparse.Namespace) -> Path | None:
    """Return the file to use, None for the usual places; an unusual one is named.

    What a person or the machine says goes first, so that a development run in this folder is
    never taken for the cluster that is meant.
    """
    named: Path | None = chosen.kubeconfig
    if named is not None or chosen.context is not None:
        return named
    if os.environ.get("KUBECONFIG") or "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    if DEV_KUBECONFIG.exists():
        terminal.warn(
            f"note: this talks to `koord dev` ({DEV_KUBECONFIG.absolute()}); --kubeconfig or "
            "$KUBECONFIG names another cluster"
        )
        return DEV_KUBECONFIG
    return None


async def connect(chosen: argparse.Namespace) -> accesses.Access:
    """Return the access to the cluster that is meant."""
    return (await reach(chosen))[0]


async def reach(chosen: argparse.Namespace) -> tuple[accesses.Access, endpoints.Endpoints]:
    """Return the access, and where the processes of a `koord dev` listen."""
    file = kubeconfig(chosen)
    access = await connections.connect(file, chosen.context)
    return access, endpoints.load(file, access.server)


def described(chosen: argparse.Namespace, access: accesses.Access) -> str:
    """Name the cluster for a person who is about to change it."""
    context = f", context {chosen.context}" if chosen.context else ""
    named = f", by {chosen.kubeconfig}" if chosen.kubeconfig else ""
    return f"{access.server}{named}{context}"
