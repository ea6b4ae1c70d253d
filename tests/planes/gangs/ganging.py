"""Gangs of one test, on any plane: the vocabulary of scenarios of gangs, and what never happens."""

import asyncio
import contextlib
import dataclasses
import time

from api import names, resources
from manager.gangs import restart_plan
from process.runtime import clock as clocks
from process.runtime import supervise
from tests.planes import raw

PATIENCE = 60.0
KIND = resources.POD_GROUPS
PLUGINS = {
    "enabled": [
        *("ElasticQuota", "BatchFit", "NodeNUMAResource", "DeviceShare"),
        *("Reservation", "Coscheduling"),
    ]
}
SCHEDULERS = ("default-scheduler", "koord-scheduler")
CONFIGURATION = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": names.CONFIG_MAP_SCHEDULER,
        "namespace": names.NAMESPACE,
        "annotations": {names.ANNOTATION_SCHEDULERS: ",".join(SCHEDULERS)},
    },
    "data": {},
}
"""What tells the webhook whose extender places gangs."""


def annotated(gang, least, **more):
    """The metadata of members that declare their gang by annotations."""
    notes = {
        names.ANNOTATION_GANG_NAME: gang,
        names.ANNOTATION_GANG_MIN_AVAILABLE: str(least),
        **{_NOTES[key]: value for key, value in more.items()},
    }
    return {"annotations": notes}


def labelled(gang, least, **more):
    """The same by the older labels."""
    labels = {
        names.LABEL_POD_GROUP_OLD: gang,
        names.LABEL_POD_GROUP_MIN_AVAILABLE: str(least),
    }
    return {"labels": labels, "annotations": {_NOTES[key]: value for key, value in more.items()}}


def grouped(gang, _least=0, **_more):
    """The metadata of members of a PodGroup, which has the settings."""
    return {"labels": {names.LABEL_POD_GROUP: gang}}


FORMS = {"annotations": annotated, "labels": labelled, "PodGroup": grouped}
_NOTES = {
    "mode": names.ANNOTATION_GANG_MODE,
    "total": names.ANNOTATION_GANG_TOTAL,
    "waits": names.ANNOTATION_GANG_WAITING_TIME,
    "groups": names.ANNOTATION_GANG_GROUPS,
    "policy": names.ANNOTATION_GANG_MATCH_POLICY,
}


@dataclasses.dataclass
class Start:
    """From the first member of a gang that was bound until it had its quorum, or none again."""

    since: float
    until: float = float("inf")
    whole: bool = False
    left: list[str] = dataclasses.field(default_factory=list)
    """Members that were bound and left again."""


class LaterClock(clocks.SystemClock):
    """A manager's clock by which pods that were created now are old enough for a restart."""

    def now(self):
        return super().now() + restart_plan.PAUSE_SECONDS + 60


class Record:
    """Which pods ever had a node, as one watch tells of them."""

    def __init__(self):
        self.pods = {}
        """The pods that there are, by name."""
        self.seen = set()
        """Names of all pods there ever were."""
        self.version = ""
        self._history = []
        """When which pod was bound (True) or left (False), in the order of the watch."""
        self.bound = {}
        """Node by the name of the pod, also of pods that are gone."""
        self._marks = {}

    def mark(self, name):
        """An event that is set once the watch has told of a pod."""
        return self._marks.setdefault(name, asyncio.Event())

    async def follow(self, stream):
        while event := await stream.next(None):
            pod = event["object"]
            name = pod["metadata"]["name"]
            self.version = pod["metadata"].get("resourceVersion", "")
            self.seen.add(name)
            if event["type"] == "DELETED":
                self.pods.pop(name, None)
            else:
                self.pods[name] = pod
            if node := pod["spec"].get("nodeName"):
                self.bound[name] = node
                self._history.append((time.monotonic(), name, event["type"] != "DELETED"))
            if name in self._marks:
                self._marks[name].set()

    def starts(self, prefix, quorum):
        """Every time that a gang began to be bound, each with how it ended."""
        found, held = [], set()
        for at, name, is_bound in self._history:
            if not name.startswith(f"{prefix}-") or not (is_bound or name in held):
                continue
            if not held:
                found.append(Start(at))
            (held.add if is_bound else held.discard)(name)
            last = found[-1]
            if last.until < float("inf"):
                continue
            if not is_bound:
                last.left.append(name)
            if len(held) >= quorum or not held:
                last.until, last.whole = at, bool(held)
        return found

    def of(self, prefix):
        """The names of those that begin so."""
        return sorted(name for name in self.bound if name.startswith(f"{prefix}-"))


