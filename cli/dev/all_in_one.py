"""Extender, webhook, manager and descheduler in one event loop, against any API server."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

from descheduler import app as deschedulers
from descheduler import settings as descheduler_settings
from extender import app as extenders
from extender import settings as extender_settings
from kube.client import access as accesses
from manager import app as managers
from manager import settings as manager_settings
from process.http import health, running_process
from process.runtime import clock as clocks
from process.runtime import metrics
from webhook import app as webhooks
from webhook import settings as webhook_settings

LOCAL = "127.0.0.1"
VIEWER = "koord-console-viewer"
"""For whom the console takes browsers that send no token."""
# There is one scheduler and one extender, so no other scheduler binds anything in a silence.
_ALONE_SECONDS = 86_400.0


class App(Protocol):
    """What every process shows."""

    @property
    def health_url(self) -> str:
        """Where its probes and metrics are."""

    @property
    def health(self) -> health.Health:
        """What its readiness says."""

    @property
    def registry(self) -> metrics.Registry:
        """Its metrics."""

    async def stopped(self) -> None:
        """Wait until a task of it fails and raise the error."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How the processes are started here; everything listens on loopback, on free ports."""

    folder: Path
    """Where the webhook keeps its served certificate."""
    extender: extender_settings.Settings = dataclasses.field(
        default_factory=lambda: extender_settings.Settings.model_validate(
            {"server": local(), "health": local(), "freshness": {"idle_seconds": _ALONE_SECONDS}}
        )
    )
    manager: manager_settings.Settings = dataclasses.field(
        default_factory=lambda: manager_settings.Settings.model_validate(
            {
                "health": local(),
                "console": {"enabled": True, "viewer": VIEWER, "server": local()},
            }
        )
    )
    descheduler: descheduler_settings.Settings = dataclasses.field(
        default_factory=lambda: descheduler_settings.Settings.model_validate({"health": local()})
    )


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """The running processes."""

    extender: extenders.App
    webhook: running_process.RunningProcess
    manager: managers.App
    descheduler: deschedulers.App

    def apps(self) -> Iterator[tuple[str, App]]:
        """Return every process by name."""
        yield "extender", self.extender
        yield "webhook", self.webhook
        yield "manager", self.manager
        yield "descheduler", self.descheduler


def local() -> dict[str, Any]:
    """Return the settings of a listener on a free port of the loopback interface."""
    return {"host": LOCAL, "port": 0, "linger_seconds": 0.0, "announce_seconds": 0.0}


@contextlib.asynccontextmanager
async def running(
    options: Options, *, access: accesses.Access, clock: clocks.Clock
) -> AsyncIterator[System]:
    """Start the processes; yields when they listen."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        admission = await enter(
            webhooks.running(_webhook(options.folder), access=access, clock=clock)
        )
        controllers = await enter(managers.running(options.manager, access=access, clock=clock))
        scheduling = await enter(extenders.running(options.extender, access=access, clock=clock))
        moving = await enter(deschedulers.running(options.descheduler, access=access, clock=clock))
        yield System(scheduling, admission, controllers, moving)


def _webhook(folder: Path) -> webhook_settings.Settings:
    return webhook_settings.Settings.model_validate(
        {
            "server": local(),
            "health": local(),
            "certificates": {"names": (LOCAL, "localhost"), "folder": folder / "webhook"},
            "registration": {"url": "self"},
        }
    )
