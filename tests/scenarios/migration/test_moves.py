"""Pods of Deployments that move: reserved first, evicted then, and where they land."""

import pytest

from tests.planes import raw

pytestmark = pytest.mark.timeout(120)
TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}


async def one_of(moving, app="web", **more):
    """A Deployment of one pod on the first node, with a second node beside it."""
    first = await moving.here.node("a")
    (pod,) = await moving.deployment(app, **more)
    assert pod["spec"]["nodeName"] == first
    return pod["metadata"]["name"], first, await moving.here.node("b")


async def test_a_pod_lands_on_the_place_that_was_reserved_for_it(moving):
    pod, _, second = await one_of(moving)
    await moving.move("j", pod)
    assert await moving.reserved("j") == second
    await moving.says("j", "Eviction", "True")
    new = await moving.successor("web", pod)
    status = await moving.ended("j", "Succeeded")
    assert (new["spec"]["nodeName"], status["nodeName"]) == (second, second)
    assert status["podRef"]["name"] == new["metadata"]["name"] != pod
    held = await moving.reservation_of("j")
    assert moving.used(new) == held["metadata"]["name"]
    assert held["status"]["phase"] == "Succeeded"
    await moving.consistent()


async def test_it_goes_to_the_node_that_was_chosen(moving):
    pod, _, _ = await one_of(moving)
    third = await moving.here.node("c")
    await moving.move("j", pod, annotations={"koord.sh/migration-target": third})
    assert await moving.reserved("j") == third
    new = await moving.successor("web", pod)
    assert new["spec"]["nodeName"] == third
    await moving.ended("j", "Succeeded")


async def test_while_it_is_reserved_no_other_pod_gets_the_place(moving):
    pod, _, second = await one_of(moving, requests={"cpu": "6"})
    await moving.protect("web")
    await moving.move("j", pod)
    assert await moving.reserved("j") == second
    await moving.pod("alien", "4")
    await moving.refused("alien", "Insufficient cpu")
    await moving.release("web")
    new = await moving.successor("web", pod)
    assert new["spec"]["nodeName"] == second
    # What the moved pod has left is free for others.
    await moving.here.bound("alien", 60)
    await moving.ended("j", "Succeeded")


async def test_a_pod_stays_where_no_other_node_takes_it(moving):
    first = await moving.here.node("a")
    (pod,) = await moving.deployment("web")
    await moving.move("j", pod["metadata"]["name"], ttl="4s")
    await moving.says("j", "ReservationScheduled", "False", "Unschedulable")
    status = await moving.ended("j", "Failed", "Timeout")
    assert "4 s" in status["message"]
    await moving.nothing_is_kept("j")
    (same,) = await moving.pods("web")
    assert (same["metadata"]["uid"], same["spec"]["nodeName"]) == (pod["metadata"]["uid"], first)


async def test_a_disruption_budget_is_respected_until_it_allows(moving):
    pod, _, second = await one_of(moving)
    await moving.protect("web")
    await moving.move("j", pod)
    refused = await moving.says("j", "Eviction", "False", "FailedEvict")
    assert "disruption budget" in refused["status"]["message"]
    (same,) = await moving.pods("web")
    assert same["metadata"]["name"] == pod
    await moving.release("web")
    await moving.says("j", "Eviction", "True")
    new = await moving.successor("web", pod)
    assert new["spec"]["nodeName"] == second
    await moving.ended("j", "Succeeded")


async def test_a_person_aborts_a_job(moving):
    pod, _, second = await one_of(moving, requests={"cpu": "6"})
    await moving.protect("web")
    await moving.move("j", pod)
    await moving.says("j", "Eviction", "False", "FailedEvict")
    await moving.patch_job("j", status={"phase": "Aborted"})
    await moving.nothing_is_kept("j")
    await moving.release("web")
    await moving.pod("alien", "6")
    assert (await moving.here.bound("alien", 60))["spec"]["nodeName"] == second
    (same,) = await moving.pods("web")
    assert same["metadata"]["name"] == pod
    assert (await moving.api.get(moving.job_path("j")))["status"]["phase"] == "Aborted"


async def test_a_deleted_job_takes_its_reservation_with_it(moving):
    pod, _, _ = await one_of(moving)
    await moving.protect("web")
    await moving.move("j", pod)
    await moving.says("j", "Eviction", "False", "FailedEvict")
    held = (await moving.reservation_of("j"))["metadata"]["name"]
    await moving.api.delete(moving.job_path("j"))
    await moving.api.wait_until(
        f"/apis/scheduling.koordinator.sh/v1alpha1/reservations/{held}", lambda one: not one, 60
    )


