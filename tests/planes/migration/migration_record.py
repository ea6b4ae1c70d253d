"""Pods, Reservations and PodMigrationJobs as the API server told of them, and what never happens.

The versions of objects of all kinds have one order, so that the record says what was there when a
pod was evicted.
"""

import asyncio
import contextlib
import functools

from api import names, resources
from process.runtime import supervise
from tests.planes import raw

JOBS = resources.POD_MIGRATION_JOBS.path()
RESERVATIONS = resources.RESERVATIONS.path()
ENDED = ("Succeeded", "Failed", "Aborted")
ALLOCATED = names.ANNOTATION_RESERVATION_ALLOCATED


class Kind:
    """Everything that was told of one kind of object."""

    def __init__(self, path):
        self.path = path
        self.now = {}
        """The objects that there are, by uid."""
        self.last = {}
        """Every object that there ever was, as it was told of last."""
        self.history = []
        """Versions with objects; deleted ones come with their last state."""

    def take(self, kind, body):
        """Take in one event."""
        uid, version = body["metadata"]["uid"], int(body["metadata"]["resourceVersion"])
        self.history.append((version, kind, body))
        self.last[uid] = body
        if kind == "DELETED":
            self.now.pop(uid, None)
        else:
            self.now[uid] = body

    async def list(self, api):
        """Take in what is there; return the version after which a watch goes on.

        Nothing while the API server begins to serve a kind that was defined a moment ago.
        """
        answer = await api.call("GET", self.path)
        if answer.status == 429:
            return ""
        assert answer.status == 200, answer.message
        listed = answer.body
        for body in listed["items"]:
            self.take("ADDED", body)
        return listed["metadata"]["resourceVersion"]

    async def follow(self, api, version, told):
        """Watch for ever, and again where a watch ends."""
        while True:
            async with api.watch(self.path, resourceVersion=version) as stream:
                while event := await stream.next(None):
                    self.take(event["type"], event["object"])
                    version = event["object"]["metadata"]["resourceVersion"]
                    told()

    async def is_current(self, api):
        """Tell whether the record has what the API server has."""
        found = {
            body["metadata"]["uid"]: int(body["metadata"]["resourceVersion"])
            for body in (await api.get(self.path))["items"]
        }
        seen = {uid: int(one["metadata"]["resourceVersion"]) for uid, one in self.now.items()}
        return found.keys() == seen.keys() and all(seen[uid] >= found[uid] for uid in found)


