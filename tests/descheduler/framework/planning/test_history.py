"""What is remembered of moves, from rounds and from jobs."""

from api import names
from descheduler.framework.planning import history
from tests.descheduler.builders import NOW, job, picture_of, pod

KEEP = 3600.0
MOVED = history.Moved(NOW - 60, "default", "n", "web")


def followed(before, seen, keep=KEEP):
    return dict(history.followed(before, seen, keep))


def condition(kind, status, reason=""):
    return {"type": kind, "status": status, "reason": reason}


def test_a_decided_move_is_remembered_until_it_is_too_old():
    seen = picture_of(pods=[pod("web-0", "n")])
    assert followed({"uid-web-0": MOVED}, seen) == {"uid-web-0": MOVED}
    assert followed({"uid-web-0": MOVED}, seen, keep=30.0) == {}


def test_a_move_that_no_job_carries_out_did_not_happen():
    old = history.Moved(NOW - 400, "default", "n", "web")
    assert followed({"uid-web-0": old}, picture_of(pods=[pod("web-0", "n")])) == {}
    assert followed({"uid-web-0": old}, picture_of()) == {"uid-web-0": old}


def test_an_eviction_without_a_job_counts_while_its_pod_terminates():
    old = history.Moved(NOW - 400, "default", "n", "web")
    terminating = pod("web-0", "n", leaves_at=NOW + 500)
    assert followed({"uid-web-0": old}, picture_of(pods=[terminating])) == {"uid-web-0": old}


def test_a_job_that_failed_before_the_eviction_moved_nothing():
    failed = job("j", phase="Failed")
    evicted = job(
        "j", phase="Failed", status={"conditions": [condition("Eviction", "False", "Evicting")]}
    )
    refused = job(
        "j", phase="Failed", status={"conditions": [condition("Eviction", "False", "FailedEvict")]}
    )
    for one, kept in ((failed, False), (evicted, True), (refused, False)):
        assert ("uid-web-0" in followed({"uid-web-0": MOVED}, picture_of(jobs=[one]))) is kept


def test_jobs_tell_after_a_restart():
    running = job("a", "web-0", created=NOW - 30, phase="Running")
    done = job(
        "b",
        "x/web-1",
        created=NOW - 90,
        phase="Succeeded",
        annotations={names.ANNOTATION_MIGRATION_WORKLOAD: "rs"},
    )
    old = job("c", "web-2", created=NOW - 4000, phase="Succeeded")
    found = followed({}, picture_of(pods=[pod("web-0", "n")], jobs=[running, done, old]))
    assert found == {
        "uid-web-0": history.Moved(NOW - 30, "default", "n", "web"),
        "uid-web-1": history.Moved(NOW - 90, "x", "", "rs"),
    }


def test_a_line_that_came_back_is_remembered_while_its_last_pod_stands():
    long_ago = NOW - 10 * KEEP
    one = history.Moved(long_ago, "default", "n", "web", returns=1)
    successor = pod("web-1", "n", created=long_ago + 30)
    later = pod("web-2", "n", created=long_ago + 3000)
    assert followed({"uid-web-0": one}, picture_of(pods=[successor])) == {"uid-web-0": one}
    for pods in ([], [later], [pod("web-1", "n", created=long_ago + 30, controller="Job/x")]):
        assert followed({"uid-web-0": one}, picture_of(pods=pods)) == {}
    never_back = history.Moved(long_ago, "default", "n", "web", turn=3)
    assert followed({"uid-web-0": never_back}, picture_of(pods=[successor])) == {}
