"""Bind as a transaction: outcomes, idempotence, and interruption at every step."""

import asyncio
import json

import pytest

from api import names
from extender.state import invariants
from kube.client import errors
from tests import patience
from tests.extender.verbs.bind_world import Killed, World


@pytest.fixture
def world(picture, make):
    made = World(picture, make)
    yield made
    live = [picture.record(raw) for raw in made.server.pods.values()]
    on_server = {pod.uid: pod.node for pod in live if pod and pod.node}
    for uid, promise in picture.books.assumptions.items():
        assert promise.uncertain or on_server.get(uid) == promise.placed.node
    over = invariants.over_lent(picture.cluster, "BatchFit")
    assert over == ([] if made.enforced else ["n1 has lent 1600 too much"])


async def test_a_pod_is_bound_with_its_placement_in_the_same_write(world):
    world.create()
    assert await world.bind() == ""
    payload = json.loads(world.server.annotations[names.PLACEMENT])
    assert payload["v"] == 1
    assert payload["id"] == "decision-1"
    assert payload["node"] == "n1"
    assert payload["granted"] == {"BatchFit": {"cpu": "10"}}
    assert "BatchFit: passed" in payload["reasons"]
    assert payload["at"].endswith("Z")
    assert world.counted() == "n1"
    assert len(world.picture.books.assumptions) == 1
    world.observe()
    assert not world.picture.books.assumptions
    assert world.counted() == "n1"


async def test_the_second_pod_finds_less_although_no_echo_has_come(world):
    world.create("first")
    world.create("second")
    assert await world.bind(name="first") == ""
    answer = await world.bind(name="second")
    assert "asks 10, 4.4 may be lent" in answer
    assert world.counted("second") == ""


async def test_figures_are_computed_while_the_api_server_answers(world):
    world.create()
    world.server.gate = asyncio.Event()
    binding = asyncio.gather(world.bind())
    await patience.until(
        lambda: world.counted() and not world.picture.cluster.stale_rows(),
        lambda: asyncio.sleep(0),
    )
    assert not binding.done()
    world.server.gate.set()
    assert await binding == [""]


async def test_two_binds_at_the_same_moment_cannot_both_take_the_rest(world):
    world.create("first")
    world.create("second")
    world.server.gate = asyncio.Event()
    both = asyncio.gather(world.bind(name="first"), world.bind(name="second"))
    await asyncio.sleep(0)
    world.server.gate.set()
    assert sorted(answer == "" for answer in await both) == [False, True]


async def test_binding_again_to_the_same_node_is_success_and_to_another_is_not(world):
    world.create()
    assert await world.bind() == ""
    assert await world.bind() == ""
    assert "already bound to n1" in await world.bind(node="n2")
    world.observe()
    assert await world.bind() == ""
    assert "already bound to n1" in await world.bind(node="n2")
    assert world.server.writes == 1


async def test_a_call_for_a_bind_in_progress_shares_its_result(world):
    world.create()
    world.server.gate = asyncio.Event()
    calls = asyncio.gather(world.bind(), world.bind(), world.bind(node="n2"))
    await asyncio.sleep(0)
    world.server.gate.set()
    first, second, other = await calls
    assert (first, second) == ("", "")
    assert "being bound to n1" in other
    assert world.server.writes == 1


@pytest.mark.parametrize(
    ("fault", "success", "held"),
    [
        pytest.param("refused", False, "", id="write refused"),
        pytest.param("not sent", False, "", id="no connection, so certainly not written"),
        pytest.param(
            "lost before write", False, "", id="no answer, not written: fenced, so released"
        ),
        pytest.param("answer lost", True, "n1", id="written, answer lost: success"),
        pytest.param(
            "server failure", False, "", id="server failed, not written: fenced, so released"
        ),
        pytest.param("both fail", False, "n1", id="nothing is known: still held"),
    ],
)
async def test_outcome_of_a_write(world, fault, success, held):
    world.create()
    world.server.fault = fault
    answer = await world.bind()
    assert (answer == "") is success
    assert world.counted() == held
    world.server.fault = None
    assert await world.bind() == ""
    assert world.server.writes == 1


