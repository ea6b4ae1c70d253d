"""What a round sees: the watched objects as a picture, and a fork of the scheduler's state."""

import dataclasses

from descheduler.framework import protocols
from descheduler.informers import watched
from descheduler.model import picture
from descheduler.placement import scheduler_state
from descheduler.rounds import awaited
from process.runtime import clock as clocks


class WatchedSight:
    """Looks at what informers hold; implements `rounds.Sight`."""

    def __init__(
        self,
        seen: watched.Watched,
        placing: scheduler_state.SchedulerState | None,
        waits: awaited.Awaited,
        clock: clocks.Clock,
    ) -> None:
        """Without `placing` no targets are found."""
        self._seen = seen
        self._placing = placing
        self._waits = waits
        self._clock = clock

    def waits_for(self) -> str | None:
        """Return what has to become current first, None where nothing has."""
        return self._seen.members.health() or (
            self._placing.health() if self._placing is not None else None
        )

    async def look(self) -> tuple[picture.Picture, protocols.Targets | None]:
        """Return the cluster as it is now, and where the scheduler would take its pods."""
        fork = await self._placing.forked() if self._placing is not None else None
        found = self._seen.picture(self._clock.now())
        jobs = self._waits.joined(found.jobs, self._clock.monotonic())
        if fork is None:
            return dataclasses.replace(found, jobs=jobs), None
        seen = dataclasses.replace(found, jobs=jobs, fragments=fork.fragments)
        return seen, fork.targets(seen)
