"""Informers of quotas, pods and nodes as one forest."""

import random
import sys
import tracemalloc

import msgspec
import pytest

from api import names, resources
from api.kubernetes import core
from api.wire import base
from domain.quota.model import Rules
from domain.quota.tree.forest import Forest
from kube.informers import store
from manager.quota import book, objects
from tests import builders
from tests.manager.quota.conftest import Cluster, a_quota

BOUNDS = {"cpu": "100", "memory": "100Gi", "pods": "50"}


@pytest.fixture
def teams(cluster: Cluster) -> Cluster:
    cluster.node("n1")
    cluster.quota(a_quota("a", least={"cpu": "10"}, most=BOUNDS))
    cluster.quota(a_quota("b", least={"cpu": "10"}, most=BOUNDS))
    return cluster


def recomputed(cluster: Cluster) -> Forest:
    """Build the forest anew from what the informers hold."""
    fresh = book.Book(cluster.stores, cluster.book.forest.rules)
    fresh.synced()
    return fresh.forest


def test_a_pod_is_requested_while_it_waits_and_used_once_it_has_a_node(teams: Cluster) -> None:
    teams.pod("p", quota="a", cpu="4")
    assert (teams.asked("a"), teams.used("a")) == (4000, 0)
    assert teams.book.waiting == {"uid-default-p"}
    teams.pod("p", quota="a", cpu="4", node="n1")
    assert (teams.asked("a"), teams.used("a"), teams.used("a", "pods")) == (4000, 4000, 1)
    assert teams.book.waiting == set()
    assert [pod.key for pod in teams.book.on_node("n1")] == ["default/p"]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda world: world.drop_pod("p"), id="deleted"),
        pytest.param(
            lambda world: world.pod("p", quota="a", node="n1", phase="Succeeded"), id="succeeded"
        ),
        pytest.param(
            lambda world: world.pod("p", quota="a", node="n1", phase="Failed"), id="evicted"
        ),
        pytest.param(lambda world: world.drop_node("n1"), id="node-gone"),
        pytest.param(lambda world: world.pod("p", quota="b", node="n1"), id="moved"),
        pytest.param(lambda world: world.pod("p", quota="a", node="n1", cpu="0"), id="resized"),
    ],
)
def test_a_pod_that_ends_or_moves_is_counted_no_longer(teams: Cluster, end) -> None:
    teams.pod("p", quota="a", node="n1")
    assert teams.used("a") == 1000
    end(teams)
    assert teams.used("a") == 0
    assert teams.book.forest == recomputed(teams)


def test_a_node_that_comes_back_brings_its_pods(teams: Cluster) -> None:
    teams.pod("p", quota="a", node="n1", cpu="3")
    teams.drop_node("n1")
    assert teams.used("a") == 0
    teams.pod("p", quota="a", node="n1", cpu="5")
    assert teams.used("a") == 0
    teams.node("n1")
    assert teams.used("a") == 5000


def test_pods_of_a_node_that_no_list_holds_are_not_counted() -> None:
    cluster = Cluster()
    cluster.quota(a_quota("a", most=BOUNDS))
    cluster.pod("p", quota="a", node="away", cpu="3")
    assert cluster.used("a") == 3000
    cluster.book.synced()
    assert cluster.used("a") == 0
    cluster.drop_pod("p")
    cluster.pod("q", quota="a", node="away", cpu="2")
    assert cluster.used("a") == 2000, "a node that is heard of later is taken for a new one"


def test_another_pod_of_the_same_name_is_another_pod(teams: Cluster) -> None:
    teams.pod("p", quota="a", cpu="4", uid="one", node="n1")
    teams.pod("p", quota="a", cpu="1", uid="two")
    assert list(teams.book.pods) == ["two"]
    assert (teams.asked("a"), teams.used("a")) == (1000, 0)


