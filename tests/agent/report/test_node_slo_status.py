"""The status of the NodeSLO: when it took effect, what is enforced, how seldom it is written."""

import pytest

from agent.decide import spec_enforcement
from agent.informers import node_objects
from agent.report import node_slo_status
from domain import conditions
from kube.client import access, client

AT = 1.7e9
MOMENT = "2023-11-14T22:13:20Z"
EFFECTIVE = {"type": "Effective", "status": "True"}
LATE = node_slo_status.SETTLE_SECONDS + node_slo_status.SPREAD_SECONDS


@pytest.fixture
async def status(api, clock):
    async with client.Client(access.Access(api.url), clock=clock) as kube:
        yield node_slo_status.NodeSloStatus(kube, clock, "n1", lambda: 1.0)


def stated(generation=1, *, said=(), uid="u"):
    return node_objects.Stated(uid, generation, "7", said)


def verdict(text="enforced: cpu-suppress", *, applied=True):
    one = conditions.Condition("Enforced", applied, "AllEnforced", text)
    return spec_enforcement.Verdict(one, applied)


def condition(text="enforced: cpu-suppress", *, holds="True", generation=1):
    return {
        "type": "Enforced",
        "status": holds,
        "reason": "AllEnforced",
        "message": text,
        "lastTransitionTime": MOMENT,
        "observedGeneration": generation,
    }


async def test_what_took_effect_is_told_at_once_and_conditions_of_others_stay(status, api):
    assert await status.step(stated(said=[EFFECTIVE]), verdict(), AT)
    ((path, body),) = api.bodies
    assert path == "/apis/slo.koordinator.sh/v1alpha1/nodeslos/n1/status"
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "status": {
            "conditions": [EFFECTIVE, condition()],
            "nodeMetric": {"updateTime": MOMENT},
        },
    }


async def test_what_took_effect_and_is_said_already_is_told_with_the_moment_alone(status, api):
    assert await status.step(stated(said=[condition()]), verdict(), AT)
    assert api.bodies[0][1]["status"] == {"nodeMetric": {"updateTime": MOMENT}}
    assert not await status.step(stated(said=[condition()]), verdict(), AT + 1)


@pytest.mark.parametrize("generation", [1, 2])
async def test_what_is_not_enforced_is_told_when_the_start_is_over(status, api, clock, generation):
    seen, said = stated(generation), verdict("only observed: cpu-suppress", applied=False)
    assert not await status.step(seen, said, AT)
    await clock.advance(LATE)
    assert await status.step(seen, said, AT)
    expected = condition("only observed: cpu-suppress", holds="False", generation=generation)
    assert api.bodies[0][1]["status"] == {"conditions": [expected]}


async def test_a_host_that_wavers_is_told_of_once_a_minute(status, api, clock):
    seen: tuple = ()
    for second in range(600):
        said = verdict(f"failed: memory-qos ({second % 7})", applied=False)
        if await status.step(stated(said=seen), said, AT):
            seen = api.bodies[-1][1]["status"]["conditions"]
        await clock.advance(1)
    assert 8 <= len(api.bodies) <= 11


async def test_what_stands_is_never_written_again(status, api, clock):
    for _ in range(600):
        await status.step(stated(said=[condition()]), verdict(), AT)
        await clock.advance(1)
    assert len(api.bodies) == 1


async def test_a_condition_that_another_client_dropped_comes_back(status, api, clock):
    assert await status.step(stated(), verdict(), AT)
    await clock.advance(node_slo_status.SELDOM_SECONDS)
    assert await status.step(stated(said=[EFFECTIVE]), verdict(), AT)
    assert api.bodies[1][1]["status"] == {"conditions": [EFFECTIVE, condition()]}


@pytest.mark.parametrize("again", [stated(2), stated(uid="v")], ids=["changed", "made anew"])
async def test_every_spec_is_told_of(status, api, again):
    assert await status.step(stated(said=[condition()]), verdict(), AT)
    assert await status.step(again, verdict(), AT)
    assert "nodeMetric" in api.bodies[1][1]["status"]


async def test_after_a_conflict_it_is_tried_with_what_the_watch_brings(status, api, clock):
    api.statuses = [409]
    assert not await status.step(stated(), verdict(), AT)
    await clock.advance(2)
    assert await status.step(stated(said=[EFFECTIVE]), verdict(), AT)
    assert api.bodies[1][1]["status"]["conditions"] == [EFFECTIVE, condition()]


async def test_a_status_that_is_refused_is_tried_less_and_less_often(status, api, clock):
    api.statuses = [403] * 100
    for _ in range(100):
        assert not await status.step(stated(), verdict(), AT)
        await clock.advance(1)
    assert 5 <= len(api.bodies) <= 10
    api.statuses = []
    await clock.advance(node_slo_status.LONGEST_PAUSE)
    assert await status.step(stated(), verdict(), AT)


@pytest.mark.parametrize("said", [None, "x", [1, {"type": 2}]], ids=["none", "text", "shapeless"])
async def test_a_list_of_no_shape_is_replaced(status, api, said):
    assert await status.step(stated(said=said), verdict(), AT)
    assert api.bodies[0][1]["status"]["conditions"] == [condition()]
