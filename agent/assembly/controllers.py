"""Controllers of other packages that run beside the parts of the agent.

A package registers one as an entry point of the group `koord.agent.controllers`: a function that
takes what `Given` holds and returns a `Controller`. The setting `controllers` names those that run.
What one of them does wrong ends, delays or changes no part of the agent.
"""

import functools
import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from agent.model import state
from agent.store import time_series
from process.configuration import explained_error
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

GROUP: Final = "koord.agent.controllers"
FIRST_PAUSE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 300.0
_logger = logging.getLogger(__name__)


class ControllerError(explained_error.ExplainedError):
    """A controller that no installed package has, or that cannot be loaded."""


class Given(msgspec.Struct, frozen=True):
    """What a controller is given."""

    node_name: str
    clock: clocks.Clock
    picture: Callable[[], state.NodeState | None]
    """Returns what the latest tick has seen, the same for all parts; None before the first one."""
    samples: time_series.Histories
    """What was measured, by series; only to be read."""
    figures: metrics.Registry
    """Takes metrics, whose names begin with `koord_`."""


class Controller(Protocol):
    """Something that runs for as long as the agent."""

    async def run(self) -> None:
        """Work for ever; never block. Where it raises or returns, it is run again after a pause."""


Make = Callable[[Given], Controller]


def named(names: Iterable[str]) -> Mapping[str, Make]:
    """Load controllers by name; a ControllerError says which there are."""
    points = {one.name: one for one in importlib.metadata.entry_points(group=GROUP)}
    found: dict[str, Make] = {}
    for name in names:
        if name not in points:
            known = ", ".join(sorted(points)) or "none"
            raise ControllerError(f"controllers: {name} is not installed; there are: {known}")
        try:
            found[name] = points[name].load()
        except (ImportError, AttributeError) as error:
            raise ControllerError(f"controllers: {name} cannot be loaded: {error}") from error
    return found


class Beside:
    """Runs one controller, again whenever it ends."""

    def __init__(self, name: str, make: Make, given: Given) -> None:
        self.problem: str | None = None
        """Why it does not run, None while it does."""
        self._name, self._make, self._given = name, make, given

    async def run(self) -> None:
        """Run the controller for ever, after ever longer pauses where it does not last."""
        pause, clock = FIRST_PAUSE_SECONDS, self._given.clock
        while True:
            began = clock.monotonic()
            try:
                self.problem = None
                await self._make(self._given).run()
                self.problem = f"{self._name} ended"
            except Exception as error:
                # The root of a task of another package: its mistakes are no reason to stop.
                _logger.exception("controller failed name=%s", self._name)
                self.problem = f"{self._name}: {type(error).__name__}: {error}"[:500]
            if clock.monotonic() - began > LONGEST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def start(
    names: Iterable[str], given: Given, checks: health.Health, supervisor: supervise.Supervisor
) -> None:
    """Start the controllers that were asked for; none is made where one cannot be loaded."""
    for name, make in named(names).items():
        beside = Beside(name, make, given)
        checks.warn(f"controller {name}", functools.partial(getattr, beside, "problem"))
        supervisor.start(f"controller {name}", beside.run)
