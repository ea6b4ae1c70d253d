"""Which waiting jobs may begin, and in which order they are asked."""

import dataclasses

import pytest

from descheduler.migration.plan import arbitrator
from tests.descheduler import builders
from tests.descheduler.migration.plan.given import NOW, PASSED


@dataclasses.dataclass
class Checks:
    """Refuses pods by name, and allows so many jobs at a time."""

    never: tuple = ()
    most: int = 100

    def permanent_refusal(self, profile, pod):
        return "forbidden" if pod.name in self.never else ""

    def present_refusal(self, profile, pod, migrating, along):
        assert along.holds(pod) or along.count(pod) >= migrating.count(pod)
        return "too many" if migrating.count(pod) >= self.most else ""


def job(name, pod=None, **fields):
    return builders.job(name, pod or f"{name}-pod", **fields)


def decided(jobs, pods=None, checks=None):
    """Arbitrate jobs whose pods are there unless others are given."""
    found = {one.name: builders.pod(one.pod_key, "node-0") for one in jobs}
    return arbitrator.arbitrated(
        builders.picture_of(jobs=jobs), found if pods is None else pods, checks or Checks()
    )


def test_jobs_pass_until_a_limit_is_reached():
    found = decided([job("a"), job("b"), job("c")], checks=Checks(most=2))
    assert found.passed == ("a", "b")
    assert found.waiting == {"c": "too many"}
    assert not found.failed


def test_what_was_let_through_before_counts():
    before = [job("old", phase="Running"), job("new", annotations=PASSED)]
    done = [job("done", phase="Succeeded", annotations=PASSED)]
    found = decided([*before, *done, job("a"), job("b")], checks=Checks(most=3))
    assert (found.passed, list(found.waiting)) == (("a",), ["b"])


NOT_ASKED = {
    "running": job("a", phase="Running"),
    "let through already": job("a", annotations=PASSED),
    "succeeded": job("a", phase="Succeeded"),
    "aborted": job("a", phase="Aborted"),
    "being deleted": job("a", leaves_at=NOW),
    "paused": job("a", spec={"paused": True}),
}


@pytest.mark.parametrize("one", NOT_ASKED.values(), ids=NOT_ASKED)
def test_only_new_jobs_are_decided_about(one):
    assert decided([one], checks=Checks(never=("a-pod",))) == arbitrator.Arbitration()


def test_a_pod_that_may_never_move_ends_its_job():
    found = decided([job("a"), job("b")], checks=Checks(never=("a-pod",)))
    assert found.failed == {"a": "forbidden"}
    assert found.passed == ("b",)


def test_a_job_without_a_pod_passes_and_fails_at_its_first_step():
    assert decided([job("a")], pods={}, checks=Checks(most=0)).passed == ("a",)


def names(jobs, pods, counted=()):
    return [one.name for one in arbitrator.ordered(jobs, pods, counted)]


def test_jobs_are_asked_in_the_order_in_which_pods_would_leave():
    jobs = [job(name) for name in ("prod", "batch", "old-gone", "gone")]
    jobs[3] = job("gone", created=NOW + 5)
    pods = {
        "prod": builders.pod("p", "n", priority=9500),
        "batch": builders.pod("b", "n", priority=5500),
    }
    # Jobs without a pod first, the newest of them at the top.
    assert names(jobs, pods) == ["gone", "old-gone", "batch", "prod"]


def test_the_pods_of_a_batch_job_are_neighbours_at_its_best_rank():
    def of(name, controller, priority):
        return builders.pod(name, "n", controller=controller, priority=priority)

    jobs = [job(name) for name in ("a", "b", "c", "d")]
    pods = {
        "a": of("a", "Job/one", 5000),
        "b": of("b", "ReplicaSet/x", 5100),
        "c": of("c", "Job/one", 9000),
        "d": of("d", "Job/two", 5200),
    }
    assert names(jobs, pods) == ["a", "c", "b", "d"]
    running = job("running", phase="Running")
    begun = {**pods, "running": of("r", "Job/two", 0)}
    assert names(jobs, begun, [running]) == ["d", "a", "c", "b"]


TOGETHER = {"koord.sh/migration-group": "g", "koord.sh/migration-group-size": "2"}


def test_a_group_passes_as_a_whole_and_its_own_jobs_do_not_stand_in_its_way():
    jobs = [job("a", annotations=TOGETHER), job("b", annotations=TOGETHER), job("c")]
    found = decided(jobs, checks=Checks(most=1))
    assert found.passed == ("a", "b")
    assert found.waiting == {"c": "too many"}


def test_a_group_waits_as_a_whole():
    other = job("running", phase="Running")
    jobs = [other, job("a", annotations=TOGETHER), job("b", annotations=TOGETHER)]
    assert decided(jobs, checks=Checks(most=1)).waiting == dict.fromkeys("ab", "too many")


def test_a_group_waits_until_all_its_jobs_are_there():
    found = decided([job("a", annotations=TOGETHER)])
    assert found.waiting == {"a": "1 of 2 jobs of its group is there"}
    half = job("a", annotations={**TOGETHER, **PASSED})
    assert decided([half, job("b", annotations=TOGETHER)]).passed == ("b",)


def test_one_pod_of_a_group_that_may_never_move_keeps_the_others():
    jobs = [job("a", annotations=TOGETHER), job("b", annotations=TOGETHER)]
    found = decided(jobs, checks=Checks(never=("b-pod",)))
    assert (found.passed, found.failed) == ((), {"b": "forbidden"})


class Counted(dict):
    """Pods that count how many of them are looked at."""

    looks = 0

    def get(self, *key):
        self.looks += 1
        return super().get(*key)

    def values(self):
        self.looks += len(self)
        return super().values()


@pytest.mark.parametrize("there", [True, False])
def test_pods_are_not_looked_at_anew_for_each_group(there):
    jobs = [job(f"j{at}", annotations={"koord.sh/migration-group": f"g{at}"}) for at in range(100)]
    jobs += [job(f"old{at}", phase="Running") for at in range(100)]
    pods = [builders.pod(one.pod_key if there else f"other-{one.name}", "n") for one in jobs]
    seen = builders.picture_of(jobs=jobs, pods=pods)
    counted = Counted(seen.pods)
    found = arbitrator.arbitrated(
        dataclasses.replace(seen, pods=counted),
        {one.name: one_pod for one, one_pod in zip(jobs, pods, strict=True)} if there else {},
        Checks(most=1000),
    )
    assert len(found.passed) == 100
    assert counted.looks <= 10 * len(jobs)
