"""Pods that leave a drained node without a job: for how long they are waited for, what is said."""

import pytest

from cli.rebalancing import departures, drain_progress
from tests.descheduler import builders

NOW = builders.NOW


def leaving(name="old", ends_in=-90.0, **fields):
    return builders.pod(name, "n1", leaves_at=NOW + ends_in, **fields)


@pytest.mark.parametrize(
    ("ends_in", "ttl", "until"),
    [
        pytest.param(-90.0, 900.0, 900.0, id="as long as a job may take"),
        pytest.param(-90.0, 0.0, 30.0, id="two minutes after its end, without a ttl"),
        pytest.param(3600.0, 900.0, 3720.0, id="until it may be killed"),
        pytest.param(-3600.0, 0.0, 0.0, id="it is too late already"),
    ],
)
def test_a_pod_is_waited_for_as_if_it_had_a_job(ends_in, ttl, until):
    assert departures.waited_until(leaving(ends_in=ends_in), NOW, ttl) == NOW + max(until, 0.0)


def test_pods_are_overdue_two_minutes_after_their_end():
    late, in_time = leaving("a", -120.0), leaving("b", -119.0)
    unseen = builders.pod("c", "n1")
    assert departures.overdue([late, in_time, unseen], NOW) == [late]


@pytest.mark.parametrize(
    ("metadata", "node", "said"),
    [
        pytest.param(
            {"finalizers": ["a.b/c", "d.e/f"], "deletionGracePeriodSeconds": 30},
            builders.node("n1"),
            "its grace period ended 1m30s ago (of 30s): "
            "it stays until its finalizers are removed, a.b/c, d.e/f",
            id="finalizers",
        ),
        pytest.param(
            {},
            builders.node("n1", ready=False),
            "its grace period ended 1m30s ago: no kubelet ends it, since node n1 is not ready",
            id="a dead node",
        ),
        pytest.param(
            {"deletionGracePeriodSeconds": 5},
            builders.node("n1"),
            "its grace period ended 1m30s ago (of 5s): "
            "it has no finalizers, the kubelet of node n1 has not ended it",
            id="a kubelet that is slow",
        ),
        pytest.param(
            {}, None, "its grace period ended 1m30s ago: no kubelet ends it, since node n1 is not "
            "ready", id="no node",
        ),
    ],
)  # fmt: skip
def test_what_holds_a_pod_is_named(metadata, node, said):
    found = departures.held(leaving(), {"metadata": metadata}, node, NOW)
    assert found == f"default/old is still terminating, {said}"


def by_uid(*pods):
    return {pod.uid: pod for pod in pods}


def test_progress_counts_pods_that_were_leaving_already_until_they_have_ended():
    one, other, ended = leaving("a"), leaving("b"), leaving("c", phase="Failed")
    uids = {one.uid, other.uid, ended.uid}
    found = drain_progress.progress({}, uids, by_uid(one, ended))
    assert drain_progress.bar(found) == (
        "[################--------] 2 of 3 pods that were leaving already have ended; "
        "default/a: the pod is terminating"
    )
    assert found.leaving == (one,)


def drained(phase, reason="", pod="web-0"):
    return builders.job(f"j-{pod}", pod, phase=phase, status={"reason": reason})


def test_a_job_whose_pod_left_by_itself_has_not_failed():
    missed, moved = drained("Failed", "MissingPod"), drained("Succeeded", pod="web-1")
    jobs = {one.name: one for one in (missed, moved)}
    pod = leaving("web-0")
    found = drain_progress.progress(jobs, (), by_uid(pod))
    assert (len(found.moved), found.failed, found.leaving, found.left) == (1, (), (pod,), 0)
    gone = drain_progress.progress(jobs)
    assert (gone.leaving, gone.left) == ((), 1)
    assert drain_progress.bar(gone) == (
        "[########################] 1 of 1 pod has moved; "
        "1 of 1 pod that was leaving already has ended"
    )


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        pytest.param(["Succeeded"], "1 of 1 pod has moved", id="the only one"),
        pytest.param(["Pending"], "0 of 1 pod have moved", id="none"),
        pytest.param(["Succeeded", "Failed"], "1 of 2 pods has moved; 1 has not", id="one of two"),
        pytest.param(
            ["Succeeded", "Succeeded", "Failed", "Failed"],
            "2 of 4 pods have moved; 2 have not",
            id="several",
        ),
    ],
)
def test_progress_agrees_with_its_numbers(phases, said):
    jobs = [drained(phase, pod=f"web-{number}") for number, phase in enumerate(phases)]
    found = drain_progress.progress({one.name: one for one in jobs})
    assert drain_progress.bar(found).partition("] ")[2] == said


def test_pods_that_were_evicted_and_stay_are_named_as_well():
    old, evicted, stays = leaving(), leaving("web-0"), builders.pod("web-1", "n1")
    jobs = {"a": drained("Failed", "Timeout"), "b": drained("Failed", "Timeout", "web-1")}
    there = by_uid(old, evicted, stays)
    found = drain_progress.progress(jobs, {old.uid}, there)
    assert drain_progress.terminating(found, there) == [old, evicted]
