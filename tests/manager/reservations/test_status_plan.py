"""Owners, success, expiry and removal of a Reservation that has a node."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names, resources
from api.kubernetes import core
from manager.reconcile import actions
from manager.reservations import objects, status_plan
from tests.manager.reservations import reserved

NOW = reserved.CREATED + 60.0
DAY = 86400.0
KEPT = status_plan.Collection()


def planned(found, *users, has_node=True, now=NOW, collection=KEPT):
    return status_plan.planned(found, users, has_node=has_node, collection=collection, now=now)


def user(name, cpu=1000, memory=1 << 30, **more):
    owner = objects.OwnerPod(f"uid-{name}", "default", name)
    return objects.User(owner, reserved.UID, "n1", {"cpu": cpu, "memory": memory, **more})


def available(spec=None, **status):
    return reserved.read(
        spec={"allocateOnce": False, **(spec or {})}, status=reserved.placed(**status)
    )


def written(plan):
    (step,) = [step for step in plan.steps if isinstance(step, actions.PatchStatus)]
    assert step.body["metadata"] == {"uid": reserved.UID, "resourceVersion": "7"}
    return step.body["status"]


def test_what_owners_request_is_allocated_as_far_as_it_is_reserved():
    status = written(planned(available(), user("b"), user("a", **{"nvidia.com/gpu": 1})))
    assert status == {
        "allocated": {"cpu": "2", "memory": "2Gi"},
        "currentOwners": [
            {"namespace": "default", "name": name, "uid": f"uid-{name}"} for name in "ab"
        ],
    }


def test_nothing_is_written_where_the_status_says_it_already():
    first = written(planned(available(), user("a")))
    assert not planned(available(**first), user("a")).steps
    assert written(planned(available(**first))) == {
        "allocated": {"cpu": None, "memory": None},
        "currentOwners": [],
    }


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 1 << 33)), max_size=6))
def test_allocated_is_the_sum_of_the_owners_always(figures):
    users = [user(str(n), cpu, memory) for n, (cpu, memory) in enumerate(figures)]
    plan = planned(available(), *users)
    if not users:
        assert not plan.steps
        return
    status = written(plan)
    again = available(**status)
    assert not planned(again, *users).steps
    got = objects.resources.amounts({k: v for k, v in status["allocated"].items() if v})
    assert got.get("cpu", 0) == sum(cpu for cpu, _ in figures)
    assert got.get("memory", 0) == sum(memory for _, memory in figures)


def test_an_owner_that_ended_before_it_was_counted_has_used_it_up_where_it_is_allocated_once():
    ended = msgspec.structs.replace(user("a"), has_ended=True)
    status = written(planned(available({"allocateOnce": True}), ended))
    assert status["phase"] == "Succeeded"
    assert [one["name"] for one in status["currentOwners"]] == ["a"]
    several = planned(available(), ended, user("b"))
    assert [one["name"] for one in written(several)["currentOwners"]] == ["b"]
    assert written(several)["allocated"]["cpu"] == "1"


def test_the_first_owner_uses_a_reservation_up_that_is_allocated_once():
    status = written(planned(available({"allocateOnce": True}), user("a")))
    assert status["phase"] == "Succeeded"
    scheduled, ready = status["conditions"]
    assert (scheduled["type"], scheduled["status"]) == ("Scheduled", "True")
    assert (ready["status"], ready["reason"]) == ("False", "Succeeded")
    assert ready["lastTransitionTime"] == "2023-11-14T22:13:20Z"
    done = reserved.read(status=reserved.placed(**status))
    assert not planned(done).steps


ENDS = {
    "a day by default": ({}, DAY),
    "ttl": ({"ttl": "10m"}, 600.0),
    "expires beyond a day": ({"expires": "2023-11-17T22:13:20Z"}, 3 * DAY),
    "never": ({"ttl": "0s"}, None),
}


@pytest.mark.parametrize(("spec", "seconds"), ENDS.values(), ids=ENDS)
def test_it_fails_when_its_time_is_over_and_not_before(spec, seconds):
    found = available(spec)
    if seconds is None:
        assert not planned(found, now=reserved.CREATED + 1000 * DAY).steps
        return
    end = reserved.CREATED + seconds
    early = planned(found, now=end - 10)
    assert not early.steps
    assert early.again_in == 10
    status = written(planned(found, user("a"), now=end))
    assert status["phase"] == "Failed"
    ready = status["conditions"][-1]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "Expired")
    assert ready["lastTransitionTime"] != "2023-11-14T22:13:20Z"


def test_it_fails_with_its_node():
    plan = planned(available(), has_node=False)
    assert written(plan)["phase"] == "Failed"
    assert plan.message == "node n1 is gone"


def ended(phase, reason, **more):
    moment = "2023-11-14T22:13:20Z"
    ready = {"type": "Ready", "status": "False", "reason": reason}
    times = {"lastProbeTime": moment, "lastTransitionTime": moment}
    return reserved.read(
        status=reserved.placed(phase=phase, conditions=[{**ready, **times}], **more)
    )


COLLECTED = {
    "expired": ("Failed", "Expired", KEPT, True, True),
    "succeeded": ("Succeeded", "Succeeded", KEPT, True, True),
    "failed otherwise": ("Failed", "Other", KEPT, True, False),
    "switched off": ("Failed", "Expired", status_plan.Collection(off=True), True, False),
    "longer": ("Failed", "Expired", status_plan.Collection(2 * DAY), True, False),
}


@pytest.mark.parametrize(
    ("phase", "reason", "collection", "has_node", "goes"), COLLECTED.values(), ids=COLLECTED
)
def test_what_has_ended_is_removed_a_day_later(phase, reason, collection, has_node, goes):
    found, end = ended(phase, reason), reserved.CREATED + DAY
    assert not planned(found, collection=collection, now=end - 1).steps
    plan = planned(found, collection=collection, has_node=has_node, now=end)
    wanted = (actions.Delete(resources.RESERVATIONS, "r", reserved.UID),) if goes else ()
    assert plan.steps == wanted


def test_what_has_ended_goes_with_its_node():
    assert planned(ended("Succeeded", "Succeeded"), has_node=False).steps


def pod(note=None, node="n1", phase="Running"):
    notes = {} if note is None else {names.ANNOTATION_RESERVATION_ALLOCATED: note}
    metadata = core.ObjectMeta(name="p", namespace="default", uid="u", annotations=notes)
    return core.Pod(metadata, core.PodSpec(node_name=node), core.PodStatus(phase=phase))


NO_USERS = {
    "no annotation": pod(),
    "no JSON": pod("{"),
    "deep": pod("[" * 5000),
    "no uid": pod('{"name":"r"}'),
    "not placed": pod('{"name":"r","uid":"x"}', node=""),
}


@pytest.mark.parametrize("one", NO_USERS.values(), ids=NO_USERS)
def test_a_pod_that_says_nothing_readable_uses_no_reservation(one):
    assert objects.user(one) is None


def test_a_placed_pod_uses_the_reservation_that_its_annotation_names():
    found = objects.user(pod('{"name":"r","uid":"x"}'))
    assert found is not None
    assert (found.reservation, found.node, found.owner.name) == ("x", "n1", "p")
    assert not found.has_ended


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_has_used_it(phase):
    found = objects.user(pod('{"name":"r","uid":"x"}', phase=phase))
    assert found is not None
    assert found.has_ended


@pytest.mark.parametrize("expires", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"])
def test_one_that_expired_at_the_beginning_of_time_ends(expires):
    plan = status_plan.expired(available({"expires": expires}), NOW)
    assert plan is not None
    assert written(plan)["phase"] == "Failed"
