"""The life of jobs on an API server: every phase, and what ends them early."""

import json

import pytest

from api import resources
from tests.descheduler.migration.conftest import BUDGET, JOBS, KEPT, PODS

PASSED = "descheduler.koordinator.sh/passed-arbitration"


async def test_a_pod_moves_to_the_place_that_was_reserved_for_it(world):
    await world.pod()
    async with world.migrating() as running:
        await world.move(annotations={"koordinator.sh/evict-trigger": "LowNodeLoad"})
        await world.until(lambda: world.reservation())
        held = world.reservation()
        assert held["metadata"]["labels"]["app.kubernetes.io/created-by"] == "koord-descheduler"
        assert held["spec"]["owners"][0]["controller"]["uid"] == await world.workload()
        # It has no node yet: the pod stays.
        await world.passing(30)
        assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")
        await world.place(held["metadata"]["name"])
        assert held["spec"]["unschedulable"] is True
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))
        assert world.stored(PODS, "web-0") is None
        assert world.reservation()["spec"]["unschedulable"] is False
        await world.until(lambda: world.status().get("reason") == "WaitForPodBindReservation")
        await world.used()
        status = await world.phase("Succeeded")
        assert (status["status"], status["nodeName"]) == ("Complete", "node-1")
        assert status["podRef"]["name"] == "web-1"
        told = {one["type"]: one["status"] for one in status["conditions"]}
        assert told == dict.fromkeys(
            ("ReservationCreated", "ReservationScheduled", "Eviction", "ReservationBound",
             "BoundPodReady", "PodBoundReservation", "Succeeded"), "True",
        )  # fmt: skip
        labels = {"result": "success", "strategy": "LowNodeLoad", "namespace": "default"}
        value = running.registry.value
        evicted = "koord_descheduler_pods_evicted_total"
        assert value(evicted, {**labels, "node": "node-0"}) == 1
        ended = {"phase": "Succeeded", "reason": "Complete"}
        assert value("koord_migration_ended_total", ended) == 1
        await world.passing(15)
        found = {"phase": "Succeeded", "mode": "ReservationFirst"}
        assert value("koord_migration_jobs", found) == 1
    assert world.events.reasons() == ["Migrating", "Complete"]
    assert world.events.reasons("Pod") == ["Descheduled"]
    assert world.events.reasons("ConfigMap") == ["Descheduled"]
    # What has been used up is left to the retention of Reservations.
    assert world.reservation()["status"]["phase"] == "Succeeded"


async def test_a_pod_is_evicted_directly(world):
    await world.pod()
    async with world.migrating(default_job_mode="EvictDirectly"):
        await world.move()
        status = await world.phase("Succeeded")
    assert status["message"] == 'Pod "default/web-0" has been evicted'
    assert world.stored(PODS) == []
    assert world.stored(KEPT) == []


async def test_the_first_thing_written_is_which_pod_is_meant(world):
    await world.pod()
    uid = world.stored(PODS, "web-0")["metadata"]["uid"]
    async with world.migrating():
        await world.move()
        await world.phase("Running")
        job = world.stored(JOBS, "j")
        assert job["spec"]["podRef"]["uid"] == uid
        assert (
            job["metadata"]["annotations"]["koord.sh/migration-workload"] == await world.workload()
        )


async def test_a_successor_of_the_same_name_is_not_evicted(world):
    await world.pod()
    async with world.migrating():
        await world.move()
        await world.reserved()
        await world.until(lambda: world.condition("Eviction"))
        await world.until(lambda: world.stored(PODS, "web-0") is None)
        await world.pod(node="node-2")
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))
        await world.passing(20)
    assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")


async def test_a_job_that_waits_for_arbitration_says_why(world):
    await world.pod()
    world.checks.not_now = "too many pods of its node move"
    async with world.migrating() as running:
        await world.move()
        await world.until(lambda: running.migration.arbitration.waiting)
        assert running.migration.arbitration.waiting == {"j": world.checks.not_now}
        assert PASSED not in world.stored(JOBS, "j")["metadata"].get("annotations", {})
        assert not world.stored(KEPT)
        await world.until(lambda: world.status().get("message") == world.checks.not_now)
        assert world.status()["reason"] == "WaitForArbitration"
        version = world.stored(JOBS, "j")["metadata"]["resourceVersion"]
        await world.passing(20)
        assert world.stored(JOBS, "j")["metadata"]["resourceVersion"] == version
        world.checks.not_now = ""
        await world.until(lambda: world.reservation())
    assert world.stored(JOBS, "j")["metadata"]["annotations"][PASSED] == "true"


async def test_a_pod_that_may_not_move_fails_its_job(world):
    await world.pod()
    world.checks.never = "it is protected"
    async with world.migrating():
        await world.move()
        status = await world.phase("Failed")
    assert (status["reason"], status["message"]) == ("ForbiddenMigratePod", "it is protected")
    assert world.events.reasons() == ["ForbiddenMigratePod"]


