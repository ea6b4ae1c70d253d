"""A gang is planned as a whole: every member has a node beside the others, or there is no plan."""

import collections

import msgspec
import pytest
from hypothesis import given, settings, strategies

from api import names
from api.kubernetes import core
from extender.framework import pipeline, verdicts
from extender.gangs.planning import planner
from extender.state import allocations, deltas
from tests import processor_time
from tests.extender.clusters import device_cluster, quota_cluster
from tests.extender.gangs.stage import gang_cluster

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


@pytest.fixture
def cluster():
    return gang_cluster.GangCluster()


def test_every_member_gets_a_node_and_no_node_too_many(cluster):
    cluster.nodes(5)
    found = cluster.plan(cluster.gang("a", 10))
    assert isinstance(found, planner.Plan)
    assert sum(gang_cluster.nodes_of(found).values()) == 10
    assert set(gang_cluster.nodes_of(found).values()) == {2}
    assert len({one.pod.uid for one in found.placements}) == 10


def test_planning_changes_nothing(cluster):
    cluster.nodes(3)
    members = cluster.gang("a", 4)
    before = cluster.cluster.fingerprint()
    cluster.plan(members)
    assert cluster.cluster.fingerprint() == before


def test_refusal_names_the_member_the_figures_and_the_tightest_constraint(cluster):
    cluster.nodes(3)
    found = cluster.plan(cluster.gang("a", 7))
    assert isinstance(found, planner.Refused)
    assert (found.placed, found.needed, found.nodes) == (6, 7, 3)
    assert found.plugin == planner.IN_TREE
    assert found.reasons == ((planner.IN_TREE, "Insufficient cpu", 3),)
    assert found.sentence == (
        "6 of 7 members of gang default/a find a node, and default/a-6 does not: "
        "0/3 nodes are available: 3 Insufficient cpu"
    )


def test_members_beyond_the_minimum_are_placed_as_far_as_there_is_room(cluster):
    cluster.nodes(3)
    found = cluster.plan(cluster.gang("a", 8), {"default/a": 5})
    assert len(found.placements) == 6
    assert len(found.left) == 2


def test_gang_with_too_few_members_has_no_plan(cluster):
    cluster.nodes(3)
    found = cluster.plan(cluster.gang("a", 2), {"default/a": 3})
    assert found.sentence == "gang default/a has 2 of 3 members that it needs"


def test_gangs_of_a_group_are_planned_together(cluster):
    cluster.nodes(2)
    members = [*cluster.gang("a", 2), *cluster.gang("b", 3)]
    found = cluster.plan(members)
    assert isinstance(found, planner.Refused)
    cluster.nodes(1, first=2)
    assert len(cluster.plan(members).placements) == 5


@pytest.mark.parametrize(
    ("nodes", "pod", "reason"),
    [
        pytest.param({"taints": [TAINT]}, {}, "node(s) had untolerated taint(s)", id="taint"),
        pytest.param({"cordoned": True}, {}, "node(s) had untolerated taint(s)", id="cordon"),
        pytest.param(
            {},
            {"nodeSelector": {"disk": "ssd"}},
            "node(s) didn't match Pod's node affinity/selector",
            id="selector",
        ),
        pytest.param(
            {},
            {"requests": {"example.com/fpga": "1"}},
            "Insufficient example.com/fpga",
            id="extended resource",
        ),
        pytest.param({"cpu": "3"}, {}, "Insufficient cpu", id="cpu"),
    ],
)
def test_nodes_that_kube_scheduler_would_refuse_are_left_out(cluster, nodes, pod, reason):
    cluster.nodes(2, **nodes)
    members = cluster.gang("a", 2, **pod)
    found = cluster.plan(members)
    assert found.reasons == ((planner.IN_TREE, reason, 2),)
    cluster.nodes(1, first=2, labels={"disk": "ssd"}, **{"example.com/fpga": "2"})
    assert gang_cluster.nodes_of(cluster.plan(members)) == {"n2": 2}


def test_nodes_take_no_more_pods_than_they_say(cluster):
    cluster.nodes(2, pods="2")
    cluster.pod("other", node="n0", cpu="1")
    members = cluster.gang("a", 4, cpu="1")
    assert gang_cluster.nodes_of(cluster.plan(members[:3])) == {"n0": 1, "n1": 2}
    assert cluster.plan(members).reasons == ((planner.IN_TREE, "Too many pods", 2),)


def test_tolerated_taints_keep_no_member_away(cluster):
    cluster.nodes(1, taints=[TAINT])
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    assert len(cluster.plan(cluster.gang("a", 2, tolerations=tolerations)).placements) == 2


def test_thousands_of_host_ports_hold_no_plan_up(cluster):
    cluster.nodes(1)
    cluster.pod("other", node="n0", cpu="1", ports=range(1, 3001))
    members = cluster.gang("a", 1, cpu="1", ports=range(30_000, 33_000))
    with processor_time.below(0.2):
        assert gang_cluster.nodes_of(cluster.plan(members)) == {"n0": 1}