async def test_reading_back_that_gets_no_answer_does_not_hold_the_caller(world):
    world.create()
    world.server.fault = "lost before write"
    never = asyncio.Event()

    async def get(*args, **options):
        await never.wait()

    world.server.patch = get

    async def time_passes():
        await world.clock.settle()
        await world.clock.advance(9)

    answer, _ = await asyncio.gather(world.bind(), time_passes())
    assert "no known outcome" in answer
    assert "no answer in time" in answer
    assert world.counted() == "n1"
    del world.server.patch


async def test_a_place_is_held_until_the_fence_before_its_pod_is_answered(world):
    world.create()
    world.server.fault = "both fail"
    assert "no known outcome" in await world.bind()
    world.server.fault = "patch fails"
    await world.binder.outcomes.sweep_once()
    assert world.counted() == "n1"
    assert "could not be read" in await world.bind(node="n2")
    assert world.counted() == "n1"
    world.server.fault = None
    await world.binder.outcomes.sweep_once()
    assert world.counted() == ""
    assert world.server.fences == 1


LATE = [
    pytest.param("settled", id="the attempt itself fences the pod"),
    pytest.param("retried", id="the next attempt fences the pod"),
    pytest.param("swept", id="the sweep fences the pod"),
]


@pytest.mark.parametrize("cleared", LATE)
async def test_a_binding_that_arrives_late_fails_once_its_place_was_given_away(world, cleared):
    """The scheduler has gone on with another node, and another pod has taken the first one."""
    world.create("job")
    world.server.fault = "stalls"
    if cleared == "settled":
        assert "binding failed" in await world.bind()
    else:
        patch, world.server.patch = world.server.patch, unanswered
        assert "no known outcome" in await world.bind()
        world.server.patch = patch
        assert world.counted() == "n1"
    world.server.fault = None
    if cleared == "swept":
        await world.binder.outcomes.sweep_once()
    if cleared == "retried":
        assert await world.bind(node="n2") == ""
    world.create("other")
    assert await world.bind(name="other") == ""
    assert world.server.deliver() == ["Conflict"]
    assert [pod["spec"]["nodeName"] for pod in world.server.pods.values()].count("n1") == 1


async def unanswered(*args, **options):
    raise errors.Unreachable("no answer")


async def test_a_binding_that_was_faster_than_the_fence_is_kept(world):
    world.create()
    world.server.fault = "stalls"
    patch, world.server.patch = world.server.patch, unanswered
    assert "no known outcome" in await world.bind()
    world.server.patch = patch
    assert world.server.deliver() == ["bound"]
    assert "already bound to n1" in await world.bind(node="n2")
    assert world.counted() == "n1"
    world.observe()


async def test_an_attempt_that_meets_a_newer_fence_ends_and_does_not_try_again(world):
    """Somebody who took over has fenced the pod between the check and the write of this one."""
    world.create()
    world.server.fault = None
    world.server.gate = asyncio.Event()

    async def fence():
        await asyncio.sleep(0)
        fenced = {"metadata": {"uid": "uid-job", "annotations": {names.ANNOTATION_FENCE: "later"}}}
        await world.server.patch(None, "job", fenced, namespace="default")
        world.server.gate.set()

    answer, _ = await asyncio.gather(world.bind(), fence())
    assert answer == "a later attempt to bind the pod has begun; nothing was written"
    assert (world.server.writes, world.counted()) == (0, "")
    world.server.gate = None
    world.observe()
    assert await world.bind() == ""


async def test_every_fence_moves_the_version_and_names_the_pod_it_means(world):
    world.create()
    for _ in range(3):
        world.server.fault = "stalls"
        assert "binding failed" in await world.bind()
    assert world.server.fences == 3
    assert world.server.deliver() == ["Conflict"] * 3
    patch, world.server.patch = world.server.patch, unanswered
    await world.bind()
    world.server.patch = patch
    world.create(uid="uid-other", seen=False)
    await world.binder.outcomes.sweep_once()
    assert world.counted() == ""
    assert world.server.fences == 3
    assert world.server.deliver() == ["Conflict"]