async def test_a_job_of_a_pod_that_is_not_there_fails(world):
    async with world.migrating():
        await world.move()
        assert (await world.phase("Failed"))["reason"] == "MissingPod"


async def test_time_runs_out_and_the_reservation_goes(world):
    await world.pod()
    async with world.migrating():
        await world.move(ttl="20s")
        await world.until(lambda: world.reservation())
        await world.passing(21)
        assert (await world.phase("Failed"))["reason"] == "Timeout"
        await world.until(lambda: not world.stored(KEPT))
    assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")


async def test_an_aborted_job_gives_its_place_back(world):
    await world.pod()
    async with world.migrating():
        await world.move()
        await world.until(lambda: world.condition("ReservationCreated"))
        await world.admin.patch(JOBS, "j", {"status": {"phase": "Aborted"}}, subresource="status")
        await world.until(lambda: not world.stored(KEPT))
        await world.passing(20)
    assert world.status()["phase"] == "Aborted"
    assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")


async def test_a_paused_job_waits_and_goes_on(world):
    await world.pod()
    async with world.migrating():
        await world.move(paused=True)
        await world.passing(400)
        assert not world.stored(KEPT)
        assert "phase" not in world.status()
        await world.admin.patch(JOBS, "j", {"spec": {"paused": False, "ttl": "1h"}})
        await world.until(lambda: world.reservation())
        await world.admin.patch(JOBS, "j", {"spec": {"paused": True}})
        await world.reserved()
        await world.passing(30)
        assert world.condition("Eviction") is None
        await world.admin.patch(JOBS, "j", {"spec": {"paused": False}})
        await world.until(lambda: world.condition("Eviction") == ("True", "EvictComplete"))


async def test_a_reservation_of_a_person_is_used_and_kept(world):
    await world.pod()
    body = {
        "apiVersion": KEPT.api_version,
        "kind": KEPT.kind,
        "metadata": {"name": "mine"},
        "spec": {"template": {"spec": {}}, "owners": [{"labelSelector": {}}]},
    }
    await world.admin.create(KEPT, body)
    async with world.migrating():
        await world.move(reservationOptions={"reservationRef": {"name": "mine"}}, ttl="20s")
        order = "scheduling.koordinator.sh/reservation-order"
        await world.until(lambda: order in world.stored(KEPT, "mine")["metadata"].get("labels", {}))
        await world.passing(25)
        assert (await world.phase("Failed"))["reason"] == "Timeout"
        await world.passing(30)
    assert world.stored(KEPT, "mine")
    assert len(world.stored(KEPT)) == 1


async def test_a_disruption_budget_is_asked_again_until_it_allows(world):
    await world.pod(labels={"app": "web"})
    await world.admin.create(resources.POD_DISRUPTION_BUDGETS, BUDGET, "default")
    async with world.migrating() as running:
        await world.move()
        await world.reserved()
        await world.until(lambda: world.condition("Eviction") == ("False", "FailedEvict"))
        assert "disruption budget" in world.status()["message"]
        assert world.reservation()["spec"]["unschedulable"] is True
        await world.passing(30)
        refused = {"result": "error", "strategy": "", "namespace": "default", "node": "node-0"}
        # Pauses grow: 3, 3, 6, 12 s.
        counted = running.registry.value("koord_descheduler_pods_evicted_total", refused)
        assert 3 <= counted <= 6
        await world.admin.delete(resources.POD_DISRUPTION_BUDGETS, "web", "default")
        await world.passing(25)
        await world.until(lambda: world.stored(PODS, "web-0") is None)
        await world.used()
        await world.phase("Succeeded")
    assert "FailedEvict" in world.events.reasons()


async def test_a_soft_eviction_is_a_note_on_the_pod(world):
    await world.pod(labels={"koordinator.sh/evict-policy": "SoftEviction"})
    async with world.migrating(default_job_mode="EvictDirectly"):
        notes = {
            "koordinator.sh/evict-trigger": "LowNodeLoad",
            "koordinator.sh/evict-reason": "too hot",
        }
        await world.move(annotations=notes, deleteOptions={"gracePeriodSeconds": 7})
        key = "scheduling.koordinator.sh/soft-eviction"

        def noted():
            return world.stored(PODS, "web-0")["metadata"].get("annotations", {}).get(key)

        note = json.loads(await world.until(noted))
        assert note.pop("timestamp")
        assert note == {
            "deleteOptions": {"gracePeriodSeconds": 7},
            "initiator": "LowNodeLoad",
            "reason": "too hot",
        }
        version = world.stored(PODS, "web-0")["metadata"]["resourceVersion"]
        await world.passing(60)
        assert world.stored(PODS, "web-0")["metadata"]["resourceVersion"] == version
        await world.admin.delete(PODS, "web-0", "default")
        await world.phase("Succeeded")