def test_a_quota_that_comes_later_takes_its_pods_along(teams: Cluster) -> None:
    teams.pod("p", quota="late", cpu="4", node="n1")
    pod = teams.book.pods["uid-default-p"]
    assert teams.book.name_of(pod) == names.DEFAULT_QUOTA
    teams.quota(a_quota("late", most=BOUNDS))
    assert (teams.book.name_of(pod), teams.used("late")) == ("late", 4000)
    assert teams.book.of_quota("late") == (pod,)
    teams.drop_quota("default/late")
    assert teams.book.name_of(pod) == names.DEFAULT_QUOTA


@pytest.mark.parametrize("group", resources.QUOTA_RESOURCES, ids=lambda one: one.group)
def test_each_group_is_read(cluster: Cluster, group: resources.Resource) -> None:
    cluster.quota(a_quota("q", "team", group=group, most=BOUNDS))
    assert list(cluster.book.quotas) == [f"{group.group}/team/q"]
    cluster.pod("p", "team", quota="q", cpu="2")
    assert cluster.asked("q") == 2000


def test_the_status_of_a_quota_is_no_change_of_it(teams: Cluster) -> None:
    before, heard = teams.book.forest, []
    teams.book.listen(heard.append)
    teams.quota(
        a_quota(
            "a",
            least={"cpu": "10"},
            most=BOUNDS,
            annotations={"runtime": '{"cpu":"3"}'},
            status={"used": {"cpu": "3"}},
        )
    )
    assert teams.book.forest is before
    (change,) = heard
    assert (change.kind, change.key) == (book.QUOTA, "scheduling.sigs.k8s.io/default/a")
    assert change.after.annotations == {names.ANNOTATION_QUOTA_RUNTIME: '{"cpu":"3"}'}


def test_a_pod_of_which_only_the_version_changed_is_no_news(teams: Cluster) -> None:
    teams.pod("p", quota="a")
    before, heard = teams.book.forest, []
    teams.book.listen(heard.append)
    version = teams.book.pods["uid-default-p"].resource_version
    teams.pod("p", quota="a")
    assert (teams.book.forest, heard) == (before, [])
    assert int(teams.book.pods["uid-default-p"].resource_version) > int(version)


def test_changed_rules_hold_at_once_and_are_told(teams: Cluster) -> None:
    heard = []
    stop = teams.book.listen(heard.append)
    teams.book.set_rules(Rules(runtime=False))
    teams.book.set_rules(Rules(runtime=False))
    assert [change.kind for change in heard] == [book.RULES]
    assert teams.book.forest.limit("a")["cpu"] == 100_000
    stop()
    teams.drop_pod("none")
    teams.book.set_rules(Rules())
    assert len(heard) == 1


def test_what_waiting_pods_say_of_themselves(cluster: Cluster) -> None:
    raw = builders.a_pod(
        "p", gates=[names.GATE_QUOTA, "other"], priority=7, created=90.0,
        labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"},
    )  # fmt: skip
    raw["status"]["nominatedNodeName"] = "n9"
    raw["status"]["conditions"] = [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastTransitionTime": builders.durations.moment(120.0),
        }
    ]
    raw["metadata"]["deletionTimestamp"] = builders.durations.moment(130.0)
    found = cluster.shapes.pod(msgspec.convert(raw, core.Pod))
    assert found is not None
    assert (found.gated, found.gates, found.priority) == (True, (names.GATE_QUOTA, "other"), 7)
    assert (found.created_at, found.unschedulable_since, found.nominated) == (90.0, 120.0, "n9")
    assert (found.use.preemptible, found.use.assigned, found.terminating) == (False, False, True)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param({"metadata": {"name": "q", "labels": []}}, id="labels"),
        pytest.param(a_quota("q", most={"cpu": "many"}), id="amount"),
        pytest.param(a_quota("q", most={"cpu": "1" * 5000}), id="long"),
        pytest.param({**a_quota("q"), "apiVersion": "v2"}, id="group"),
        pytest.param({**a_quota("q"), "spec": 7}, id="spec"),
    ],
)
def test_a_quota_that_cannot_be_read_is_an_error_of_its_own(raw) -> None:
    with pytest.raises(base.ReadError):
        objects.quota(raw)