async def test_a_paused_job_waits_until_it_may_go_on(moving):
    pod, _, second = await one_of(moving)
    await moving.move("j", pod, paused=True)
    # Another job, which is not paused, is done before.
    (other,) = await moving.deployment("other")
    await moving.move("k", other["metadata"]["name"], mode="EvictDirectly")
    await moving.ended("k", "Succeeded")
    assert "status" not in await moving.api.get(moving.job_path("j"))
    await moving.patch_job("j", {"paused": False})
    new = await moving.successor("web", pod)
    assert new["spec"]["nodeName"] == second
    await moving.ended("j", "Succeeded")


async def test_a_pod_that_is_evicted_directly_needs_no_reservation(moving):
    pod, _, _ = await one_of(moving)
    await moving.move("j", pod, mode="EvictDirectly")
    status = await moving.ended("j", "Succeeded")
    assert status["message"] == f'Pod "{moving.here.namespace}/{pod}" has been evicted'
    assert await moving.reservation_of("j") is None
    new = await moving.successor("web", pod)
    assert new["metadata"]["name"] != pod


async def test_a_reservation_of_a_person_is_used_and_not_deleted(moving):
    pod, _, second = await one_of(moving)
    owners = [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    await moving.reserve("mine", owners, {"cpu": "2"}, spec={"nodeName": second})
    await moving.available("mine")
    named = {"reservationRef": {"name": moving.here.name("mine")}}
    await moving.move("j", pod, reservationOptions=named)
    new = await moving.successor("web", pod)
    assert moving.used(new) == moving.here.name("mine")
    await moving.ended("j", "Succeeded")
    assert (await moving.phase("mine", "Succeeded"))["status"]["nodeName"] == second


async def test_two_pods_of_a_workload_do_not_take_each_others_places(moving):
    await moving.here.node("a", cpu="4")
    pods = await moving.deployment("web", 2)
    chosen = [await moving.here.node(name, cpu="2") for name in ("b", "c")]
    for name, pod, target in zip(("j", "k"), pods, chosen, strict=True):
        notes = {"koord.sh/migration-target": target}
        await moving.move(name, pod["metadata"]["name"], annotations=notes)
    await moving.running("web", 2, [pod["metadata"]["name"] for pod in pods])
    for name, target in zip(("j", "k"), chosen, strict=True):
        assert (await moving.ended(name, "Succeeded"))["nodeName"] == target


async def test_a_pod_that_waits_does_not_take_the_place_of_one_that_moves(moving):
    pod, first, second = await one_of(moving, requests={"cpu": "6"})
    await moving.protect("web")
    await moving.move("j", pod)
    await moving.says("j", "Eviction", "False", "FailedEvict")
    scale = moving.here.path("deployments", "web", group="apps/v1")
    await moving.api.patch(scale, {"spec": {"replicas": 2}})
    (other,) = [one for one in await two_pods(moving) if one["metadata"]["name"] != pod]
    await moving.refused(other["metadata"]["name"], "Insufficient cpu")
    await moving.release("web")
    both = await moving.running("web", 2, [pod])
    assert {one["spec"]["nodeName"] for one in both} == {first, second}
    assert (await moving.ended("j", "Succeeded"))["nodeName"] == second


async def two_pods(moving):
    """Wait until a workload has two pods, with a node or without."""
    found = []

    async def there():
        found[:] = await moving.pods("web")
        return len(found) == 2

    await raw.eventually(there, 60)
    return found


async def test_pods_that_move_together_wait_for_each_other(moving):
    await moving.here.node("a", cpu="4")
    pods = await moving.deployment("web", 2)
    await moving.here.node("b", cpu="2")
    for name, pod in zip(("j", "k"), pods, strict=True):
        await moving.move(name, pod["metadata"]["name"], annotations=TOGETHER)
    # There is room for one of them only, so none leaves.
    held = await moving.job_until_any(("j", "k"), "ReservationScheduled", "True")
    waiting = "k" if held == "j" else "j"
    await moving.says(waiting, "ReservationScheduled", "False")
    before = {pod["metadata"]["uid"] for pod in pods}
    assert {pod["metadata"]["uid"] for pod in await moving.pods("web")} == before
    await moving.here.node("c", cpu="2")
    for name in ("j", "k"):
        await moving.says(name, "Eviction", "True")
    new = await moving.running("web", 2, [pod["metadata"]["name"] for pod in pods])
    assert {pod["spec"]["nodeName"] for pod in new} == {
        moving.here.name("b"),
        moving.here.name("c"),
    }
    for name in ("j", "k"):
        await moving.ended(name, "Succeeded")
