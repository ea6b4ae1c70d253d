"""Each invariant notices what it is there for."""

import asyncio

import msgspec
import pytest
import yarl

from extender.state import deltas
from kube.client.connections import connection_pool
from tests.planes import raw
from tests.system import invariants

# A whole system starts for each test, which takes long on a busy machine.
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def placed(world):
    """One node with one pod that was bound by the extender."""
    await world.add_node("a")
    await world.create("job", cpu=2, batch=True)
    await world.bound("job")
    await world.until(lambda: not world.extender.books.assumptions, "the watch confirms it")
    # From here on nothing is told about the pod any more.
    await world.until(lambda: world.pod("job")["status"]["phase"] == "Running", "it runs")
    await world.pass_time(5)
    return world


async def test_all_is_well_after_a_bind(placed):
    assert await invariants.broken(placed, {}) == []


async def test_an_overcommitted_node_is_noticed(placed):
    await placed.create("huge", cpu=20, bound="a")
    (problem,) = invariants.overcommitted(placed)
    assert problem == "I1 node a gave 20000 of 16000 cpu"


async def test_a_pod_without_a_placement_is_noticed(placed):
    await placed.create("foreign", cpu=1, bound="a")
    (problem,) = invariants.misplaced(placed)
    assert problem.startswith("I2 pod foreign is on a")


async def test_a_promise_without_a_pod_is_noticed(placed):
    books = placed.extender.books
    uid = placed.pod("job")["metadata"]["uid"]
    ghost = msgspec.structs.replace(books.cluster.placed(uid), uid="ghost", node="")
    books.assume(ghost, "a", placed.clock.now(), placed.clock.monotonic())
    assert invariants.misplaced(placed) == ["I2 promise for ghost has no pod"]
    # The extender reads it back by itself and lets it go.
    await placed.pass_time(invariants.PROMISES_SECONDS)
    assert invariants.misplaced(placed) == []


def test_a_second_binding_is_noticed():
    assert invariants.doubled({"u": 2, "v": 1}) == ["I2 pod u was bound 2 times"]


async def test_a_picture_that_drifts_is_noticed(placed):
    cluster = placed.extender.books.cluster
    uid = placed.pod("job")["metadata"]["uid"]
    cluster.apply(deltas.ClaimDelta(uid, cluster.claim(uid), None))
    assert any(problem.startswith("I3 node a") for problem in await invariants.drifted(placed))


async def test_a_pod_that_waits_without_a_reason_is_noticed(placed):
    await placed.plane.stop_scheduler()
    await placed.create("forgotten", cpu=1)
    assert invariants.unexplained(placed) == ["I4 pod forgotten waits without a reason"]


async def test_readiness_that_fails_is_noticed(placed):
    placed.extender.health.add("trouble", lambda: "planted")
    problems = await invariants.untruthful(placed)
    assert problems == ["I6 extender is not ready: {'trouble': 'planted'}"]


@pytest.mark.parametrize(
    ("sizes", "noticed"),
    [
        pytest.param([(180 + n, 190) for n in range(9)], ["tasks"], id="a task per death"),
        pytest.param([(180, 190 + n) for n in range(9)], ["file descriptors"], id="a file"),
        pytest.param(
            [(180 + 2 * n, 190 + 2 * n + 6 * (n % 2)) for n in range(9)],
            ["tasks", "file descriptors"],
            id="two of each, while pools breathe",
        ),
        pytest.param([(180, 190 + 8 * (n % 2)) for n in range(9)], [], id="pools breathe"),
        pytest.param([(181, 189)] * 2 + [(182, 195)] * 7, [], id="a pool warms up"),
    ],
)
def test_what_every_death_leaves_behind_is_noticed(sizes, noticed):
    problems = invariants.growing(sizes)
    assert [problem.split(" grow")[0] for problem in problems] == [f"I5 {what}" for what in noticed]


async def test_connections_count_while_somebody_uses_them_and_not_while_they_rest(placed):
    gate = placed.processes["manager"].uplink
    before, used = invariants.size(placed), 2 * invariants.FILES_OF_A_CONNECTION

    async def grown(by):
        # Files are open for a moment at any time.
        await placed.until(lambda: invariants.size(placed)[1] == before[1] + by, f"{by} files")

    async with raw.connected(gate.url, placed.plane.ca, placed.plane.token) as api:
        async with placed.flowing():
            await api.get("/api/v1/nodes")
        await grown(0)
        for _ in range(2):
            # One connection to the gate and one from there on, where the watch has its own tasks.
            async with placed.flowing(), api.watch("/api/v1/nodes"):
                await grown(used)
                assert invariants.size(placed)[0] > before[0]


async def test_a_connection_that_no_pool_knows_is_noticed(placed):
    assert invariants.strays() == []
    loop, url = asyncio.get_running_loop(), yarl.URL(placed.plane.server)
    _, lost = await loop.create_connection(connection_pool.Connection, url.host, url.port)
    assert len(invariants.strays()) == 1
    lost.close()
    assert invariants.strays() == []


def test_files_of_a_group_that_is_gone_are_noticed_while_they_are_open(tmp_path):
    path = tmp_path / "cgroup" / "kubepods.slice" / "cpu.stat"
    path.parent.mkdir(parents=True)
    path.write_text("")
    with path.open():
        assert invariants.held(tmp_path) == []
        path.unlink()
        assert invariants.held(tmp_path) == [f"{path} (deleted)"]
    assert invariants.held(tmp_path) == []