class Record:
    """What happened on a stage since the record was opened."""

    def __init__(self, stage):
        self.api = stage.api
        self.pods = Kind(stage.path("pods"))
        self.jobs = Kind(JOBS)
        self.reservations = Kind(RESERVATIONS)
        self.kinds = (self.pods, self.jobs, self.reservations)
        self._told = asyncio.Event()

    def told(self):
        """Wake up who waits for something to happen."""
        self._told.set()
        self._told = asyncio.Event()

    async def until(self, check, saying=""):
        """Wait until the record satisfies a check; return what that found."""
        try:
            async with asyncio.timeout(raw.PATIENCE):
                while not (found := check()):
                    await self._told.wait()
                return found
        except TimeoutError:
            raise AssertionError(f"{saying or 'it did not happen'}: {self.story()}") from None

    async def up_to_date(self):
        """Wait until the record has everything that has happened."""

        async def whole():
            return all([await kind.is_current(self.api) for kind in self.kinds])

        await raw.eventually(whole)

    def story(self):
        """What the jobs and Reservations say, for a test that fails."""
        jobs = {
            one["spec"]["podRef"]["name"]: [one.get("status", {}).get(key) for key in ("phase",
            "reason", "message")] for one in self.jobs.last.values()
        }  # fmt: skip
        kept = {
            one["metadata"]["name"]: one.get("status", {}) for one in self.reservations.now.values()
        }
        return f"jobs {jobs}, Reservations {kept}"

    # -- what there is -----------------------------------------------------------------------

    def running(self, **labels):
        """The pods that run with these labels, and are not leaving."""
        return [
            pod
            for pod in self.pods.now.values()
            if labels.items() <= pod["metadata"].get("labels", {}).items() and is_ready(pod)
        ]

    def open_jobs(self):
        """The jobs that have not ended."""
        return [one for one in self.jobs.now.values() if phase(one) not in ENDED]

    def held(self):
        """The Reservations that keep something, or may come to."""
        return [one for one in self.reservations.now.values() if phase(one) not in ENDED]

    def evicted(self):
        """The uids of pods of jobs that were told to leave, each with the version of that."""
        uids = {moved(one) for one in self.jobs.last.values()}
        found = {}
        for version, _, pod in self.pods.history:
            if "deletionTimestamp" in pod["metadata"] and pod["metadata"]["uid"] in uids:
                found.setdefault(pod["metadata"]["uid"], version)
        return found

    # -- what has to hold --------------------------------------------------------------------

    def problems(self):
        """What was evicted without a place, or did not come to the place that was kept for it.

        Pods of one workload take each other's places: there have to be as many as were evicted.
        """
        jobs, evicted = list(self.jobs.last.values()), self.evicted()
        moves = {uid: [one for one in jobs if moved(one) == uid] for uid in evicted}
        for uid, version in evicted.items():
            pod = self.pods.last[uid]
            name, left = pod["metadata"]["name"], pod["spec"]["nodeName"]
            kept = [state for one in moves[uid] for state in self._states(one, version)]
            if not any(phase(one) == "Available" and node_of(one) != left for one in kept):
                yield f"{name} was evicted and no place had been kept for it: {kept}"
            mine = [one for one in evicted if owner(self.pods.last[one]) == owner(pod)]
            sooner = [one for one in mine if evicted[one] <= version]
            places = [one for other in mine for one in moves[other] if self._is_kept(one, version)]
            if len(places) < len(sooner):
                yield f"{len(sooner)} pods like {name} were evicted for {len(places)} places"
        for one in jobs:
            if phase(one) == "Succeeded":
                yield from self._misplaced(one)

    def _reservation_of(self, job):
        return job["spec"].get("reservationOptions", {}).get("reservationRef", {}).get("uid")

    def _states(self, job, version):
        """What the Reservation of a job was before a version."""
        uid = self._reservation_of(job)
        return [
            one
            for at, kind, one in self.reservations.history
            if one["metadata"]["uid"] == uid and at < version and kind != "DELETED"
        ]

    def _is_kept(self, job, version):
        """Whether the Reservation of a job was there or had been used at a version."""
        states = self._states(job, version)
        return bool(states) and phase(states[-1]) in ("Available", "Succeeded")

    def _misplaced(self, job):
        name, new = job["metadata"]["name"], job["status"].get("podRef", {}).get("uid")
        pod = self.pods.last.get(new)
        kept = self.reservations.last.get(self._reservation_of(job))
        if pod is None or kept is None:
            yield f"{name} has succeeded without a new pod or a Reservation: {job['status']}"
            return
        if pod["spec"].get("nodeName") != kept["status"]["nodeName"]:
            yield f"{pod['metadata']['name']} is not on {kept['status']['nodeName']}"
        if kept["metadata"]["name"] not in pod["metadata"].get("annotations", {}).get(
            ALLOCATED, ""
        ):
            yield f"{pod['metadata']['name']} does not use the Reservation of {name}"

    def fewest_ready(self, **labels):
        """The smallest number of pods with these labels that were ready, once all had been."""
        ready, most, fewest = set(), 0, None
        for _, kind, pod in sorted(self.pods.history, key=lambda one: one[0]):
            if not labels.items() <= pod["metadata"].get("labels", {}).items():
                continue
            is_up = kind != "DELETED" and is_ready(pod)
            (ready.add if is_up else ready.discard)(pod["metadata"]["uid"])
            if len(ready) > most:
                most, fewest = len(ready), len(ready)
            fewest = min(len(ready), fewest or 0)
        return fewest

    def most_migrating(self):
        """How many jobs had begun and not ended at the same time: in all, and of one node."""
        begun, most, of_node = {}, 0, 0
        for _, kind, job in sorted(self.jobs.history, key=lambda one: one[0]):
            name, notes = job["metadata"]["name"], job["metadata"].get("annotations", {})
            is_open = kind != "DELETED" and phase(job) not in ENDED
            if is_open and notes.get(names.ANNOTATION_PASSED_ARBITRATION) == "true":
                begun[name] = notes[names.ANNOTATION_MIGRATION_SOURCE]
            else:
                begun.pop(name, None)
            most = max(most, len(begun))
            sources = list(begun.values())
            of_node = max([of_node, *map(sources.count, sources)])
        return most, of_node


def phase(body):
    """The phase of an object; empty where it has none yet."""
    return body.get("status", {}).get("phase", "")


def node_of(reservation):
    """The node of a Reservation."""
    return reservation["status"].get("nodeName", "")


def moved(job):
    """The uid of the pod that a job moves."""
    return job["spec"]["podRef"].get("uid")


def owner(pod):
    """The uid of the workload of a pod."""
    return pod["metadata"]["ownerReferences"][0]["uid"]


def is_ready(pod):
    """Whether a pod runs, is ready, and is not leaving."""
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


@contextlib.asynccontextmanager
async def opened(stage):
    """A record of everything from now on."""
    record = Record(stage)
    async with supervise.Supervisor("record") as supervisor:
        for kind in record.kinds:
            version = await raw.eventually(functools.partial(kind.list, stage.api))
            supervisor.spawn("watch", kind.follow(stage.api, version, record.told))
        yield record
