"""Gangs that ask for a topology are planned where the network takes all of them."""

import msgspec
import pytest

from domain.gangs import option_texts
from domain.topology import rules, tree
from extender.gangs.network import network_plan
from extender.gangs.planning import planner
from extender.state import deltas
from tests import processor_time
from tests.domain.topology import networks
from tests.extender.conftest import NOW
from tests.extender.gangs.stage import gang_cluster

MUST_BLOCK = rules.Rules((rules.Gather(networks.BLOCK, must=True),))
ANY = rules.Rules()


class NetworkCluster(gang_cluster.GangCluster):
    """Nodes in blocks, and gangs that ask for a topology."""

    def __init__(self):
        super().__init__()
        self.tree = tree.Tree(networks.LAYERS)

    def block(self, name, *nodes, cpu="8", **more):
        for number in nodes:
            labels = networks.labels(name[:2], name)
            self.nodes(1, first=number, cpu=cpu, labels=labels, **more)
            self.tree = self.tree.with_node(f"n{number}", labels)

    def network(self, members, asked=ANY, needed=None, **more):
        wanted = needed or {one.gang: len(members) for one in members}
        options = planner.Options(wanted, more.pop("avoided", {}))
        made = network_plan.NetworkPlanner(
            self.pipeline, self.cluster, members, options,
            network_plan.Wanted(self.tree, asked, **more), NOW,
        )  # fmt: skip
        for _ in made.steps():
            pass
        return made.result


@pytest.fixture
def cluster():
    made = NetworkCluster()
    made.block("s1b1", 0, 1, 2)
    made.block("s1b2", 3, 4)
    made.block("s2b3", 5, 6, 7, 8)
    return made


def places(found):
    assert isinstance(found, planner.Plan), found
    return {one.pod.key.partition("/")[2]: one.node for one in found.placements}


def test_the_smallest_block_that_fits_takes_all_members(cluster):
    found = cluster.network(cluster.gang("a", 4))
    assert places(found) == {"a-0": "n3", "a-1": "n3", "a-2": "n4", "a-3": "n4"}
    assert found.left == ()


def test_the_same_members_without_a_network_go_elsewhere(cluster):
    members = cluster.gang("a", 8)
    alone = {node[1:] for node in gang_cluster.nodes_of(cluster.plan(members))}
    assert not alone <= {"5", "6", "7", "8"}
    assert set(gang_cluster.nodes_of(cluster.network(members, MUST_BLOCK))) == {
        "n5", "n6", "n7", "n8",
    }  # fmt: skip


def test_the_state_is_not_changed(cluster):
    members = cluster.gang("a", 4)
    before = cluster.cluster.fingerprint()
    cluster.network(members)
    assert cluster.cluster.fingerprint() == before


def test_what_other_plans_keep_is_taken(cluster):
    first = cluster.network(cluster.gang("a", 4))
    cluster.hold(first)
    found = cluster.network(cluster.gang("b", 4))
    assert set(places(found).values()) == {"n0", "n1"}


def test_members_take_their_places_by_index_then_by_name(cluster):
    members = cluster.gang("a", 4)
    for number, index in ((3, 0), (1, 1)):
        pod = members[number].pod
        facts = msgspec.structs.replace(pod.gang, index=index)
        members[number] = planner.Member(msgspec.structs.replace(pod, gang=facts), "default/a")
    found = cluster.network(members)
    assert places(found) == {"a-3": "n3", "a-1": "n3", "a-0": "n4", "a-2": "n4"}


def test_no_block_is_large_enough(cluster):
    found = cluster.network(cluster.gang("a", 9), MUST_BLOCK)
    assert isinstance(found, planner.Refused)
    assert found.plugin == network_plan.NAME
    assert found.placed == 8
    assert found.sentence == (
        "gang default/a has no place in the network: no candidate topology nodes can accommodate "
        "job, desiredOfferSlot: 9, BlockLayer/s2b3: 8;BlockLayer/s1b1: 6;BlockLayer/s1b2: 4"
    )


def test_where_the_cluster_is_too_small_its_resources_are_named(cluster):
    found = cluster.network(cluster.gang("a", 19), MUST_BLOCK)
    assert found.reasons == ((planner.IN_TREE, "Insufficient cpu", 9),)


def test_members_beyond_the_minimum_stay_out_where_only_the_minimum_fits(cluster):
    found = cluster.network(cluster.gang("a", 9), MUST_BLOCK, needed={"default/a": 6})
    assert sorted(places(found)) == [f"a-{number}" for number in range(6)]
    assert set(places(found).values()) == {"n0", "n1", "n2"}
    assert len(found.left) == 3


def test_missing_members_join_the_block_of_their_siblings(cluster):
    found = cluster.network(cluster.gang("a", 2), MUST_BLOCK, siblings=("n0", "n1"))
    assert set(places(found).values()) <= {"n0", "n1", "n2"}
    refused = cluster.network(cluster.gang("b", 7), MUST_BLOCK, siblings=("n0",))
    assert "BlockLayer/s1b1: 6" in refused.sentence


def test_siblings_that_are_apart_already_do_not_bind_the_others(cluster):
    found = cluster.network(cluster.gang("a", 4), MUST_BLOCK, siblings=("n0", "n5"))
    assert set(places(found).values()) == {"n3", "n4"}