class Ganging:
    """One test's gangs; the members of gang `a` are pods `a-0`, `a-1` and so on."""

    def __init__(self, here, record, **spec):
        """`spec` is what every member has besides."""
        self.here, self.api, self.record = here, here.api, record
        self._spec = spec
        self._made, self._marks = [], 0

    # -- gangs -------------------------------------------------------------------------------

    async def pod_group(self, gang, least, *, annotations=None, **spec):
        """Create a PodGroup."""
        body = {
            "apiVersion": KIND.api_version,
            "kind": KIND.kind,
            "metadata": {"name": gang, "annotations": annotations or {}},
            "spec": {"minMember": least, **spec},
        }
        await self.api.post(KIND.path(self.here.namespace), body)
        self._made.append(KIND.path(self.here.namespace, gang))

    async def gang(self, gang, count, least=0, *, form="annotations", first=0, **options):
        """Create so many members; returns their names."""
        settings, labels = options.pop("settings", {}), options.pop("labels", {})
        notes = options.pop("annotations", {})
        requests = options.pop("requests", {"cpu": "1"})
        declared = FORMS[form](gang, least or count, **settings)
        made = [f"{gang}-{number}" for number in range(first, first + count)]
        for name in made:
            await self.here.pod(
                name,
                requests=requests,
                labels={**declared.get("labels", {}), **labels},
                annotations={**declared.get("annotations", {}), **notes},
                **{**self._spec, **options},
            )
        return made

    async def remove(self, gang):
        """Delete the members of a gang."""
        await self.up_to_date()
        for pod in self.members(gang):
            await self.here.remove(pod["metadata"]["name"])

    def members(self, gang):
        """The members of a gang as pods, of a gang group those of all gangs that begin so.

        They are those of the watch: large gangs are looked at too often to list them each time.
        """
        pods = list(self.record.pods.values())
        return [pod for pod in pods if pod["metadata"]["name"].startswith(f"{gang}-")]

    # -- waits -------------------------------------------------------------------------------

    async def bound(self, gang):
        """The names of the members that have a node."""
        found = self.members(gang)
        return [pod["metadata"]["name"] for pod in found if pod["spec"].get("nodeName")]

    async def whole(self, gang, count):
        """Wait until exactly so many members of a gang have a node."""
        found = []

        async def enough():
            found[:] = await self.bound(gang)
            return len(found) == count

        try:
            await raw.eventually(enough, PATIENCE)
        except TimeoutError:
            told = {pod["metadata"]["name"]: _told(pod) for pod in self.members(gang)}
            raise AssertionError(f"{len(found)} of {count} members are bound: {told}") from None

    async def winner(self, *gangs, count):
        """Wait until one of these gangs is bound with so many members; returns the others last."""

        async def decided():
            found = {gang: len(await self.bound(gang)) for gang in gangs}
            return sorted(gangs, key=lambda gang: -found[gang]) if count in found.values() else []

        return await raw.eventually(decided, PATIENCE)

    async def waits(self, gang, saying="", *, reason=""):
        """Wait until every member says what its gang waits for; returns one sentence."""
        told = {}

        async def all_say():
            members = [pod for pod in self.members(gang) if not _ends(pod)]
            told.update({pod["metadata"]["name"]: _told(pod) for pod in members})
            return bool(members) and all(
                one.get("status") == "False"
                and saying in one.get("message", "")
                and reason in ("", one.get("reason"))
                for one in told.values()
            )

        try:
            await raw.eventually(all_say, PATIENCE)
        except TimeoutError:
            bound = await self.bound(gang)
            raise AssertionError(f"not {saying!r}, but {told}; {bound} have a node") from None
        return next(iter(told.values()))["message"]

    async def never(self, *gangs):
        """See in the record, up to now, that no member of these gangs ever had a node."""
        await self.up_to_date()
        for gang in gangs:
            assert self.record.of(gang) == []

    async def up_to_date(self):
        """Wait until the record has everything that has happened."""
        self._marks += 1
        name = f"mark{self._marks}"
        reached = self.record.mark(name)
        await self.here.pod(name, requests={}, schedulerName="none")
        await asyncio.wait_for(reached.wait(), PATIENCE)
        await self.here.remove(name)

    def also(self, path):
        """Remove this object after the test, too."""
        self._made.append(path)

    async def clear(self):
        """Remove what the test has made."""
        for pod in (await self.api.get(self.here.path("pods")))["items"]:
            await self.here.drop(pod["metadata"]["name"])
        for path in self._made:
            await self.api.call("DELETE", path)
        self._made.clear()


@contextlib.asynccontextmanager
async def opened(here, **spec):
    """The vocabulary, with a record of all bindings from now on; `spec` is of every member."""
    path = here.path("pods")
    listed = await here.api.get(path)
    version, record = listed["metadata"]["resourceVersion"], Record()
    record.pods = {pod["metadata"]["name"]: pod for pod in listed["items"]}
    async with supervise.Supervisor("record") as supervisor:
        supervisor.spawn("watch", _followed(here, path, version, record))
        made = Ganging(here, record, **spec)
        try:
            yield made
        finally:
            await made.clear()


async def _followed(here, path, version, record):
    """Watch again where a watch ends: API servers close those that read too slowly."""
    record.version = version
    while True:
        async with here.api.watch(path, resourceVersion=record.version) as stream:
            await record.follow(stream)


def _ends(pod):
    """Whether a pod is terminating or has ended."""
    is_over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return is_over or "deletionTimestamp" in pod["metadata"]


def _told(pod):
    """The condition about its gang on a pod."""
    for one in pod.get("status", {}).get("conditions", ()):
        if one["type"] == names.CONDITION_GANG:
            return one
    return {}