async def test_a_pod_is_deleted_where_its_job_says_so(world):
    labels = {"app": "web"}
    await world.pod(labels=labels)
    budget = {
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    await world.admin.create(resources.POD_DISRUPTION_BUDGETS, budget, "default")
    async with world.migrating(default_job_mode="EvictDirectly", eviction_policy="Delete"):
        await world.move()
        await world.phase("Succeeded")


async def test_a_terminating_pod_is_waited_for(world):
    await world.pod(terminationGracePeriodSeconds=60)
    async with world.migrating(default_job_mode="EvictDirectly"):
        await world.move(ttl="30s")
        await world.until(lambda: world.condition("Eviction") == ("False", "Evicting"))
        await world.passing(50)
        assert world.status()["phase"] == "Running"
        # Its kubelet is done.
        await world.admin.delete(PODS, "web-0", "default", grace_seconds=0)
        await world.phase("Succeeded")


async def test_a_reservation_that_another_pod_takes_first_costs_no_pod(world):
    await world.pod()
    async with world.migrating():
        await world.move()
        await world.until(lambda: world.reservation())
        await world.used(by="sibling")
        assert (await world.phase("Failed"))["reason"] == "ForbiddenMigratePod"
        await world.passing(10)
        await world.until(lambda: not world.stored(KEPT))
    assert not world.stored(PODS, "web-0")["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize("ended", [True, False])
async def test_old_jobs_are_deleted(world, ended):
    await world.pod()
    async with world.migrating():
        await world.move(ttl="60s", paused=not ended)
        await world.passing(60 + 300 + 61)
        await world.until(lambda: (world.stored(JOBS, "j") is None) is ended)


async def test_a_limit_of_the_workload_spreads_evictions(world):
    for name in ("web-0", "web-1"):
        await world.pod(name)
    async with world.migrating(
        default_job_mode="EvictDirectly", object_limiters={"workload": {"duration": "60s"}}
    ):
        await world.move("a", "web-0")
        await world.phase("Succeeded", "a")
        await world.move("b", "web-1")
        await world.passing(40)
        assert world.condition("Eviction", "b") is None
        await world.passing(25)
        await world.phase("Succeeded", "b")


async def test_a_new_leader_knows_what_was_evicted_before(world):
    for name in ("web-0", "web-1"):
        await world.pod(name)
    args = {
        "default_job_mode": "EvictDirectly",
        "object_limiters": {"workload": {"duration": "60s"}},
    }
    async with world.migrating(**args):
        await world.move("a", "web-0")
        await world.phase("Succeeded", "a")
    async with world.migrating(**args):
        await world.move("b", "web-1")
        await world.passing(40)
        assert world.condition("Eviction", "b") is None
        await world.passing(25)
        await world.phase("Succeeded", "b")


async def test_evictions_are_spread_over_time(world):
    for name in ("web-0", "web-1", "web-2"):
        await world.pod(name, bare=True)
    args = {"evict_qps": 0.1, "default_job_mode": "EvictDirectly", "max_concurrent_reconciles": 3}
    async with world.migrating(**args):
        for name in ("a", "b", "c"):
            await world.move(name, f"web-{'abc'.index(name)}")
        await world.until(lambda: len(world.stored(PODS)) == 2)
        await world.passing(8)
        assert len(world.stored(PODS)) == 2
        await world.passing(14)
        await world.until(lambda: not world.stored(PODS))


async def test_a_reservation_that_the_api_server_refuses_is_told_and_tried_again(world):
    await world.pod()
    async with world.migrating():
        template = {"spec": {"ttl": "never"}}
        await world.move(reservationOptions={"template": template})
        await world.until(
            lambda: world.condition("ReservationCreated") == ("False", "FailedCreateReservation")
        )
        await world.passing(30)
        assert world.events.reasons().count("FailedCreateReservation") == 1
        await world.passing(280)
        assert (await world.phase("Failed"))["reason"] == "Timeout"


async def test_a_reservation_name_that_is_taken_is_told(world):
    await world.pod()
    body = {
        "metadata": {"name": "mine"},
        "spec": {"template": {}, "owners": [{"labelSelector": {}}]},
    }
    await world.admin.create(KEPT, body)
    async with world.migrating():
        await world.move(reservationOptions={"template": {"metadata": {"name": "mine"}}}, ttl="60s")
        await world.until(lambda: world.condition("ReservationCreated"))
        assert "was not made for this job" in world.status()["message"]
        await world.passing(60)
        await world.phase("Failed")
        await world.passing(10)
    assert world.stored(KEPT, "mine")
