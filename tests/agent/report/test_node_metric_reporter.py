"""Reports that fail are sent again, later and later; what is waited for is said."""

import itertools

import pytest

from agent.model import collect_policy, state
from agent.report import node_metric_reporter
from agent.store import time_series
from kube.client import access, client
from process.runtime import metrics
from process.runtime.clock import ManualClock


@pytest.fixture
def wish():
    return {"policy": collect_policy.Policy()}


@pytest.fixture
async def sender(api, clock, wish):
    figures = metrics.Registry()
    async with client.Client(access.Access(api.url), clock=clock) as kube:
        sender = node_metric_reporter.Reporter(
            kube, clock, "n1", lambda: wish["policy"], figures, lambda: 1.0
        )
        sender.figures = figures
        yield sender


def measured():
    samples = time_series.Histories()
    for name in ("cpu", "memory"):
        samples.add(("node", name), 0, 1.0, 1e6)
    return samples


SETTLED = state.NodeState(at=1.7e9, settled=True)


async def test_reports_go_to_the_status(sender, api):
    assert await sender.step(measured(), SETTLED)
    path, body = api.bodies[0]
    assert path == "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n1/status"
    assert body["status"]["updateTime"] == "2023-11-14T22:13:20Z"
    assert not await sender.step(measured(), SETTLED)


async def test_a_report_is_not_sent_back_whole(sender, api):
    assert await sender.step(measured(), SETTLED)
    (accepted,) = api.accepted
    assert accepted.startswith("application/json;as=PartialObjectMetadata;")


async def test_what_the_agent_did_today_goes_along_without_a_write_of_its_own(sender, api):
    sender.scorecard = lambda: {"date": "2023-11-14", "seconds": 5}
    assert await sender.step(measured(), SETTLED)
    ((_, body),) = api.bodies
    assert body["status"]["scorecard"] == {"date": "2023-11-14", "seconds": 5}


async def test_failures_are_repeated_with_pauses(sender, api, clock):
    api.statuses = [404, 403, 422]
    sent = []
    for _ in range(20):
        if await sender.step(measured(), SETTLED):
            break
        sent.append(len(api.bodies))
        await clock.advance(1)
    assert sent == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert len(api.bodies) == 4
    assert sender.problem == ""
    value = sender.figures.value
    assert value("koord_agent_reports_total", {"outcome": "failed"}) == 3
    assert value("koord_agent_reports_total", {"outcome": "sent"}) == 1


@pytest.mark.parametrize("interval", [15.0, 60.0, 300.0])
async def test_one_report_per_interval_at_a_moment_of_its_own(sender, api, clock, wish, interval):
    wish["policy"] = collect_policy.Policy(interval, aggregate_seconds=1e5)
    sent = []
    for _ in range(int(6 * interval)):
        if await sender.step(measured(), SETTLED):
            sent.append(clock.monotonic())
        await clock.advance(1)
    assert sent[0] == 0.0
    pauses = [after - before for before, after in itertools.pairwise(sent)]
    assert interval / 2 <= pauses[0] <= 1.5 * interval + 1
    assert pauses[1:] == [interval] * len(pauses[1:])
    assert len(pauses) >= 4


async def test_agents_that_start_together_do_not_report_together(sender):
    figures, moments = metrics.Registry, []
    for number in range(200):
        other = node_metric_reporter.Reporter(
            None, ManualClock(), f"node-{number}", lambda: None, figures()
        )
        moments.append(other.next_after(0.0, 60.0))
    for tenth in range(10):
        found = [m for m in moments if tenth * 6 <= m - 30 < tenth * 6 + 6]
        assert 8 <= len(found) <= 36


async def test_agents_that_fail_together_do_not_come_back_together(api, clock):
    async def tries(chance):
        api.statuses, before = [503] * 100, len(api.bodies)
        async with client.Client(access.Access(api.url), clock=clock) as kube:
            figures = metrics.Registry()
            other = node_metric_reporter.Reporter(
                kube, clock, "n1", collect_policy.Policy, figures, lambda: chance
            )
            for _ in range(100):
                await other.step(measured(), SETTLED)
                await clock.advance(1)
        return len(api.bodies) - before

    assert await tries(0.0) > await tries(1.0) >= 5


async def test_a_failure_is_told(sender, api):
    api.statuses = [403]
    await sender.step(measured(), SETTLED)
    assert sender.problem.startswith("Forbidden")


@pytest.mark.parametrize(
    ("policy", "samples", "picture", "problem"),
    [
        (None, measured(), SETTLED, "no NodeMetric n1 yet"),
        (collect_policy.Policy(), time_series.Histories(), SETTLED, "no usage of the node"),
        (collect_policy.Policy(), measured(), state.NodeState(at=0), "waiting for the kubelet"),
    ],
    ids=["no object", "no samples", "no pods"],
)
async def test_what_is_waited_for_is_told(sender, api, wish, policy, samples, picture, problem):
    wish["policy"] = policy
    assert not await sender.step(samples, picture)
    assert problem in sender.problem
    assert api.bodies == []


async def test_a_kubelet_that_never_answers_does_not_stop_reports(sender, clock):
    unsettled = state.NodeState(at=0)
    await clock.advance(59)
    assert not await sender.step(measured(), unsettled)
    await clock.advance(1)
    assert await sender.step(measured(), unsettled)


async def test_the_age_of_the_last_report_is_told(sender, api, clock):
    await clock.advance(40)
    assert sender.figures.value("koord_agent_report_age_seconds") == 40
    assert await sender.step(measured(), SETTLED)
    await clock.advance(7)
    assert sender.figures.value("koord_agent_report_age_seconds") == 7