def test_an_edit_that_cannot_be_read_leaves_the_quota_as_it_was() -> None:
    reader = objects.QuotaReader()
    read = reader.read(a_quota("q", most={"cpu": "9"}) | {"status": {"used": {"cpu": "1"}}})
    reader.known.put(store.Meta("default/q", read.quota.uid, 1), read)
    edited = a_quota("q", most={"cpu": "many"}) | {"status": {"used": {"cpu": "2"}}}
    edited["metadata"]["resourceVersion"] = "7"
    after = reader.read(edited)
    assert after.quota == read.quota
    assert (after.version, after.status) == ("7", {"used": {"cpu": "2"}})
    assert any("stays in force" in warning for warning in after.warnings)
    # Another object of the same name is not what was read before.
    edited["metadata"]["uid"] = "another"
    with pytest.raises(base.ReadError):
        reader.read(edited)


def test_a_quota_that_the_forest_refuses_is_left_out_and_stops_nobody(teams: Cluster) -> None:
    """The last line of defence: a fault nobody has thought of concerns one object."""
    broken = a_quota("broken", most=BOUNDS)
    read = objects.quota(broken)
    wrong = msgspec.structs.replace(read, quota=msgspec.structs.replace(read.quota, resource=None))
    seen = teams.stores.quotas[resources.ELASTIC_QUOTAS]
    teams.version += 1
    seen.put(builders_meta(broken, teams.version), wrong)
    assert {fault.partition(":")[0] for fault in teams.faults} == {"default/broken"}
    teams.pod("p", quota="a", cpu="2")
    assert teams.asked("a") == 2000


def builders_meta(raw, version):
    metadata = raw["metadata"]
    return book.store.Meta(f"{metadata['namespace']}/{metadata['name']}", metadata["uid"], version)


def test_huge_amounts_are_cut(cluster: Cluster) -> None:
    cluster.quota(a_quota("a", most={"cpu": "100"}))
    for number in range(20):
        cluster.pod(f"p{number}", quota="a", cpu="9E", memory="-5")
    assert cluster.asked("a") == 20 * objects.LARGEST


@pytest.mark.parametrize("seed", range(5))
def test_any_history_gives_the_forest_of_its_end(seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster()
    for _ in range(150):
        name, node = f"{rng.randrange(6)}", f"n{rng.randrange(3)}"
        rng.choice(
            [
                lambda: cluster.pod(
                    name,  # noqa: B023 - called at once
                    quota=rng.choice(["", "0", "1", "x"]),
                    node=rng.choice(["", node]),  # noqa: B023
                    cpu=str(rng.randrange(5)),
                    phase=rng.choice(["Pending", "Pending", "Failed"]),
                ),
                lambda: cluster.drop_pod(name),  # noqa: B023
                lambda: cluster.node(node, cpu=str(rng.randrange(1, 9))),  # noqa: B023
                lambda: cluster.drop_node(node),  # noqa: B023
                lambda: cluster.quota(
                    a_quota(name, most=BOUNDS, least={"cpu": str(rng.randrange(9))})  # noqa: B023
                ),
                lambda: cluster.drop_quota(f"default/{name}"),  # noqa: B023
            ]
        )()
    for node in ("n0", "n1", "n2"):
        cluster.node(node)
    assert cluster.book.forest == recomputed(cluster)
    assert cluster.book.waiting == {uid for uid, pod in cluster.book.pods.items() if not pod.node}


def test_pods_that_are_alike_share_what_they_have_in_common() -> None:
    cluster = Cluster()
    raws = [
        msgspec.convert(
            {
                **(raw := builders.a_pod(f"worker-{n}", node=f"node-{n % 50}", created=float(n))),
                "metadata": {**raw["metadata"], "uid": f"00000000-0000-0000-0000-{n:012}"},
            },
            core.Pod,
        )
        for n in range(2000)
    ]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [cluster.shapes.pod(raw) for raw in raws]
    each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    tracemalloc.stop()
    assert len({id(pod.use.requests) for pod in kept}) == 1
    assert len({id(pod.use.namespace) for pod in kept}) == 1
    assert each < 600, f"{each:.0f} bytes a pod beside the objects themselves"
    assert sys.intern("default") is kept[0].use.namespace