async def test_a_place_whose_echo_is_late_is_kept_as_long_as_the_pod_is_there(world):
    world.create()
    assert await world.bind() == ""
    await world.clock.advance(31)
    await world.binder.outcomes.sweep_once()
    assert world.counted() == "n1"
    del world.server.pods["default/job"]
    await world.clock.advance(31)
    await world.binder.outcomes.sweep_once()
    assert world.counted() == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param("deleted", "gone", id="pod is gone"),
        pytest.param("replaced", "gone or was replaced", id="name has another uid"),
        pytest.param("bound elsewhere", "already bound to n2", id="somebody else bound it"),
        pytest.param("bound here", "", id="somebody else bound it to the same node"),
    ],
)
@pytest.mark.parametrize("seen", [True, False], ids=["watch is behind", "watch never saw it"])
async def test_the_pod_changed_before_the_write(world, change, text, seen):
    raw = world.create(seen=seen)
    if change == "deleted":
        del world.server.pods["default/job"]
    elif change == "replaced":
        world.create(uid="uid-other", seen=False)
    else:
        raw["spec"]["nodeName"] = "n2" if change == "bound elsewhere" else "n1"
    answer = await world.bind()
    assert text in answer if text else answer == ""
    if text:
        assert world.counted() == ""
    if change == "bound here":
        world.observe()


async def test_an_unknown_node_is_refused(world):
    world.create()
    assert await world.bind(node="n9") == "node n9 is not known"


async def test_nothing_is_written_for_a_caller_that_has_gone(world):
    world.create()
    assert "stopped waiting" in await world.bind(connected=lambda: False)
    assert world.server.writes == 0
    assert world.counted() == ""


async def test_a_write_that_stood_still_after_the_check_is_held_back(world):
    world.create()
    world.server.gate = asyncio.Event()

    async def stand_still():
        await asyncio.sleep(0)
        assert world.counted() == "n1"
        await world.clock.advance(6)
        world.server.gate.set()

    answer, _ = await asyncio.gather(world.bind(), stand_still())
    assert answer == "too much time passed between the check and the write; nothing was written"
    assert world.server.writes == 0
    assert world.counted() == ""


async def test_a_pod_that_changed_unseen_is_checked_and_written_again(world):
    raw = world.create()
    raw["metadata"]["resourceVersion"] = "7"
    world.observe()
    raw["metadata"]["resourceVersion"] = "8"
    assert await world.bind() == ""
    assert world.server.versions == ["7", "8"]
    assert (world.server.writes, world.server.reads) == (1, 1)


async def test_a_pod_that_changed_is_left_alone_when_the_call_is_old(world):
    """Whoever took over meanwhile has looked at the pod and may have filled its place."""
    raw = world.create()
    raw["metadata"]["resourceVersion"] = "7"
    world.observe()
    raw["metadata"]["resourceVersion"] = "8"
    read_slowly(world)
    answer = await world.bind()
    assert answer == "pod changed while it was being bound; nothing was written"
    assert world.server.writes == 0
    assert world.counted() == ""


def read_slowly(world):
    """Let reading the pod back take long."""
    read = world.server.get

    async def slow(*args, **options):
        await world.clock.advance(6)
        return await read(*args, **options)

    world.server.get = slow


async def test_observing_binds_what_would_be_refused(world):
    world.enforced = False
    world.create(requests={"kubernetes.io/batch-cpu": "15000"})
    assert "asks 15, 14.4 may be lent" in await world.bind()
    world.picture.switches.take({"extender": "observe"})
    assert await world.bind() == ""
    world.create("native", requests={"cpu": "1"})
    world.picture.switches.take({"extender": "off"})
    assert await world.bind(name="native") == ""
    assert json.loads(world.server.annotations[names.PLACEMENT])["reasons"] == []


@pytest.mark.parametrize(
    "step", ["killed in read", "killed before write", "killed after write", "not killed"]
)
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
async def test_killed_at_any_step_and_started_again_nothing_is_booked_twice_or_lost(
    world, make, step, seen
):
    world.create(seen=seen)
    world.server.fault = step
    try:
        await world.bind()
    except Killed:
        killed = True
    else:
        killed = False
    assert killed or step == "not killed" or seen
    world.server.fault = None
    fresh = type(world.picture)()
    again = World(fresh, make)
    again.server = world.server
    again.binder = again.started()
    again.observe()
    bound = world.server.pods["default/job"]["spec"]["nodeName"]
    assert again.counted() == bound
    assert invariants.check(fresh.books, fresh.truth.values()) == []
    answer = await again.bind(node="n1")
    assert answer == ""
    again.observe()
    assert again.counted() == "n1"
    assert world.server.writes == 1
    assert invariants.check(fresh.books, fresh.truth.values()) == []
    # The old picture ends with its process; what it believes matters no more.
    world.picture.books.forget("uid-job")
    world.observe()
