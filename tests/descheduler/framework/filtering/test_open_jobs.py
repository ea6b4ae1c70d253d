"""The index of pods that are being moved."""

import collections

import hypothesis
from hypothesis import strategies as st

from descheduler.framework.filtering import open_jobs
from tests.descheduler.builders import job, picture_of, pod


def test_a_job_holds_its_pod_by_uid_and_by_name():
    moved = pod("web-0", "n")
    successor = pod("web-0", "m", uid="new")
    other = pod("web-1", "n")
    by_uid = open_jobs.of(picture_of(pods=[moved, other], jobs=[job("j", "web-0")]))
    assert by_uid.holds(moved)
    assert not by_uid.holds(other)
    by_name = open_jobs.of(picture_of(pods=[successor, other], jobs=[job("j", "web-0")]))
    assert by_name.holds(successor)
    assert by_name.count_on("m", other) == 1


def test_what_a_round_decides_counts_at_once():
    pods = [pod(f"web-{number}", "n") for number in range(3)]
    index = open_jobs.of(picture_of(pods=pods))
    index.add(pods[0])
    assert index.holds(pods[0])
    assert (index.count(pods[1]), index.count(pods[0])) == (1, 0)
    assert (index.count_on("n", pods[1]), index.count_in("default", pods[1])) == (1, 1)
    assert index.pods_of("web", pods[1]) == [pods[0]]


def test_a_bare_pod_that_waits_is_of_no_node_and_no_controller():
    waiting, other = pod("bare", controller=""), pod("web-1", "n")
    index = open_jobs.of(picture_of(pods=[waiting, other], jobs=[job("j", "bare")]))
    assert index.holds(waiting)
    assert (index.count(other), index.count_on("n", other)) == (1, 0)


@hypothesis.given(st.data())
def test_counts_are_what_a_look_at_every_job_says(data):
    spots = st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y"]), st.sampled_from("vw"))
    drawn = data.draw(st.lists(spots, min_size=1, max_size=8))
    pods = [
        pod(f"{namespace}/p{number}", node, controller=f"ReplicaSet/{name}")
        for number, (node, namespace, name) in enumerate(drawn)
    ]
    jobs = [job(f"j{one.name}", one.key, uid=one.uid) for one in pods if data.draw(st.booleans())]
    index = open_jobs.of(picture_of(pods=pods, jobs=jobs))
    moving = [one for one in pods if any(one.key == each.pod_key for each in jobs)]
    for one in pods:
        others = [each for each in moving if each is not one]
        nodes = collections.Counter(each.node for each in others)
        names = collections.Counter(each.namespace for each in others)
        assert index.count(one) == len(others)
        assert index.count_on(one.node, one) == nodes[one.node]
        assert index.count_in(one.namespace, one) == names[one.namespace]
        assert index.holds(one) == (one in moving)
        same = [each for each in others if each.controller.uid == one.controller.uid]
        assert list(index.pods_of(one.controller.uid, one)) == same


_JOBS = [
    *(job(f"j{at}", f"web-{at % 3}", uid=uid) for at, uid in enumerate(["", "", "", "uid-web-1"])),
    job("of another namespace", "team/web-0"),
    job("of a pod that is gone", "gone-0"),
    job("of a successor", "web-2", uid="uid-of-another-one"),
]
_PODS = [pod("web-0", "a"), pod("web-1", "a"), pod("web-2", "b", controller=""), pod("team/web-0")]


def _said(index):
    return [
        (
            index.holds(one),
            index.concerns(one),
            index.count(one),
            [index.count_on(node, one) for node in "ab"],
            [index.count_in(namespace, one) for namespace in ("default", "team")],
            sorted(other.uid for other in index.pods_of("web", one)),
        )
        for one in _PODS
    ]


@hypothesis.given(st.lists(st.sampled_from(_JOBS), unique_by=id), st.data())
def test_what_changes_for_a_moment_counts_as_if_built_anew(counted, data):
    fewer = data.draw(st.lists(st.sampled_from(counted), unique_by=id)) if counted else []
    more = [one for one in _JOBS if one not in counted and data.draw(st.booleans())]
    seen = picture_of(pods=_PODS)
    index = open_jobs.OpenJobs(seen, counted)
    left = [one for one in counted if one not in fewer]
    with index.changed(more, fewer):
        assert _said(index) == _said(open_jobs.OpenJobs(seen, [*left, *more]))
    assert _said(index) == _said(open_jobs.OpenJobs(seen, counted))
