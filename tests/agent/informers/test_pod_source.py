"""Who tells the pods: the kubelet, and while it is silent the API server, seldom."""

import asyncio
import itertools
import json
import time

import aiohttp
import msgspec
import pytest
from aiohttp import web

from agent.informers import kubelet_client, kubelet_trust, pod_list_client, pod_source
from agent.model import cgroup_layout
from agent.observe.cgroups import pod_groups
from api.kubernetes import core
from kube.client import access, client
from process.runtime import metrics, supervise
from tests import loopback, patience

HASH = "5b0cc63f5b0cc63f5b0cc63f5b0cc63f"
MIRROR = {"kubernetes.io/config.mirror": HASH}


def pod(uid, version="5", **annotations):
    notes = {f"kubernetes.io/config.{name}": value for name, value in annotations.items()}
    metadata = {"name": uid, "uid": uid, "resourceVersion": version, "annotations": notes}
    return {"metadata": metadata, "spec": {"nodeName": "n"}}


class World:
    """A kubelet and an API server in one place, and whoever asks them."""

    def __init__(self, clock):
        self.clock = clock
        self.kubelet, self.kubelet_status = [], 200
        self.listed, self.version, self.status = [], "9", 200
        self.asked, self.read = 0, []
        self.figures = metrics.Registry()

    @property
    def busy(self):
        """Whether somebody waits for an answer rather than for time."""
        return self.clock.sleepers < 2

    async def pods_of_kubelet(self, _request):
        self.asked += 1
        return web.json_response({"items": self.kubelet}, status=self.kubelet_status)

    async def pods_of_api(self, request):
        self.read.append((self.clock.monotonic(), dict(request.query)))
        body = {"metadata": {"resourceVersion": self.version}, "items": self.listed}
        return web.json_response(body, status=self.status)

    def uids(self):
        return sorted(one.metadata.uid for one in self.pods.pods)

    async def seconds(self, count):
        for _ in range(count):
            await self.clock.advance(1)
            await asyncio.sleep(0.001)

    async def until(self, condition):
        """Let time pass second by second, and those who answer come to an end, until it is so."""
        end = time.monotonic() + patience.SECONDS
        while not condition():
            assert time.monotonic() < end, "waited too long"
            await asyncio.sleep(0.001)
            if not self.busy:
                await self.clock.advance(1)


@pytest.fixture
async def world(tmp_path):
    world = World(loopback.LoopbackClock())
    pages = web.Application()
    pages.router.add_get("/pods", world.pods_of_kubelet)
    pages.router.add_get("/api/v1/pods", world.pods_of_api)
    runner = web.AppRunner(pages)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with (
        aiohttp.ClientSession() as session,
        client.Client(access.Access(url), clock=world.clock) as kube,
        supervise.Supervisor("test") as tasks,
    ):
        asked = kubelet_client.Kubelet(
            session, url, kubelet_trust.Trust("off", None, tmp_path / "pin")
        )
        habits = pod_source.Habits(10.0, 6.0, 12.0, 4.0, 60.0)
        world.pods = pod_source.Pods(asked, kube, "n", world.clock, habits, chance=lambda: 0.5)
        world.pods.show(world.figures)
        world.start = lambda: world.pods.start(tasks)
        yield world
    await runner.cleanup()


def by(world):
    names = ("kubelet", "api-server", "nobody")
    values = [world.figures.value("koord_agent_pods_source", {"source": name}) for name in names]
    return names[values.index(1.0)]


async def test_the_kubelet_tells_and_the_api_server_is_left_alone(world):
    world.kubelet = [pod("a")]
    assert (by(world), world.pods.age) == ("nobody", None)
    world.start()
    await world.until(lambda: world.uids() == ["a"])
    await world.seconds(100)
    assert (by(world), world.pods.problem, world.read) == ("kubelet", "", [])


async def test_the_api_server_stands_in_seldom_and_the_kubelet_takes_over(world):
    world.kubelet = [pod("a"), pod(HASH, hash=HASH, source="file"), pod("own", source="http")]
    world.start()
    await world.until(lambda: len(world.uids()) == 3)
    since, world.kubelet_status = world.clock.monotonic(), 503
    world.listed = [pod("b", "8"), pod("mirror", hash=HASH, mirror=HASH)]
    await world.until(lambda: world.pods.source == "api-server")
    # The mirror counts under the uid of its groups; what has none is the kubelet's affair.
    assert world.uids() == sorted(["b", HASH, "own"])
    assert 9 <= world.read[0][0] - since <= 25
    assert world.read[0][1] == {"fieldSelector": "spec.nodeName=n", "resourceVersion": "0"}
    assert "answered 503; the API server tells the pods meanwhile" in world.pods.problem
    assert by(world) == "api-server"
    before = len(world.read)
    await world.seconds(120)
    assert 9 <= len(world.read) - before <= 11
    world.kubelet, world.kubelet_status = [pod("c", "12")], 200
    await world.until(lambda: world.pods.source == "kubelet")
    assert (world.uids(), world.pods.problem) == (["c"], "")
    before = len(world.read)
    await world.seconds(60)
    assert len(world.read) == before


