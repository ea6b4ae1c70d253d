"""Where the processes of a `koord dev` listen: there are no pods through which they are reached."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from api.wire import untrusted

FILE: Final = "endpoints.json"


class App(Protocol):
    """A process that listens."""

    @property
    def health_url(self) -> str:
        """Where its pages are."""


class Endpoints(msgspec.Struct, frozen=True):
    """Addresses of health ports."""

    server: str = ""
    """The API server to which they belong."""
    processes: dict[str, str] = {}
    agents: dict[str, str] = {}
    """By node."""


def save(
    folder: Path, server: str, processes: Iterable[tuple[str, App]], agents: Mapping[str, App]
) -> None:
    """Write the addresses beside the kubeconfig of a run."""
    found = Endpoints(
        server,
        {name: app.health_url for name, app in processes},
        {node: app.health_url for node, app in agents.items()},
    )
    (folder / FILE).write_bytes(msgspec.json.encode(found))


def load(kubeconfig: Path | None, server: str) -> Endpoints:
    """Return what lies beside a kubeconfig, nothing unless it is of the same API server."""
    named = kubeconfig or Path((os.environ.get("KUBECONFIG") or "").split(os.pathsep)[0])
    try:
        text = (named.parent / FILE).read_text(encoding="utf-8") if named.name else ""
        found = untrusted.decode(text or "{}", Endpoints, FILE)
    except (OSError, ValueError):
        return Endpoints()
    return found if found.server == server else Endpoints()
