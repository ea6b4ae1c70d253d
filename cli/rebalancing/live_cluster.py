"""What the descheduler decides on, read from a live cluster by its own informers."""

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

from api import names, resources
from descheduler.configuration import document, job_profiles
from descheduler.configuration.arguments import migration
from descheduler.informers import watched
from descheduler.model import picture
from descheduler.placement import scheduler_state
from descheduler.placement.settings import PlacementSettings
from kube.client import client as clients
from kube.client import errors
from kube.informers import reflector
from process.configuration import explained_error
from process.runtime import clock as clocks
from process.runtime import supervise

_LOOK_SECONDS: Final = 0.1
_LOG: Final = logging.getLogger(reflector.__name__)


class NotReadError(explained_error.ExplainedError):
    """The cluster could not be read in time; says what is missing."""


class LiveCluster:
    """The stores of a descheduler and the state of a scheduler, for as long as a command runs."""

    def __init__(self, kube: clients.Client, clock: clocks.Clock, namespace: str) -> None:
        """`namespace` is that of the installation."""
        self._kube, self._clock, self._namespace = kube, clock, namespace
        self._watched = watched.Watched(kube, clock, namespace)
        self._state = scheduler_state.SchedulerState(PlacementSettings(), kube, clock, namespace)

    async def started(self, supervisor: supervise.Supervisor, seconds: float) -> None:
        """Read the cluster; a NotReadError names what has not come in time."""
        with contextlib.suppress(errors.ApiError):
            # Informers try for ever: where no API server answers, a person wants to know at once.
            await self._kube.read("/version")
        deadline = self._clock.monotonic() + seconds
        self._watched.start(supervisor)
        self._state.start(supervisor)
        while (missing := self._missing()) is not None:
            if self._clock.monotonic() >= deadline:
                raise NotReadError(f"the cluster could not be read in {seconds:.0f} s: {missing}")
            await self._clock.sleep(_LOOK_SECONDS)
        # From now on a failure means that the command waits for the API server.
        _LOG.setLevel(logging.NOTSET)

    def _missing(self) -> str | None:
        return self._watched.members.unlisted() or self._state.health()

    def picture(self) -> picture.Picture:
        """Return the cluster as it is now."""
        return self._watched.picture(self._clock.now())

    async def fork(self) -> scheduler_state.Fork:
        """Return where the scheduler would place pods, to make moves on."""
        return await self._state.forked()

    async def configuration(self) -> str:
        """Return the configuration that the ConfigMap of the descheduler holds, empty for none."""
        try:
            found = await self._kube.get(
                resources.CONFIG_MAPS, names.CONFIG_MAP_DESCHEDULER, self._namespace
            )
        except errors.NotFound:
            return ""
        texts = map(str, (found.get("data") or {}).values())
        return next((text for text in texts if document.KIND in text), "")

    async def arguments(self) -> tuple[migration.MigrationControllerArgs, str]:
        """Return the arguments for jobs of people, and a note where they are defaults."""
        text = await self.configuration()
        configuration = document.read(text).configuration if text else None
        found = job_profiles.arguments(configuration.profiles if configuration is not None else ())
        what = "no migration" if text else "nothing"
        note = f"ConfigMap {names.CONFIG_MAP_DESCHEDULER} configures {what}"
        return found.otherwise, "" if found.named else note


@contextlib.asynccontextmanager
async def quiet() -> AsyncIterator[None]:
    """Keep from the terminal what informers log while a cluster is read: the error says it."""
    _LOG.setLevel(logging.ERROR)
    try:
        yield
    finally:
        _LOG.setLevel(logging.NOTSET)
