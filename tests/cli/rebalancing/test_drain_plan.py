"""What becomes of the pods of a node that is drained, on pictures and a table of targets."""

import msgspec
import pytest

from cli.rebalancing import drain_plan, drain_progress
from descheduler.configuration.arguments import migration
from descheduler.framework import protocols
from tests.descheduler import builders

FATE = drain_plan.Fate


class Rooms:
    """Targets with so much free cpu; the first node by name that has enough is taken."""

    def __init__(self, **free):
        self.free = {node.replace("_", "-"): amount * 1000 for node, amount in free.items()}
        self.moves = []

    def target(self, pod, among, without):
        assert among is None
        for node, free in sorted(self.free.items()):
            if node not in without and free >= pod.requests["cpu"]:
                return protocols.Target(node)
        return protocols.NoTarget("Insufficient cpu")

    def move(self, pod, node):
        self.free[node] -= pod.requests["cpu"]
        self.moves.append((pod.name, node))

    def remove(self, pod):
        raise AssertionError("nothing is removed by a drain")


def planned(pods, rooms, *, gangs=False, jobs=(), more=(), **arguments):
    nodes = [builders.node(name) for name in ("n1", "n2", "n3")]
    workloads = [builders.workload("web", 3), builders.workload("db", 3), *more]
    seen = builders.picture_of(nodes, pods, workloads=workloads, jobs=jobs)
    chosen = migration.MigrationControllerArgs(**arguments).complete()
    options = drain_plan.Options(chosen, gangs=gangs)
    return drain_plan.plan(seen, "n1", rooms, options)


def fates(plan):
    return {line.pod.name: (line.fate, line.target or line.reason) for line in plan.lines}


def test_the_largest_pods_choose_first_and_each_move_takes_room():
    pods = [builders.pod(f"web-{n}", "n1", cpu=str(n)) for n in (1, 2, 3)]
    rooms = Rooms(n2=3, n3=2)
    found = planned([*pods, builders.pod("other", "n2")], rooms)
    assert rooms.moves == [("web-3", "n2"), ("web-2", "n3")]
    assert fates(found) == {
        "web-3": (FATE.MOVES, "n2"),
        "web-2": (FATE.MOVES, "n3"),
        "web-1": (FATE.NO_TARGET, "Insufficient cpu"),
    }
    assert not found.empties


