"""What borrowers hold goes back to those who are entitled to it: by eviction, if it must."""

import dataclasses

import pytest

from api import names
from kube.client import errors
from manager.quota.overuse import reclaim, reclaim_view
from manager.reconcile import actions
from process.configuration import switches
from tests.manager.quota import enforced

ALL = {"cpu": "10", "memory": "100Gi", "pods": "50"}


@pytest.fixture
async def plane(world):
    """Ten cores on two nodes, all of them used by a borrower whose minimum is two."""
    made = enforced.Plane(world)
    await made.node("n1", "4")
    await made.node("n2", "6")
    await made.quota("lender", ALL, {"cpu": "8"})
    await made.quota("borrower", ALL, {"cpu": "2"})
    for number in range(5):
        await made.pod(f"b{number}", "borrower", "2", gated=False, later=1)
        await made.bind(f"b{number}", "n1" if number < 2 else "n2")
    return made


async def waits(plane, name="w", cpu="4", **given):
    """Let a pod of the lender come for which the scheduler finds no node."""
    await plane.pod(name, "lender", cpu, later=1, **given)
    await plane.run(0.3)
    assert name in plane.open(), "its quota is entitled to it"
    await plane.unschedulable(name)


async def keeps(plane, *pods, **spec):
    """Let a disruption budget keep some pods, which are ready."""
    body = {"metadata": {"labels": {"kept": "yes"}}}
    for name in pods:
        await plane.world.admin.patch(enforced.resources.PODS, name, body, namespace="default")
        ready = {"type": "Ready", "status": "True"}
        await plane.status(name, {"phase": "Running", "conditions": [ready]})
    await plane.budget("kept", {"kept": "yes"}, **spec)


def names_of(plane, reason):
    return [name for name, told, _ in plane.events.told if told == reason]


def left(plane):
    return sorted(
        pod["metadata"]["name"]
        for pod in plane.pods()
        if pod["spec"].get("nodeName") and pod["metadata"]["name"] not in plane.leaving()
    )


async def test_the_youngest_borrowers_of_one_node_leave_after_the_grace(plane) -> None:
    await plane.configure(delayEvictTime="30s")
    async with plane.manager(enforced.RECLAIMS) as life:
        await waits(plane)
        await plane.run(28)
        assert len(left(plane)) == 5, "within the grace"
        await plane.run(4)
        assert left(plane) == ["b0", "b1", "b2"]
        assert plane.found("w")["status"]["nominatedNodeName"] == "n2"
        assert sorted(names_of(plane, reclaim.RECLAIMED)) == ["b3", "b4"]
        assert names_of(plane, reclaim.RECLAIMING) == ["w"]
        sentence = plane.events.told[0][2]
        assert "quota borrower uses cpu:10 and may use cpu:6" in sentence
        await plane.bind("w", "n2")
        await plane.run(5)
        assert left(plane) == ["b0", "b1", "b2", "w"]
        assert life.registry.value("koord_quota_reclaims_total", {"result": "started"}) == 1


async def test_of_pods_alike_the_older_one_is_helped_first(plane) -> None:
    """Also where the scheduler has refused the younger one first."""
    await plane.configure(delayEvictTime="6s")
    async with plane.manager(enforced.RECLAIMS):
        for name in ("older", "younger"):
            await plane.pod(name, "lender", "4", later=1)
        await plane.run(0.3)
        assert {"older", "younger"} <= set(plane.open())
        await plane.unschedulable("younger")
        await plane.run(2)
        await plane.unschedulable("older")
        await plane.run(9)
        assert names_of(plane, reclaim.RECLAIMING)[0] == "older"


async def test_an_evicted_pod_waits_while_the_entitled_pod_runs(plane) -> None:
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await waits(plane)
        await plane.run(4)
        assert len(left(plane)) == 3
        node = plane.found("w")["status"]["nominatedNodeName"]
        await plane.pod("again", "borrower", "2", later=1)
        await plane.run(2)
        assert plane.gated() == ["again"]
        await plane.stop_leaving()
        await plane.bind("w", node)
        await plane.run(2)
        assert plane.gated() == ["again"]
        await plane.delete("w")
        await plane.run(0.5)
        assert plane.open() == ["again"]


async def test_pods_that_are_never_preempted_stay(plane) -> None:
    for number in range(5):
        await plane.delete(f"b{number}")
        await plane.pod(f"s{number}", "borrower", "2", gated=False, firm=True)
        await plane.bind(f"s{number}", "n1" if number < 2 else "n2")
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await waits(plane)
        await plane.run(10)
        assert len(left(plane)) == 5


