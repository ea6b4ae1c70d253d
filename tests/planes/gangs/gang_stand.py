"""Extender, scheduler and manager as processes that are killed while gangs start."""

import asyncio
import contextlib
import json
import time

from api import names
from tests.planes import raw
from tests.planes.gangs import ganging
from tests.planes.processes import gate
from tests.planes.quota import quota_processes
from tests.planes.stage import PATIENCE

FLAGS = tuple(f"--plugins.{name}={json.dumps(value)}" for name, value in ganging.PLUGINS.items())
MANAGER = (*quota_processes.MANAGER[:-1], '--controllers=["podgroup"]')
GATED = {"schedulingGates": [{"name": names.GATE_GANG}]}
"""What admission adds to the members of gangs of ours."""
KILLED = ("extender", "manager", "scheduler")


class Stand:
    """Extender, scheduler and manager, each with its calls through a gate."""

    def __init__(self, stage, pair, uplink):
        self.stage, self.pair = stage, pair
        self.manager = stage.process(
            "manager-a", "manager", *MANAGER, server=uplink.url, serves=False
        )
        self.uplinks = {"extender": pair.uplink, "scheduler": pair.uplink, "manager": uplink}
        self.gangs = None

    async def start(self):
        await self.manager.start()
        await self.manager.ready()
        await self.pair.schedule(bind_timeout_seconds=10)

    async def kill(self, name):
        """Kill a process: what it had not sent is never sent."""
        if name == "scheduler":
            await self.stage.plane.binaries.kill(self.pair.scheduler)
            return
        self.uplinks[name].hang_up()
        await self._process(name).kill()

    async def start_again(self, name):
        """Start it anew, as a kubelet does, and wait until it is ready."""
        if name == "scheduler":
            await self.pair.schedule(bind_timeout_seconds=10)
            return
        await self._process(name).start()
        await self._process(name).ready()

    def _process(self, name):
        return self.pair.extender if name == "extender" else self.manager

    async def knows(self, *quotas):
        """Tell whether the extender knows these quotas."""
        status, text = await self.pair.extender.page(quota_processes.QUOTAS)
        found = {one["name"] for one in json.loads(text)} if status == 200 else set()
        return found.issuperset(quotas)

    async def figures(self, *both):
        """How many members of each gang have a node and are not leaving."""
        found = {}
        for name in both:
            held = [
                pod
                for pod in self.gangs.members(name)
                if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            ]
            found[name] = len(held)
        return found

    async def rests(self, *both, members):
        """Wait until one gang is whole, nothing of the others is bound, and no claim is left."""
        found, wanted = {}, [*(0 for _ in both[1:]), members]

        async def at_rest():
            found.update(await self.figures(*both))
            in_force = await self.pair.extender.figure("koord_extender_gang_plans_in_force")
            return sorted(found.values()) == wanted and in_force == 0

        try:
            await raw.eventually(at_rest, PATIENCE)
        except TimeoutError:
            told = [
                pod["status"].get("conditions")
                for name in both
                for pod in self.gangs.members(name)[:3]
            ]
            raise AssertionError(f"bound are {found}: {told}") from None
        await self.stage.sound(self.pair)
        await self.unclaimed()
        assert sorted((await self.figures(*both)).values()) == wanted
        return max(found, key=found.get)

    async def unclaimed(self):
        """Wait until no capacity of a node is kept for a member of a gang."""
        kept = []

        async def nothing():
            pictures = await self.pair.pictures(self.stage.nodes)
            kept[:] = [one for picture in pictures for one in picture["nominated"]]
            return len(pictures) == len(self.stage.nodes) and not kept

        try:
            await raw.eventually(nothing, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"kept is {kept}") from None


@contextlib.asynccontextmanager
async def standing(stage, **options):
    """All of them on a stage, which has no nodes yet; `options` are those of `ganging.opened`."""
    await stage.api.call("DELETE", quota_processes.LEASE)
    async with gate.opened(stage.plane.server, stage.plane.ca) as uplink:
        stand = Stand(stage, await stage.pair("a", *FLAGS), uplink)
        async with ganging.opened(stage, **options) as stand.gangs:
            stand.gangs.system, stand.gangs.page = stand, stand.pair.extender.page
            await stand.start()
            yield stand
        await stand.manager.kill()


class Interruption:
    """One death of a process, and when its successor was ready."""

    def __init__(self, name):
        self.name, self.died, self.ready = name, 0.0, float("inf")

    async def suffer(self, stand):
        """Kill the process and start it anew."""
        self.died = time.monotonic()
        await stand.kill(self.name)
        await stand.start_again(self.name)
        self.ready = time.monotonic()

    def __repr__(self):
        return f"{self.name} from {self.died:.2f} to {self.ready:.2f}"


def opened(call):
    return call.method == "PATCH" and b"schedulingGates" in call.body


class Bursts:
    """What was sent for gangs in one round: how far it is, and whether all of it was in order."""

    def __init__(self, stand, gangs, members):
        self._stand, self._gangs, self._members = stand, gangs, members
        self._record = stand.gangs.record
        self._seen = set(self._record.seen)
        stand.pair.front.calls.clear()
        stand.pair.uplink.calls.clear()

    def progress(self):
        """How many pods were created, gates opened, and members bound."""
        calls = self._stand.pair.uplink.calls
        return {
            "created": len(self._record.seen - self._seen),
            "opened": sum(opened(call) for call in calls),
            "bound": sum(call.is_binding for call in calls),
        }

    async def reaches(self, kind, count, longest):
        """Wait until so much of a kind has happened; no longer, for it may have happened before."""

        async def far_enough():
            return self.progress()[kind] >= count

        with contextlib.suppress(TimeoutError):
            await raw.eventually(far_enough, longest)

    def problems(self, interruptions, seconds):
        """What was bound without its gang, or for longer than `seconds` after an interruption."""
        for gang in self._gangs:
            yield from self._late(gang, interruptions, seconds)
            yield from self._below_quorum(gang, interruptions)

    def _late(self, gang, interruptions, seconds):
        for start in self._record.starts(gang, self._members):
            hit = [
                one
                for one in interruptions
                if one.died <= start.until and one.ready >= start.since and one.name != "manager"
            ]
            latest = max((one.ready for one in hit), default=start.since)
            if start.until > latest + seconds:
                yield f"{gang} was bound in part for too long: {start} {hit}"
            elif not start.whole and not hit:
                yield f"{gang} was not completed although no process died: {start}"

    def _below_quorum(self, gang, interruptions):
        """Before the first Binding, as many binds as the quorum has were asked of that extender."""
        deaths = [one.died for one in interruptions if one.name == "extender"]
        sent = [(one.at, one.path.split("/")[-2]) for one in self._stand.pair.uplink.calls
                if one.is_binding]  # fmt: skip
        asked = [(one.at, json.loads(one.body)["PodName"]) for one in self._stand.pair.front.calls
                 if one.path.endswith("/bind")]  # fmt: skip
        mine = [(at, name) for at, name in sent if name.startswith(f"{gang}-")]
        for life in [0.0, *deaths]:
            before = [name for at, name in mine if at <= life]
            first = min((at for at, _ in mine if at > life), default=0.0)
            there = {name for at, name in asked if life < at <= first and name.startswith(gang)}
            if first and not before and len(there) < self._members:
                yield f"{gang}: the first Binding was sent when {len(there)} members had arrived"


async def removed(stand):
    """Remove the nodes of a round."""
    await asyncio.gather(*(stand.stage.remove_node(name) for name in list(stand.stage.nodes)))