@pytest.mark.parametrize(
    ("fields", "fate", "reason"),
    [
        pytest.param({"controller": "DaemonSet/d"}, FATE.BELONGS, "", id="DaemonSet"),
        pytest.param({"is_mirror": True}, FATE.BELONGS, "", id="static"),
        pytest.param(
            {"has_local_storage": True},
            FATE.MUST_STAY,
            "it has a volume of kind hostPath or emptyDir",
            id="local storage",
        ),
        pytest.param(
            {"controller": ""},
            FATE.MUST_STAY,
            "it has no owner that would replace it",
            id="bare",
        ),
        pytest.param(
            {"controller": "ReplicaSet/single"},
            FATE.MUST_STAY,
            "its workload has too few replicas",
            id="one replica",
        ),
        pytest.param(
            {"labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}},
            FATE.MUST_STAY,
            "it is marked as not preemptible",
            id="not preemptible",
        ),
    ],
)
def test_what_the_filters_refuse_stays_with_its_reason(fields, fate, reason):
    pod = builders.pod("p", "n1", **fields)
    found = planned([pod], Rooms(n2=9), more=[builders.workload("single", 1)])
    assert fates(found) == {"p": (fate, reason)}
    assert found.empties == (fate is FATE.BELONGS)


def test_pods_that_have_ended_hinder_nothing_and_those_with_a_job_are_not_planned_again():
    moving = builders.pod("web-0", "n1")
    pods = [moving, builders.pod("done", "n1", phase="Succeeded")]
    found = planned(pods, Rooms(n2=9), jobs=[builders.job("j", "web-0", uid=moving.uid)])
    assert fates(found) == {"web-0": (FATE.IS_MOVING, "")}
    assert found.empties


@pytest.mark.parametrize(
    ("fields", "fate", "reason"),
    [
        pytest.param({}, FATE.IS_LEAVING, "it has 25s left to end", id="of a workload"),
        pytest.param({"controller": ""}, FATE.IS_LEAVING, "it has 25s left to end", id="bare"),
        pytest.param(
            {"leaves_at": builders.NOW - 3600.4},
            FATE.IS_LEAVING,
            "its grace period ended 1h0m0s ago",
            id="late",
        ),
        pytest.param({"controller": "DaemonSet/d"}, FATE.BELONGS, "", id="DaemonSet"),
        pytest.param({"is_mirror": True}, FATE.BELONGS, "", id="static"),
    ],
)
def test_pods_that_terminate_already_neither_move_nor_stay(fields, fate, reason):
    pod = builders.pod("p", "n1", **{"leaves_at": builders.NOW + 25, **fields})
    found = planned([pod, builders.pod("web-0", "n1")], Rooms(n2=9))
    assert fates(found) == {"p": (fate, reason), "web-0": (FATE.MOVES, "n2")}
    assert found.empties


def test_a_pod_that_terminates_by_its_job_is_moving_and_one_that_has_ended_hinders_nothing():
    moving = builders.pod("web-0", "n1", leaves_at=builders.NOW)
    ended = builders.pod("done", "n1", leaves_at=builders.NOW, phase="Succeeded")
    job = builders.job("j", "web-0", uid=moving.uid)
    assert fates(planned([moving, ended], Rooms(n2=9), jobs=[job])) == {
        "web-0": (FATE.IS_MOVING, "")
    }


def members(*places):
    return [
        builders.pod(f"m-{n}", place, gang="default/train", controller="ReplicaSet/db")
        for n, place in enumerate(places)
    ]


def test_a_gang_on_the_node_moves_as_a_whole():
    found = planned(members("n1", "n1"), Rooms(n2=1, n3=1))
    assert fates(found) == {"m-0": (FATE.MOVES, "n2"), "m-1": (FATE.MOVES, "n3")}
    assert {(line.group, line.group_size) for line in found.lines} == {("default/train", 2)}


def test_a_gang_moves_without_a_member_that_terminates_already():
    leaving, *others = members("n1", "n1", "n1")
    leaving = msgspec.structs.replace(leaving, leaves_at=builders.NOW + 9)
    found = planned([leaving, *others], Rooms(n2=9))
    assert [fate for fate, _ in fates(found).values()] == [FATE.IS_LEAVING, *2 * [FATE.MOVES]]
    assert found.empties


def test_a_gang_without_room_for_all_of_it_stays_as_a_whole():
    found = planned(members("n1", "n1"), Rooms(n2=1))
    assert fates(found) == {
        "m-0": (FATE.MUST_STAY, "its gang moves as a whole, and default/m-1 has no target"),
        "m-1": (FATE.NO_TARGET, "Insufficient cpu"),
    }


def test_a_gang_with_members_elsewhere_moves_only_where_that_is_asked_for():
    found = planned(members("n1", "n3"), Rooms(n2=9))
    assert fates(found) == {"m-0": (FATE.MUST_STAY, drain_plan.GANG_ELSEWHERE)}
    found = planned(members("n1", "n3"), Rooms(n2=9), gangs=True)
    assert fates(found) == {"m-0": (FATE.MOVES, "n2"), "m-1": (FATE.MOVES, "n2")}


def test_the_preview_names_every_pod():
    pods = [
        builders.pod("web-0", "n1"),
        builders.pod("web-1", "n1", cpu="9"),
        builders.pod("log", "n1", controller="DaemonSet/d"),
        builders.pod("cache", "n1", has_local_storage=True),
        builders.pod("old", "n1", leaves_at=builders.NOW + 30),
    ]
    found = planned(pods, Rooms(n2=2))
    assert list(drain_progress.lines(found)) == [
        "Node n1: 1 pod moves.",
        "  default/web-0 to n2",
        "  default/old is leaving already: it has 30s left to end",
        "  default/web-1 has no target: Insufficient cpu",
        "  default/cache must stay: it has a volume of kind hostPath or emptyDir",
        "1 pod of a DaemonSet or of the kubelet stays, as on every node.",
        "The node does not become empty.",
    ]
    document = drain_progress.document(found)
    assert [one["fate"] for one in document["pods"]] == [
        *("belongs to the node", "has no target", "is leaving already", "moves", "must stay")
    ]


def drains(*phases):
    label = {"koord.sh/drain": "n1"}
    made = [
        builders.job(f"j{n}", f"web-{n}", phase=phase, labels=label, status={"reason": "Why"})
        for n, phase in enumerate(phases)
    ]
    return {job.name: job for job in made}


def test_progress_counts_the_jobs_of_this_drain():
    jobs = drains("Succeeded", "Succeeded", "Running", "Failed")
    jobs["other"] = builders.job("other", "db-0", phase="Running")
    found = drain_progress.progress(drain_progress.followed({}, jobs, "n1"))
    assert drain_progress.bar(found) == (
        "[##################------] 2 of 4 pods have moved; 1 has not; default/web-2: Why"
    )
    assert list(drain_progress.failures(found)) == ["default/web-3 has not moved (Why): Why"]


def test_a_job_that_was_deleted_before_its_end_has_failed():
    known = drains("Succeeded", "Running")
    found = drain_progress.progress(drain_progress.followed(known, {}, "n1"))
    assert [job.pod_key for job in found.moved] == ["default/web-0"]
    assert list(drain_progress.failures(found)) == [
        "default/web-1 has not moved (Deleted): its PodMigrationJob was deleted"
    ]


def test_the_last_attempt_at_a_pod_counts():
    label = {"koord.sh/drain": "n1"}
    jobs = {
        "a": builders.job("a", "web-0", phase="Failed", labels=label, created=1.0),
        "b": builders.job("b", "web-0", phase="Succeeded", labels=label, created=2.0),
    }
    found = drain_progress.progress(drain_progress.followed({}, jobs, "n1"))
    assert (len(found.moved), len(found.failed)) == (1, 0)