@pytest.mark.parametrize(
    ("given", "victim"),
    [
        pytest.param({}, True, id="any-pod"),
        pytest.param({"owner": {"kind": "DaemonSet"}}, False, id="daemon-set"),
        pytest.param({"owner": {"kind": "Node"}}, False, id="static"),
        pytest.param({"namespace": "kube-system"}, False, id="kube-system"),
        pytest.param({"priority": 2_000_000_000}, False, id="system-critical"),
        pytest.param({"labels": {names.LABEL_QUOTA_PREEMPTIBLE: "false"}}, False, id="label"),
    ],
)
def test_who_may_be_a_victim(cluster, given, victim) -> None:
    if "owner" in given:
        owner = {"apiVersion": "v1", "name": "o", "uid": "o", "controller": True}
        given = {"owner": {**owner, **given["owner"]}}
    cluster.node("n1")
    cluster.pod("p", quota="q", node="n1", **given)
    view = reclaim_view.View(cluster.book, (), {}, "koordinator-system")
    (holder,) = view.holders(cluster.book.on_node("n1"))
    assert holder.preemptible is victim


async def test_a_disruption_budget_is_respected_and_others_leave_instead(plane) -> None:
    await keeps(plane, "b3", "b4")
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS) as life:
        await waits(plane)
        await plane.run(8)
        assert left(plane) == ["b2", "b3", "b4"]
        assert plane.found("w")["status"]["nominatedNodeName"] == "n1"
        assert life.registry.value("koord_quota_evictions_total", {"result": "refused"}) >= 1


async def test_a_budget_that_lets_one_of_two_go_loses_neither(plane) -> None:
    """A dry run of each eviction passes, since it leaves the budget as it is."""
    await keeps(plane, "b2", "b3", "b4", maxUnavailable=1)
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS) as life:
        await waits(plane)
        await plane.run(60)
        assert left(plane) == ["b2", "b3", "b4"]
        assert plane.found("w")["status"]["nominatedNodeName"] == "n1"
        assert names_of(plane, reclaim.RECLAIMED) == ["b1", "b0"]
        evicted = {"result": "evicted"}
        assert life.registry.value("koord_quota_evictions_total", evicted) == 2


async def test_a_pod_with_two_budgets_stays_and_others_leave_instead(plane) -> None:
    """The API server answers that as a failure of its own, also in a dry run."""
    await keeps(plane, "b4", maxUnavailable=1)
    await plane.budget("also", {"kept": "yes"}, maxUnavailable=1)
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await waits(plane)
        await plane.run(8)
        assert left(plane) == ["b0", "b1", "b4"]


class Stumbling:
    """Writes, but for the first writes of one kind, which end in an error."""

    def __init__(self, writer, error, fails, times=1):
        self.writer, self.error, self.fails, self.times = writer, error, fails, times

    async def carry_out(self, wanted):
        if self.times and self.fails(wanted.steps[0]):
            self.times -= 1
            raise self.error
        return await self.writer.carry_out(wanted)


def stumbling(error, fails):
    return lambda writer: Stumbling(writer, error, fails)


def evicts(name):
    return lambda step: isinstance(step, actions.Evict) and step.name == name and not step.dry_run


@pytest.mark.parametrize(
    ("name", "stay", "in_vain"),
    [
        pytest.param("b4", ["b0", "b1", "b4"], None, id="the-first"),
        pytest.param("b3", ["b0", "b1", "b3"], 1, id="another"),
    ],
)
async def test_where_an_eviction_is_refused_after_all_another_pod_leaves(
    plane, name, stay, in_vain
) -> None:
    await plane.configure(delayEvictTime="1s")
    refuses = stumbling(errors.TooManyRequests(429), evicts(name))
    async with plane.manager(enforced.RECLAIMS, wrap=refuses) as life:
        await waits(plane)
        await plane.run(8)
        assert left(plane) == stay
        assert plane.found("w")["status"]["nominatedNodeName"] == "n2"
        reclaims = "koord_quota_reclaims_total"
        assert life.registry.value(reclaims, {"result": "in-vain"}) == in_vain
        await plane.bind("w", "n2")
        await plane.run(2)
        assert life.registry.value(reclaims, {"result": "started"}) == 1


@pytest.mark.parametrize(
    "error",
    [errors.Unreachable("no answer in time"), errors.ServerFailure(504, "GatewayTimeout", "late")],
    ids=["no answer", "gateway timeout"],
)
async def test_after_an_eviction_of_unknown_outcome_it_is_tried_again_later(plane, error) -> None:
    await plane.configure(delayEvictTime="1s")
    fails = stumbling(error, evicts("b3"))
    async with plane.manager(enforced.RECLAIMS, wrap=fails) as life:
        await waits(plane)
        await plane.run(50)
        assert left(plane) == ["b0", "b1", "b2", "b3"]
        assert not plane.found("w")["status"].get("nominatedNodeName")
        assert life.registry.value("koord_quota_evictions_total", {"result": "failed"}) == 1
        await plane.run(20)
        assert left(plane) == ["b0", "b1", "b2"]
        assert plane.found("w")["status"]["nominatedNodeName"] == "n2"


