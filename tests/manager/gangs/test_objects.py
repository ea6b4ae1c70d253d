"""What tenants may write into pods and PodGroups of gangs, and what is kept of it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names, resources
from api.kubernetes import core
from domain.gangs import declaration
from manager.gangs import gang_book, gang_events, objects, quorum, restart_plan, status_plan
from tests.manager.gangs import ganged

BETA = resources.NATIVE_POD_GROUPS[0]
TEXTS = [
    *("", "0", "-1", "1e9", "9" * 5000, "[" * 9000, '["a/b"', "restart", "Restart\n", "\ud800"),
    *(json.dumps(["default/g"] * 5000), json.dumps(["other/*", "../x"]), "{}", "null", "\u0663"),
]
KEYS = (*declaration.ANNOTATIONS, names.ANNOTATION_BIND_GANG_GROUP, names.ANNOTATION_PLAN)


def decided(cluster):
    """Go through everything that is decided about all gangs; nothing may fail."""
    for gang_id in set(cluster.book.ids()):
        seen = cluster.book.observed(gang_id)
        if seen is None:
            continue
        memory = quorum.followed(None, seen, 0.0)
        memory = quorum.followed(memory, seen, 100.0)
        together = restart_plan.related(seen, cluster.book.observed)
        assert all(one.gang.id == gang_id or one.gang.id in seen.gang.group for one in together)
        history = restart_plan.History({}, -1e6)
        at = restart_plan.Now(100.0, ganged.CREATED)
        found = restart_plan.decided(together, memory, history, at)
        gang_events.lost(seen, quorum.standing(seen, memory))
        if isinstance(found, restart_plan.Restart):
            own = {one.key for gang in together for one in gang.members}
            assert {pod.key for pod in found.pods} <= own
        if seen.group is not None:
            standing = quorum.standing(seen, memory)
            facts = status_plan.Facts(standing, True, True, None, 0.0)
            assert json.dumps(status_plan.planned(seen, seen.group, facts))


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:12]))
def test_no_text_of_a_tenant_stops_what_is_decided(text) -> None:
    cluster = ganged.Cluster()
    for number in range(3):
        raw = ganged.raw_pod(f"p{number}", node="n1")
        raw["metadata"] |= {"uid": f"u{number}", "annotations": dict.fromkeys(KEYS, text)}
        raw["metadata"]["annotations"][names.ANNOTATION_GANG_NAME] = text or "g"
        found = objects.gang_pod(msgspec.convert(raw, core.Pod))
        if found is not None:
            cluster.put(found)
    group = ganged.raw_group()
    group["metadata"]["annotations"] = dict.fromkeys(KEYS, text)
    made = objects.pod_group(group)
    assert made is not None
    cluster.put(made)
    decided(cluster)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@given(spec=anything, status=anything)
def test_no_shape_of_a_pod_group_stops_what_is_decided(spec, status) -> None:
    cluster = ganged.Cluster().put(ganged.pod("p", group=True, node="n1"))
    raw = ganged.raw_group()
    for value in (spec, {"minMember": spec}):
        raw |= {"spec": value, "status": status}
        try:
            made = objects.pod_group(raw)
        except (TypeError, ValueError, AttributeError, LookupError):
            continue  # The informer leaves such an object out and counts it.
        if made is not None:
            cluster.put(made)
            decided(cluster)
    native = ganged.raw_group()
    native |= {"apiVersion": BETA.api_version, "spec": {"schedulingPolicy": {"gang": spec}}}
    objects.native_pod_group(BETA, native)


def test_a_native_pod_group_has_a_minimum_and_is_never_written() -> None:
    raw = ganged.raw_group(notes={"repair": "restart"})
    raw["spec"] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    group = objects.native_pod_group(BETA, raw)
    assert group is not None
    body = ganged.raw_pod("p", node="n1")
    body["metadata"]["annotations"] = {}
    body["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    pod = objects.gang_pod(msgspec.convert(body, core.Pod))
    assert pod is not None
    cluster = ganged.Cluster().put(pod)
    native = type(cluster.groups)()
    book = gang_book.GangBook(cluster.pods, cluster.groups, [native])
    native.put(ganged.store.Meta("default/g", group.uid, 9), group)
    seen = book.observed(pod.gang_id)
    assert seen is not None
    assert (seen.gang.min_member, seen.gang.repair) == (2, declaration.Repair.RESTART)
    assert seen.group is not None
    assert seen.group.native
    assert book.observed("default/g") is None, "another gang than a PodGroup of the same name"
    kinds = {step.resource for step in gang_events.lost(seen, quorum.standing(seen))}
    assert kinds == {BETA, resources.PODS}


def test_a_pod_group_says_what_counts_and_else_the_oldest_pod_that_declares_it() -> None:
    older = ganged.pod("a", min=3, created=ganged.CREATED)
    younger = ganged.pod("b", min=5, created=ganged.CREATED + 1)
    unclear = ganged.pod("c", min="x", created=ganged.CREATED - 1)
    assert ganged.observed(younger, unclear, older).gang.min_member == 3
    assert ganged.observed(younger, older, ganged.group(least=7)).gang.min_member == 7
    assert ganged.Cluster().put(unclear).book.observed("default/g") is None


def test_what_is_kept_and_said_of_a_gang_is_bounded() -> None:
    owners = [{"apiVersion": "v1", "kind": "X", "name": "n" * 9, "uid": f"{n}"} for n in range(99)]
    raw = ganged.raw_pod("p", node="n1", min=2)
    raw["metadata"]["ownerReferences"] = owners
    pod = objects.gang_pod(msgspec.convert(raw, core.Pod))
    assert pod is not None
    assert len(pod.owners) < 20
    pods = [ganged.pod(f"p{number}", node="n1", min=600) for number in range(512)]
    seen = ganged.observed(*pods)
    assert len(gang_events.lost(seen, quorum.standing(seen))) < 10