@pytest.mark.parametrize("kind", ["terms", "tolerations"])
def test_members_that_list_thousands_are_left_to_kube_scheduler_and_hold_no_plan_up(cluster, kind):
    cluster.nodes(300, taints=[TAINT] if kind == "tolerations" else ())
    keys = [f"k{number}" for number in range(5000)]
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in keys]
    spec = {
        "terms": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}},
        "tolerations": {"tolerations": [{"key": key, "operator": "Exists"} for key in keys]},
    }[kind]
    members = cluster.gang("a", 2, **spec)
    assert [one.pod.gang.probed for one in members] == [True, True]
    with processor_time.below(0.2):
        cluster.plan(members)


def test_members_that_listen_on_one_port_need_a_node_each(cluster):
    cluster.nodes(2)
    members = cluster.gang("a", 2, cpu="1", ports=(8080,))
    assert gang_cluster.nodes_of(cluster.plan(members)) == {"n0": 1, "n1": 1}
    cluster.pod("other", node="n0", cpu="1", ports=(8080,))
    refused = cluster.plan(members)
    assert ("kube-scheduler", "node(s) didn't have free ports for the requested pod ports", 2) in (
        refused.reasons
    )


@pytest.mark.parametrize(
    ("chosen", "nodes"),
    [
        pytest.param({"koordinator.sh/priority-class": "koord-prod"}, 4, id="like itself"),
        pytest.param({"app": "other"}, 2, id="others"),
    ],
)
def test_members_that_repel_each_other_get_a_node_each(cluster, chosen, nodes):
    cluster.nodes(4)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": chosen}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    members = cluster.gang("a", 4, affinity={"podAntiAffinity": rules})
    packing = pipeline.Pipeline((Packing(),), scorers=(pipeline.Weighted(Packing(), 1),))
    options = planner.Options({"default/a": 4})
    found = planner.plan(packing, cluster.cluster.fork(), members, options, 0.0)
    assert len(gang_cluster.nodes_of(found)) == nodes


def test_extended_resources_are_counted_member_by_member(cluster):
    cluster.nodes(2, **{"example.com/fpga": "2"})
    cluster.pod("other", node="n0", cpu="1", requests={"example.com/fpga": "1"})
    members = cluster.gang("a", 3, cpu="1", requests={"example.com/fpga": "1"})
    assert gang_cluster.nodes_of(cluster.plan(members)) == {"n0": 1, "n1": 2}


def test_members_with_fewer_nodes_are_placed_first(cluster):
    cluster.nodes(1)
    cluster.nodes(1, first=1, labels={"disk": "ssd"})
    free = cluster.gang("a", 2)
    bound = [
        planner.Member(
            cluster.pod(f"s-{number}", gang="a", nodeSelector={"disk": "ssd"}), "default/a"
        )
        for number in range(2)
    ]
    found = cluster.plan([*free, *bound])
    assert {one.pod.name: one.node for one in found.placements} == {
        "s-0": "n1",
        "s-1": "n1",
        "a-0": "n0",
        "a-1": "n0",
    }


@pytest.mark.parametrize("priority", [0, 1000])
def test_a_plan_never_takes_what_another_plan_keeps(cluster, priority):
    cluster.nodes(2)
    cluster.hold(cluster.plan(cluster.gang("a", 3)))
    other = cluster.gang("b", 2, priority=priority)
    assert isinstance(cluster.plan(other), planner.Refused)
    assert len(cluster.plan(other, {"default/b": 1}).placements) == 1


def test_own_claims_of_members_do_not_stand_in_their_way(cluster):
    cluster.nodes(2)
    members = cluster.gang("a", 4)
    cluster.hold(cluster.plan(members))
    assert len(cluster.plan(members).placements) == 4


def test_avoided_nodes_are_left_out(cluster):
    cluster.nodes(3)
    members = cluster.gang("a", 2)
    avoided = {member.pod.uid: ("n0", "n1") for member in members}
    assert gang_cluster.nodes_of(cluster.plan(members, avoided=avoided)) == {"n2": 2}


def test_demanded_nodes_are_the_only_ones(cluster):
    cluster.nodes(3)
    members = cluster.gang("a", 3)
    places = {member.pod.uid: "n1" for member in members}
    refused = cluster.plan(members, places=places)
    assert refused.placed == 2
    assert refused.reasons == ((planner.IN_TREE, "Insufficient cpu", 1),)


def test_quota_counts_for_the_whole_gang():
    cluster = quota_cluster.QuotaCluster()
    for number in range(4):
        cluster.node(f"n{number}")
    cluster.quota("team", most={"cpu": "10"}, least={"cpu": "10"})
    members = [planner.Member(cluster.pod(f"p{n}", "team", cpu=3), "default/g") for n in range(4)]
    before = cluster.state.fingerprint()
    options = planner.Options({"default/g": 4})
    found = planner.plan(
        cluster.pipeline, cluster.state.fork(), members, options, quota_cluster.NOW
    )
    assert (found.plugin, found.placed) == ("ElasticQuota", 3)
    assert "Insufficient quotas" in found.sentence
    assert cluster.state.fingerprint() == before
    options = planner.Options({"default/g": 3})
    found = planner.plan(
        cluster.pipeline, cluster.state.fork(), members, options, quota_cluster.NOW
    )
    assert len(found.placements) == 3


