"""What the descheduler decides on, read from a snapshot into the stores of its own informers."""

import asyncio
import dataclasses
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api import names, resources
from api.wire import durations
from cli.snapshot import format as formats
from cli.snapshot import reader
from descheduler.configuration import document
from descheduler.framework import protocols
from descheduler.informers import watched
from descheduler.model import picture
from descheduler.placement import scheduler_state
from descheduler.placement.settings import PlacementSettings
from kube.client import access as accesses
from kube.client import client as clients
from kube.informers import reflector, saved_objects

_NOWHERE: Final = "http://127.0.0.1:9"
"""An address that nothing is asked at: the client is never opened."""
_NEEDED: Final = (resources.REPLICA_SETS, resources.NODE_METRICS)
"""Without them no pod would move: how many there should be, and what they use."""
_MOST_FLAWS: Final = 5
_BY_NAME: Final = "metadata.name="
_DUPLICATES: Final = "RemoveDuplicates"
_NO_IMAGES: Final = (
    f"a snapshot holds no images: {_DUPLICATES} takes the pods of one owner for alike"
)


class _Moment:
    """The clock of a snapshot: it stands at the moment at which that was taken."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        """Return the moment of the snapshot."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds of this machine."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let others run."""
        await asyncio.sleep(max(0.0, seconds))


class SavedCluster:
    """The stores of a descheduler and the state of a scheduler, as a snapshot has them."""

    def __init__(self, snapshot: formats.Snapshot, namespace: str = names.NAMESPACE) -> None:
        """`namespace` is that of the installation; a FileError says what the file lacks."""
        lacking = [one.review_name() for one in _NEEDED if snapshot.lacks(one)]
        if lacking:
            raise reader.FileError(
                f"the snapshot holds no {' and no '.join(lacking)}: an older release took it; take "
                "it again"
            )
        self._snapshot = snapshot
        self._clock = _Moment(durations.timestamp(snapshot.taken_at))
        kube = clients.Client(accesses.Access(_NOWHERE), clock=self._clock)
        self._watched = watched.Watched(kube, self._clock, namespace)
        self._state = scheduler_state.SchedulerState(
            PlacementSettings(), kube, self._clock, namespace
        )
        self._flaws: tuple[str, ...] = ()

    def configuration(self) -> str:
        """Return the configuration of the descheduler that the snapshot holds, empty for none."""
        found = self._maps(names.CONFIG_MAP_DESCHEDULER)
        texts = (str(text) for one in found for text in (one.get("data") or {}).values())
        return next((text for text in texts if document.KIND in text), "")

    def notes(self, configuration: str) -> tuple[str, ...]:
        """Return what the snapshot does not tell of what a configuration asks for."""
        missing = (
            f"{what} is not in the snapshot: {why}"
            for what, why in self._snapshot.unread.items()
            if why != formats.NOT_INSTALLED
        )
        odd = (f"left out: {flaw}" for flaw in self._flaws[:_MOST_FLAWS])
        return (*((_NO_IMAGES,) if _DUPLICATES in configuration else ()), *missing, *odd)

    async def look(self) -> tuple[picture.Picture, protocols.Targets]:
        """Return the cluster of the snapshot, and where the scheduler would take its pods."""
        sets = (self._watched.members, self._watched.more, self._state.members)
        flaws = [flaw for one in sets for flaw in saved_objects.fill(one, self._objects)]
        self._flaws = tuple(dict.fromkeys(flaws))
        await self._state.caught_up()
        fork = await self._state.forked()
        seen = self._watched.picture(self._clock.now())
        return dataclasses.replace(seen, fragments=fork.fragments), fork.targets(seen)

    def _objects(self, projection: reflector.Projection[Any]) -> Iterable[Mapping[str, Any]]:
        if projection.resource == resources.CONFIG_MAPS:
            return self._maps(projection.fields.removeprefix(_BY_NAME))
        return self._snapshot.of(projection.resource)

    def _maps(self, name: str) -> list[formats.Raw]:
        found = self._snapshot.of(resources.CONFIG_MAPS)
        return [one for one in found if one["metadata"].get("name") == name]
