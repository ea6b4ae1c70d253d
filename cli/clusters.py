"""Which cluster a command talks to, and where the product is installed in it."""

import argparse
import dataclasses
import os
from pathlib import Path
from typing import Final

from api import names
from api.wire import durations
from cli import endpoints
from cli.output import answers, terminal
from kube.client import access as accesses
from kube.client import connect as connections

DEV_KUBECONFIG: Final = Path(".dev") / "kubeconfig"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name a cluster."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        help="kubeconfig file; without it $KUBECONFIG, then the pod this runs in, then "
        f"{DEV_KUBECONFIG} of a `koord dev` in this folder, then ~/.kube/config",
    )
    parser.add_argument("--context", help="context in the kubeconfig")
    parser.add_argument(
        "--as",
        dest="impersonate",
        default="",
        metavar="USER",
        help="ask as this user, such as system:serviceaccount:team:default",
    )
    parser.add_argument(
        "--request-timeout",
        type=_timeout,
        default=None,
        metavar="TIME",
        help="how long one request may take, such as 5s; 0 leaves the default",
    )


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
        "-o", "--output", default="text", type=_format, metavar=answers.METAVAR,
        help="for people or for programs (default table)",
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
    try:
        return answers.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _timeout(text: str) -> float | None:
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else durations.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text}: name a time to come, such as 5s")
    return seconds or None


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
    found = await connections.connect(file, chosen.context)
    access = dataclasses.replace(
        found, impersonate=chosen.impersonate, request_seconds=chosen.request_timeout
    )
    return access, endpoints.load(file, access.server)


def described(chosen: argparse.Namespace, access: accesses.Access) -> str:
    """Name the cluster for a person who is about to change it."""
    context = f", context {chosen.context}" if chosen.context else ""
    named = f", by {chosen.kubeconfig}" if chosen.kubeconfig else ""
    return f"{access.server}{named}{context}"