@pytest.mark.parametrize(
    ("version", "items", "status", "said", "after"),
    [
        ("4", [pod("b")], 200, "version 4, and 5 is known", ["a"]),
        ("9", [], 200, "empty answer 1 of 3", ["a"]),
        ("9", [], 403, "403", ["a"]),
        ("9", 7, 200, "no list of pods", ["a"]),
        ("5", [pod("b")], 200, "", ["b"]),
    ],
    ids=["older", "empty", "refused", "garbage", "as old"],
)
async def test_what_is_believed(world, version, items, status, said, after):
    world.kubelet = [pod("a")]
    world.start()
    await world.until(lambda: world.uids() == ["a"])
    world.kubelet_status = 401
    world.version, world.listed, world.status = version, items, status
    await world.until(lambda: world.read and (world.uids() == ["b"] or said in world.pods.problem))
    assert world.uids() == after
    if said:
        assert "the last list stands" in world.pods.problem
    if said.startswith("empty"):
        await world.until(lambda: world.uids() == [])
        assert len(world.read) == 3


async def test_an_api_server_that_lags_is_read_again_soon(world):
    world.kubelet = [pod("a")]
    world.start()
    await world.until(lambda: world.uids() == ["a"])
    world.kubelet_status, world.version, world.listed = 401, "4", [pod("b")]
    await world.until(lambda: "version 4, and 5 is known" in world.pods.problem)
    world.version = "6"
    await world.until(lambda: world.uids() == ["b"])
    assert round(world.read[1][0] - world.read[0][0]) == 4
    assert len(world.read) == 2


async def test_after_failures_the_pauses_grow_to_their_bound(world):
    world.kubelet_status, world.status = 500, 403
    world.start()
    await world.until(lambda: len(world.read) == 8)
    moments = [at for at, _ in world.read]
    pauses = [round(b - a) for a, b in itertools.pairwise(moments)]
    assert pauses == [4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
async def test_agents_do_not_read_together(world, share):
    world.pods._chance = lambda: share
    world.kubelet_status = 500
    world.start()
    await world.until(lambda: world.read)
    # An answer takes a turn or two of the loop in which the second passes.
    assert 0 <= world.read[0][0] - 6 * (1 + share) <= 2


async def test_a_kubelet_that_just_began_does_not_empty_the_list(world):
    world.kubelet_status, world.listed = 500, [pod("b", "9")]
    world.start()
    await world.until(lambda: world.uids() == ["b"])
    world.kubelet, world.kubelet_status = [], 200
    before = world.asked
    await world.until(lambda: "empty answer" in world.pods.problem)
    assert world.uids() == ["b"]
    await world.until(lambda: world.uids() == [])
    assert world.asked - before >= 3


async def test_changed_groups_are_asked_about_soon_and_not_for_ever(world):
    world.start()
    await world.until(lambda: world.asked == 1)
    await world.seconds(5)
    world.pods.hurry()
    await world.until(lambda: world.asked == 2)
    await world.seconds(60)
    # Every two seconds for ten, then every ten again.
    assert 9 <= world.asked <= 13
    before = world.asked
    for _ in range(60):
        world.pods.hurry()
        await world.seconds(1)
    assert 25 <= world.asked - before <= 32


def test_groups_that_come_and_go_are_noticed(tmp_path):
    arranged, looks = cgroup_layout.Layout(str(tmp_path), 2, "cgroupfs"), pod_groups.Newcomers()
    assert not looks.changed(None)
    assert [looks.changed(arranged) for _ in range(2)] == [False, False]
    group = tmp_path / "kubepods" / "besteffort" / "podx"
    group.mkdir(parents=True)
    assert [looks.changed(arranged) for _ in range(2)] == [True, False]
    group.rmdir()
    assert [looks.changed(arranged) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("version", ["", "x", "7", "9" * 5000])
def test_the_newest_version_of_pods(version):
    found = json.dumps([pod("a", version), pod("b", "3")])
    decoded = msgspec.json.decode(found, type=list[core.Pod])
    assert pod_list_client.newest(decoded) == (7 if version == "7" else 3)


def test_of_two_mirrors_of_one_static_pod_the_older_is_believed():
    pods = [
        core.Pod(core.ObjectMeta(uid=uid, creation_timestamp=created, annotations=MIRROR))
        for uid, created in (("late", "2026-01-02T00:00:00Z"), ("early", "2026-01-01T00:00:00Z"))
    ]
    assert [one.metadata.uid for one in pod_list_client.by_cgroup(pods)] == ["late", HASH]
