"""A watch proves that it has delivered everything, without a list."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from api import resources
from api.kubernetes import core
from kube.client import client, errors
from kube.informers import barrier, informer_set, reflector
from process.runtime import supervise
from tests import patience

PODS = "/api/v1/pods"
OWN = "/api/v1/namespaces/koord/pods/own"
KEY = "koord.sh/barrier"
Make = Callable[..., informer_set.InformerSet]


class Server:
    """An API server with a revision, watches that deliver on command, and a pod of ours."""

    def __init__(self, script: Any) -> None:
        self.revision = 100
        self.notes: dict[str, str] = {"kept": "yes"}
        self.own_version = 90
        self.script = script
        self.behind: list[dict[str, Any]] | None = None
        self.told: list[dict[str, Any]] = []
        self.open: list[asyncio.Queue[dict[str, Any] | None]] = []
        script.on("GET", PODS, self._get)
        script.on("PATCH", OWN, self._patch)

    @property
    def lists(self) -> list[dict[str, str]]:
        return [seen.query for seen in self.script.calls("GET", PODS) if "watch" not in seen.query]

    @property
    def watches(self) -> list[dict[str, str]]:
        return [seen.query for seen in self.script.calls("GET", PODS, watch="true")]

    def deliver(self, kind: str, raw: dict[str, Any]) -> None:
        if self.behind is not None:
            self.behind.append({"type": kind, "object": raw})
            return
        event = {"type": kind, "object": raw}
        self.told.append(event)
        for queue in self.open:
            queue.put_nowait(event)

    def catch_up(self) -> None:
        late, self.behind = self.behind or [], None
        for event in late:
            self.deliver(event["type"], event["object"])

    def end(self) -> None:
        for queue in self.open:
            queue.put_nowait(None)

    def set_back(self, revision: int) -> None:
        """Forget what happened since a revision, as a server restored from a copy."""
        self.revision = revision
        self.told.clear()

    def bookmark(self, version: int) -> None:
        self.deliver("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            metadata = {"resourceVersion": str(self.revision)}
            return web.json_response({"metadata": metadata, "items": []})
        answer, queue = web.StreamResponse(), asyncio.Queue[dict[str, Any] | None]()
        await answer.prepare(request)
        self.open.append(queue)
        # What happened between a list and its watch belongs to the watch.
        for event in self.told:
            if _version(event) > int(request.query["resourceVersion"]):
                queue.put_nowait(event)
        try:
            while (event := await queue.get()) is not None:
                await answer.write(orjson.dumps(event) + b"\n")
            return answer
        finally:
            self.open.remove(queue)

    async def _patch(self, request: web.Request) -> web.StreamResponse:
        notes = orjson.loads(await request.read())["metadata"]["annotations"]
        if self.notes | notes != self.notes:
            self.revision += 1
            self.notes, self.own_version = self.notes | notes, self.revision
        raw = {
            "metadata": {
                "name": "own",
                "namespace": "koord",
                "uid": "uid-own",
                "annotations": self.notes,
                "resourceVersion": str(self.own_version),
            },
            "spec": {"nodeName": "n1", "containers": []},
            "status": {},
        }
        self.deliver("MODIFIED", raw)
        return web.json_response(raw)


def _version(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


@pytest.fixture
async def told(server: Any) -> AsyncIterator[Server]:
    made = Server(server)
    yield made
    made.end()


@pytest.fixture
async def pods(
    told: Server, watched: Make, supervisor: supervise.Supervisor
) -> reflector.Reflector[str]:
    """A reflector of pods whose watch is open."""
    members = watched(silence_seconds=60)
    store = members.add(reflector.Projection(resources.PODS, core.Pod, lambda p: p.spec.node_name))
    members.start(supervisor)
    await members.synced()
    await told.script.until(lambda: told.open)
    return members.of(store)


@pytest.fixture
def wall(api: client.Client, pods: reflector.Reflector[str]) -> barrier.Barrier[str]:
    return barrier.Barrier(api, pods, barrier.Marker("koord", "own", KEY), "test")


async def passes(
    wall: barrier.Barrier[str], version: int, seconds: float = patience.SECONDS
) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await wall.reached(version)
    except TimeoutError:
        return False
    return True


async def test_the_echo_of_a_write_proves_what_came_before_it(
    told: Server, wall: barrier.Barrier[str], pods: reflector.Reflector[str]
) -> None:
    told.revision = 150
    version = await wall.place()
    assert version == 151
    assert await passes(wall, version)
    assert pods.progress.version == 151
    assert pods.store.get("koord/own") == "n1"
    assert len(told.lists) == 1, "the first one only"
    assert len(told.watches) == 1


async def test_every_barrier_is_a_write_of_its_own(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    versions = [await wall.place() for _ in range(3)]
    assert versions == [101, 102, 103]
    assert told.notes["kept"] == "yes"


async def test_a_watch_that_is_behind_passes_once_it_has_caught_up(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    told.behind = []
    version = await wall.place()
    assert not await passes(wall, version, 0.1)
    told.catch_up()
    assert await passes(wall, version)


async def test_events_up_to_an_older_version_do_not_pass(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    told.behind = []
    version = await wall.place()
    late, told.behind = told.behind, None
    told.bookmark(version - 1)
    assert not await passes(wall, version, 0.1)
    for event in late:
        told.deliver(event["type"], event["object"])
    assert await passes(wall, version)


@pytest.mark.parametrize("status", [403, 404, 409, 422])
async def test_without_a_pod_of_our_own_a_bookmark_proves_it(
    told: Server, wall: barrier.Barrier[str], status: int
) -> None:
    told.script.on("PATCH", OWN, told.script.refuse(status))
    told.revision = 130
    version = await wall.place()
    assert version == 130
    await told.script.until(lambda: len(told.watches) == 2 and told.open)
    # A short life is what makes the API server send the bookmark at once.
    assert told.watches[1]["timeoutSeconds"] == "3"
    assert told.watches[1]["resourceVersion"] == "100"
    assert await wall.place() == 130
    assert not await passes(wall, version, 0.1)
    told.bookmark(130)
    assert await passes(wall, version)
    assert len(told.watches) == 2, "one short watch is enough"
    assert told.lists[1:] == [{"limit": "1"}, {"limit": "1"}]


async def test_a_watch_that_is_there_already_is_left_alone(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    told.script.on("PATCH", OWN, told.script.refuse(404))
    version = await wall.place()
    assert await passes(wall, version)
    assert len(told.watches) == 1


async def test_an_annotation_that_somebody_puts_back_is_no_barrier(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    """Such an answer carries the version of an old change, which proves nothing."""
    raw = {"metadata": {"resourceVersion": "90", "annotations": {KEY: "another"}}}
    told.script.on("PATCH", OWN, told.script.json(raw))
    told.revision = 140
    version = await wall.place()
    assert version == 140
    assert not await passes(wall, version, 0.1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": 7}, id="no object"),
        pytest.param({"metadata": {"annotations": 7, "resourceVersion": "900"}}, id="no notes"),
    ],
)
async def test_an_answer_of_another_shape_is_no_barrier(
    told: Server, wall: barrier.Barrier[str], answer: Any
) -> None:
    told.script.on("PATCH", OWN, told.script.json(answer))
    assert await wall.place() == 100


@pytest.mark.parametrize("with_marker", [True, False], ids=["written", "read"])
async def test_a_server_that_was_set_back_is_listed_again(
    told: Server,
    wall: barrier.Barrier[str],
    pods: reflector.Reflector[str],
    with_marker: bool,
) -> None:
    if not with_marker:
        told.script.on("PATCH", OWN, told.script.refuse(404))
    told.bookmark(500)
    await told.script.until(lambda: pods.progress.version == 500)
    told.set_back(300)
    with pytest.raises(errors.Malformed, match="listed again"):
        await wall.place()
    await told.script.until(lambda: pods.progress.version in (300, 301))
    version = await wall.place()
    assert await passes(wall, version)


async def test_a_server_that_gives_no_answer_is_no_proof(
    told: Server, wall: barrier.Barrier[str]
) -> None:
    told.script.on("PATCH", OWN, told.script.drop())
    with pytest.raises(errors.Unreachable):
        await wall.place()


async def test_whoever_gives_up_waiting_leaves_nothing_behind(
    wall: barrier.Barrier[str], pods: reflector.Reflector[str]
) -> None:
    assert not await passes(wall, 10_000, 0.1)
    assert pods.progress._waiting == []


async def test_random_deliveries_never_pass_too_early(
    told: Server, wall: barrier.Barrier[str], pods: reflector.Reflector[str], rng: random.Random
) -> None:
    """Whatever comes late, a barrier is passed exactly when its version has been delivered."""
    for _ in range(60):
        told.behind = [] if rng.random() < 0.5 else None
        version = await wall.place()
        if told.behind is None:
            await wall.reached(version)
        else:
            await asyncio.sleep(0)
            assert pods.progress.version < version
            told.catch_up()
            await wall.reached(version)
        assert pods.progress.version == version
