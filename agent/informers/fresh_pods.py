"""The pods of this node by name, asked for anew where some are missing that others name."""

import asyncio
from collections.abc import Mapping, Set
from typing import Final

from agent.informers import pod_source
from api.kubernetes import core
from process.runtime import clock as clocks
from process.runtime import supervise

MOST_SECONDS: Final = 2.0
"""How long a new list is waited for."""

Name = tuple[str, str]


class FreshPods:
    """Waits for a list that has the pods that are asked about, for each missing pod once."""

    def __init__(self, pods: pod_source.Source, clock: clocks.Clock) -> None:
        self._pods, self._clock = pods, clock
        self._came = asyncio.Event()
        self._missing: Set[Name] = frozenset()
        self._before = pods.listed
        pods.listed = self._listed

    @property
    def problem(self) -> str:
        """Why no pod is known, empty as soon as there was a list."""
        return "" if self._pods.age is not None else self._pods.problem or "not listed yet"

    async def known(self, wanted: Set[Name]) -> Mapping[Name, core.Pod]:
        """Return the pods of this node; it takes a moment where one of those wanted is missing."""
        found = self._named()
        missing = wanted - found.keys()
        if missing - self._missing:
            self._came.clear()
            self._pods.look_now()
            try:
                async with supervise.deadline(self._clock, MOST_SECONDS):
                    await self._came.wait()
            except TimeoutError:
                pass
            found = self._named()
        self._missing = wanted - found.keys()
        return found

    def _listed(self) -> None:
        self._before()
        self._came.set()

    def _named(self) -> dict[Name, core.Pod]:
        return {(one.metadata.namespace, one.metadata.name): one for one in self._pods.pods}
