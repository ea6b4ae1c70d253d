"""Runs the episodes on both planes at the same time and collects what differs."""

import asyncio
import contextlib
import dataclasses
import json

from tests.e2e.differential import generator, planes, steps

SIDE_BY_SIDE = 4
WATCHED = ("pods", "configmaps", "widgets", "poddisruptionbudgets")


@dataclasses.dataclass(frozen=True)
class Difference:
    """One request that both planes answer otherwise, at the first place that differs."""

    step: steps.Step
    place: str
    real: str
    simulated: str
    body: str

    def __str__(self) -> str:
        return (
            f"{self.step}\n  body {self.body[:600]}\n  {self.place}\n"
            f"    real      {self.real[:600]}\n    simulated {self.simulated[:600]}"
        )


class Comparison:
    """Both planes, and what was found so far."""

    def __init__(self, real, simulated):
        self._apis = (real, simulated)
        self._sides = tuple(planes.Side(api) for api in self._apis)
        self.differences = []
        self.requests = 0
        self.events = 0
        self.kinds = set()

    async def run(self, seeds, length):
        """Compare the episodes of these seeds, some at a time."""
        gate = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(seed):
            async with gate:
                await self._episode(generator.Episode(seed, length))

        async with asyncio.TaskGroup() as group:
            for seed in seeds:
                group.create_task(one(seed))

    async def _episode(self, episode):
        diverged = set()
        for story in episode.stories():
            for step in story:
                if not await self._same(step) and step.method != "GET":
                    # What follows would differ for this reason only.
                    diverged.add(step.subject.rpartition("/")[2])
                    await self._remove({each.subject for each in story})
                    break
        await asyncio.gather(*(self._watched(episode, plural, diverged) for plural in WATCHED))

    async def _same(self, step):
        self.requests += 1
        self.kinds.add(step.what)
        (real, real_after), (simulated, simulated_after) = await planes.both(self._sides, step)
        found = next(_between("answer", real, simulated), None)
        if found is None and real_after is not None:
            found = next(_between("afterwards", real_after, simulated_after), None)
        if found is not None:
            self._add(step, *found)
        return found is None

    def _add(self, step, place, real, simulated):
        body = step.body({}) if callable(step.body) else step.body
        shown = body.decode() if isinstance(body, bytes) else json.dumps(body)
        self.differences.append(Difference(step, place, str(real), str(simulated), shown))

    async def _remove(self, subjects):
        """Take away what looks different now, so that lists stay comparable."""
        bare = {"metadata": {"finalizers": None}}
        for api in self._apis:
            for subject in filter(None, subjects):
                await api.call("DELETE", subject, query={"gracePeriodSeconds": "0"})
                await api.call("PATCH", subject, bare, kind=steps.MERGE)

    async def _watched(self, episode, plural, diverged):
        """Compare everything that happened to a collection, as a watch tells it afterwards."""
        step = steps.Step("watch", "GET", episode.collection(plural), watch=True)
        self.requests += 1
        self.kinds.add(step.what)
        real, simulated = await asyncio.gather(
            *(_events(api, step.path, episode.namespace, diverged) for api in self._apis)
        )
        self.events += len(real)
        for place in range(max(len(real), len(simulated))):
            pair = [events[place] if place < len(events) else None for events in (real, simulated)]
            if pair[0] != pair[1]:
                self._add(step, f"event {place}", *pair)
                return


def _between(place, real, simulated):
    """The places where two outcomes differ, the most telling first."""
    if (real.status, real.reason) != (simulated.status, simulated.reason):
        sides = [
            f"{side.status} {side.reason} {side.message}".strip() for side in (real, simulated)
        ]
        yield place, *sides
        return
    for path, one, two in planes.differences(real.value, simulated.value):
        yield f"{place}{path}", one, two


def _forget_mark(found, name):
    """Leave out that a pod was marked just before it went: the simulator does both at once."""
    last = next((at for at in reversed(range(len(found))) if found[at][1] == name), None)
    if last is not None and found[last][0] == "MODIFIED":
        value = found[last][2]
        if value["kind"] == "Pod" and "deletionTimestamp" in value["metadata"]:
            del found[last]


async def _events(api, path, namespace, diverged):
    """The events since the namespace was made, as type and object, of what stayed alike."""
    made = await api.get(f"/api/v1/namespaces/{namespace}")
    query = {"resourceVersion": made["metadata"]["resourceVersion"], "timeoutSeconds": "1"}
    found = []
    async with api.watch(path, **query) as watch:
        with contextlib.suppress(TimeoutError):
            while (event := await watch.next(10)) is not None:
                name = event["object"].get("metadata", {}).get("name", "")
                if name in diverged:
                    continue
                value = planes.normal(event["object"])
                if event["type"] == "DELETED" and event["object"]["kind"] == "Pod":
                    # The simulator marks and deletes at once, so the mark stands in no event.
                    _forget_mark(found, name)
                    value = {"kind": "Pod"}
                found.append((event["type"], name, value))
    return found