def test_devices_are_granted_to_every_member_and_none_twice():
    cluster = device_cluster.DeviceCluster()
    for name in ("n1", "n2"):
        offered = {"cpu": "64", names.GPU_CORE: "800", names.GPU_MEMORY_RATIO: "800"}
        raw = {"metadata": {"name": name}, "status": {"allocatable": offered}}
        record = cluster.projector.node(msgspec.convert(raw, core.Node))
        cluster.state.apply(deltas.NodeDelta(name, None, record))
        cluster.devices(device_cluster.eight(name))
    wanted = {names.GPU_CORE: "400", names.GPU_MEMORY_RATIO: "400"}
    members = [planner.Member(cluster.pod(f"p{n}", wanted), "default/g") for n in range(5)]

    def planned(count):
        options = planner.Options({"default/g": count})
        fork = cluster.state.fork()
        return planner.plan(cluster.pipeline, fork, members[:count], options, 0.0)

    found = planned(4)
    held = collections.defaultdict(list)
    for one in found.placements:
        written = allocations.written(cluster.pipeline.codecs, one.granted)
        assert written
        held[one.node].append(one.granted[device_cluster.NAME])
    assert {node: len(several) for node, several in held.items()} == {"n1": 2, "n2": 2}
    assert not any(cluster.plugin.conflicts(*several) for several in held.values())
    refused = planned(5)
    assert (refused.plugin, refused.placed) == (planner.IN_TREE, 4)


@settings(max_examples=25, deadline=None)
@given(
    strategies.lists(strategies.integers(1, 9), min_size=1, max_size=4),
    strategies.lists(strategies.integers(1, 5), min_size=1, max_size=8),
)
def test_plans_never_promise_more_than_there_is(nodes, members):
    cluster = gang_cluster.GangCluster()
    for number, cpu in enumerate(nodes):
        cluster.nodes(1, first=number, cpu=str(cpu))
    pods = [
        planner.Member(cluster.pod(f"p{number}", cpu=str(cpu), gang="a"), "default/a")
        for number, cpu in enumerate(members)
    ]
    found = cluster.plan(pods, {"default/a": 1})
    placed = found.placements if isinstance(found, planner.Plan) else ()
    used = collections.Counter()
    for one in placed:
        used[one.node] += dict(one.pod.requirements.requests)["cpu"]
    assert all(used[f"n{number}"] <= 1000 * cpu for number, cpu in enumerate(nodes))
    # Who was left out fits nowhere beside those that were placed.
    room = max(1000 * cpu - used[f"n{number}"] for number, cpu in enumerate(nodes))
    if isinstance(found, planner.Plan):
        smallest = [
            dict(p.pod.requirements.requests)["cpu"] for p in pods if p.pod.uid in found.left
        ]
        assert all(cpu > room for cpu in smallest)
    else:
        assert min(members) > max(nodes)


class Packing:
    """A scorer that prefers nodes with pods."""

    name = "Packing"

    def pre_filter(self, pod, view):
        return 1

    def score(self, prepared, view, rows, now):
        return verdicts.Score(view.requested[0].take(rows) // 100)


def test_scores_are_computed_anew_for_every_member(cluster):
    cluster.nodes(4)
    cluster.pod("there", node="n2", cpu="1")
    packing = pipeline.Pipeline(
        pre_filters=(Packing(),), scorers=(pipeline.Weighted(Packing(), 1),)
    )
    members = cluster.gang("a", 4, cpu="2")
    options = planner.Options({"default/a": 4})
    found = planner.plan(packing, cluster.cluster.fork(), members, options, 0.0)
    assert gang_cluster.nodes_of(found) == {"n2": 3, "n0": 1}


def test_members_beyond_what_a_gang_needs_leave_room_for_the_other_gangs_of_its_group():
    cluster = gang_cluster.GangCluster()
    cluster.nodes(2, cpu="8")
    members = [*cluster.gang("a", 4), *cluster.gang("b", 4)]
    found = cluster.plan(members, {"default/a": 1, "default/b": 3})
    assert isinstance(found, planner.Plan)
    placed = sorted(one.pod.name for one in found.placements)
    assert placed == ["a-0", "b-0", "b-1", "b-2"]
    assert len(found.left) == 4


def test_an_operator_that_is_not_known_matches_no_node(cluster):
    """As of a Kubernetes that is newer than this extender."""
    cluster.nodes(2)
    rule = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rule]}}
    found = cluster.plan(cluster.gang("a", 2, affinity={"nodeAffinity": required}))
    assert isinstance(found, planner.Refused)
    assert cluster.plan(cluster.gang("b", 2)).placements