async def test_a_nomination_that_could_not_be_withdrawn_is_withdrawn_later(plane) -> None:
    def fails(step):
        is_nomination = isinstance(step, actions.PatchPod) and "nominatedNodeName" in str(step.body)
        return is_nomination and not step.body["status"]["nominatedNodeName"]

    await plane.configure(delayEvictTime="1s")
    error = errors.Unreachable("no answer in time")

    def wrap(writer):
        return Stumbling(Stumbling(writer, error, evicts("b3")), error, fails)

    async with plane.manager(enforced.RECLAIMS, wrap=wrap):
        await waits(plane)
        await plane.run(10)
        assert not plane.found("w")["status"].get("nominatedNodeName")


@pytest.mark.parametrize("mode", [switches.Mode.OFF, switches.Mode.OBSERVE])
async def test_can_be_switched_off_and_observed_live(plane, mode) -> None:
    await plane.configure(delayEvictTime="1s")
    await plane.switch(quota_reclaim=mode.value)
    async with plane.manager(enforced.RECLAIMS) as life:
        await waits(plane)
        await plane.run(10)
        assert len(left(plane)) == 5
        assert "nominatedNodeName" not in plane.found("w")["status"]
        would = life.registry.value("koord_quota_evictions_total", {"result": "would-evict"})
        observes = mode is switches.Mode.OBSERVE
        assert would == (2 if observes else None)
        assert names_of(plane, reclaim.WOULD_RECLAIM) == (["w"] if observes else [])
        await plane.switch(quota_reclaim="enforce")
        await plane.run(70)
        assert len(left(plane)) == 3


async def test_nobody_is_evicted_who_borrows_what_nobody_wants(plane) -> None:
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await plane.run(30)
        assert len(left(plane)) == 5


async def test_all_quotas_are_monitored_where_the_arguments_say_so(plane) -> None:
    """The reference's revoke: a quota that uses too much gives back though nobody is stuck."""
    await plane.configure(delayEvictTime="5s", monitorAllQuotas=True)
    async with plane.manager(enforced.RECLAIMS):
        await plane.run(10)
        assert len(left(plane)) == 5
        await plane.set_quota("borrower", max={"cpu": "6"})
        await plane.run(4)
        assert len(left(plane)) == 5
        await plane.run(4)
        assert left(plane) == ["b0", "b1", "b2"]
        assert sorted(names_of(plane, reclaim.REVOKED)) == ["b3", "b4"]


async def test_a_manager_that_dies_between_evictions_evicts_nobody_too_many(plane) -> None:
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await waits(plane)
        await plane.run(3)
    gone = plane.leaving()
    assert len(gone) == 2
    async with plane.manager(enforced.RECLAIMS):
        await plane.run(20)
        assert plane.leaving() == gone


async def test_a_pod_that_does_not_start_is_helped_again_elsewhere_and_later(plane) -> None:
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS) as life:
        await waits(plane)
        await plane.run(4)
        first = plane.found("w")["status"]["nominatedNodeName"]
        assert len(left(plane)) == 3
        await plane.run(40)
        assert plane.found("w")["status"]["nominatedNodeName"] == first, "victims take their time"
        await plane.stop_leaving()
        await plane.run(35)
        assert life.registry.value("koord_quota_reclaims_total", {"result": "in-vain"}) == 1
        assert not plane.found("w")["status"].get("nominatedNodeName")
        assert len(left(plane)) == 3
        await plane.run(200)
        assert first
        assert plane.found("w")["status"].get("nominatedNodeName") != first


async def test_a_cleared_nomination_is_written_again_while_the_room_is_kept(plane) -> None:
    await plane.configure(delayEvictTime="1s")
    async with plane.manager(enforced.RECLAIMS):
        await waits(plane)
        await plane.run(4)
        node = plane.found("w")["status"]["nominatedNodeName"]
        await plane.status("w", {"nominatedNodeName": None})
        await plane.run(8)
        assert plane.found("w")["status"]["nominatedNodeName"] == node


async def test_nobody_is_revoked_whose_quota_has_given_back_meanwhile(plane) -> None:
    """Evictions of others take their time, and so do those of the quota itself."""
    await plane.configure(delayEvictTime="5s", monitorAllQuotas=True)
    await plane.node("n3", "4")
    await plane.quota("another", ALL)
    for number in range(3):
        await plane.pod(f"a{number}", "another", "1", gated=False, later=1)
        await plane.bind(f"a{number}", "n3")
    slow = reclaim.Pace(per_second=0.1, burst=1, own_namespace=names.NAMESPACE)
    async with plane.manager(dataclasses.replace(enforced.RECLAIMS, reclaims=slow)):
        for name, cpu in (("another", "1"), ("borrower", "4")):
            await plane.set_quota(name, max={"cpu": cpu})
        await plane.run(8)
        assert plane.leaving() == ["a2"]
        await plane.delete("b0")
        await plane.run(20)
        assert plane.leaving() == ["a1", "a2", "b4"]
        await plane.delete("b1")
        await plane.run(30)
        assert plane.leaving() == ["a1", "a2", "b4"]