def test_pods_of_the_same_selector_draw_a_gang(cluster):
    def marked(pod):
        requirements = msgspec.structs.replace(pod.requirements, network_selector="cache")
        return msgspec.structs.replace(pod, requirements=requirements)

    members = cluster.gang("a", 4)
    assert set(places(cluster.network(members)).values()) == {"n3", "n4"}
    for name, node in (("x", "n7"), ("y", "n3")):
        placed = marked(cluster.pod(name, node=node, cpu="1"))
        held = cluster.cluster.claim(placed.uid)
        space = "other/y" if name == "y" else placed.key
        seen = msgspec.structs.replace(held, pod=msgspec.structs.replace(placed, key=space))
        cluster.cluster.apply(deltas.ClaimDelta(held.id, held, seen))
    drawn = [planner.Member(marked(member.pod), member.gang) for member in members]
    found = cluster.network(drawn)
    assert "n7" in places(found).values(), "pods of other namespaces draw no member"
    cluster.truth.clear()


def test_a_cluster_without_a_network_has_no_place_and_says_so(cluster):
    cluster.tree = tree.Tree()
    found = cluster.network(cluster.gang("a", 2))
    assert found.sentence.endswith("no cluster network topology")


def test_nodes_without_a_label_take_no_member(cluster):
    cluster.nodes(5, first=20, cpu="64")
    found = cluster.network(cluster.gang("a", 16))
    assert set(places(found).values()) <= {f"n{number}" for number in range(9)}


def test_nodes_that_refuse_are_not_offered(cluster):
    members = cluster.gang("a", 4)
    avoided = {member.pod.uid: ("n4",) for member in members}
    found = cluster.network(members, avoided=avoided)
    assert set(places(found).values()) == {"n0", "n1"}


def test_a_node_that_takes_fewer_than_its_resources_tell_is_found_out(cluster):
    # Both members listen on one port, so that a node takes one of them, not two.
    members = cluster.gang("a", 3, ports=(80,))
    found = cluster.network(members, MUST_BLOCK)
    assert gang_cluster.nodes_of(found) == {"n0": 1, "n1": 1, "n2": 1}
    refused = cluster.network(cluster.gang("b", 5, ports=(81,)), MUST_BLOCK)
    assert "BlockLayer/s2b3: 4" in refused.sentence


def test_members_of_two_sorts_share_nodes_where_they_must(cluster):
    large, small = cluster.gang("b", 2, cpu="7"), cluster.gang("c", 2, cpu="1")
    needed = {"default/b": 2, "default/c": 2}
    found = cluster.network([*large, *small], needed=needed)
    assert gang_cluster.nodes_of(found) == {"n5": 1, "n6": 1, "n7": 1, "n8": 1}
    larger = cluster.gang("d", 4, cpu="7"), cluster.gang("e", 1, cpu="1")
    found = cluster.network([*larger[0], *larger[1]], MUST_BLOCK, {"default/d": 4, "default/e": 1})
    assert set(places(found).values()) == {"n5", "n6", "n7", "n8"}


def test_the_other_sorts_decide_among_blocks_that_take_the_hardest_sort(cluster):
    # Workers fill one block wholly; only beside another block's workers is room for the launcher.
    cluster.block("s1b9", 30, 31, cpu="7")
    workers, launcher = cluster.gang("w", 2, cpu="7"), cluster.gang("l", 1, cpu="1")
    needed = {"default/w": 2, "default/l": 1}
    members = [*workers, *launcher]
    for _ in range(2):
        assert set(places(cluster.network(workers, MUST_BLOCK)).values()) == {"n3", "n4"}
    cluster.pod("x", node="n3", cpu="1")
    cluster.pod("y", node="n4", cpu="1")
    found = cluster.network(members, MUST_BLOCK, needed)
    assert set(places(found).values()) <= {"n0", "n1", "n2"}


def test_where_no_domain_of_a_layer_takes_all_sorts_a_larger_one_does():
    made = NetworkCluster()
    made.block("s1b1", 0, 1, cpu="8")
    made.block("s1b2", 2, 3, cpu="8")
    workers, launcher = made.gang("w", 2, cpu="8"), made.gang("l", 1, cpu="2")
    needed = {"default/w": 2, "default/l": 1}
    found = made.network([*workers, *launcher], needed=needed)
    assert len(set(places(found).values())) == 3
    refused = made.network([*workers, *launcher], MUST_BLOCK, needed)
    assert isinstance(refused, planner.Refused)
    assert refused.plugin == network_plan.NAME


def test_a_gang_with_too_few_members_is_refused_as_without_a_network(cluster):
    assert cluster.network([]) == planner.Plan(())
    found = cluster.network(cluster.gang("a", 2), needed={"default/a": 3})
    assert found.sentence == "gang default/a has 2 of 3 members that it needs"


def test_512_members_on_1000_nodes_take_little_time_in_short_steps():
    made = NetworkCluster()
    for number in range(1000):
        made.block(f"s{number // 200}b{number // 20:03}", number)
    members = made.gang("a", 512)
    planner_options = planner.Options({"default/a": 512})
    topology = option_texts.topology(
        '{"gatherStrategy":[{"layer":"SpineLayer","strategy":"PreferGather"}]}'
    )
    wanted = network_plan.Wanted(made.tree, rules.of(topology))
    with processor_time.below(10.0):
        found = network_plan.NetworkPlanner(
            made.pipeline, made.cluster, members, planner_options, wanted, NOW
        )
        steps = sum(1 for _ in found.steps())
    assert steps > 100
    assert len(places(found.result)) == 512
    assert len({made.tree.paths[node][0] for node in places(found.result).values()}) == 2
