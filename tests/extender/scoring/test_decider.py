"""Filter answers the node that the scheduler would choose, or leaves the choice to it."""

import dataclasses
import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from api import names
from domain.gangs import declaration
from domain.scoring import eligibility, node_resources, profile, releases
from extender.plugins.coscheduling import coscheduling
from extender.scoring import decider
from extender.state import deltas
from process.configuration import switches
from tests import processor_time
from tests.domain.scoring import naive, worlds
from tests.domain.topology import networks
from tests.extender.scoring.deciding import NOW, PROFILE, Deciding, node, pod

NAMES = ("n1", "n2", "n3")
MI = 1 << 20


def test_one_name_is_answered(three):
    assert three.filter(pod("p"), *NAMES) == ["n3"]
    assert three.counted == [""]


def test_our_points_count_as_those_of_an_extender(three):
    three.preference.points = {"n1": 100}
    assert three.filter(pod("p"), *NAMES) == ["n1"]


def test_an_extender_without_weight_adds_nothing():
    made = Deciding(dataclasses.replace(PROFILE, extender_weight=0))
    made.node(node("n1", cpu="2"))
    made.node(node("n2", cpu="8"))
    made.preference.points = {"n1": 100}
    assert made.filter(pod("p"), "n1", "n2") == ["n2"]


def test_a_pod_is_sent_close_to_those_with_its_network_topology_selector():
    made = Deciding(plugins=(coscheduling.Coscheduling(declaration.Defaults()),))
    for name, block in (("n1", "s1b1"), ("n2", "s1b1"), ("n3", "s2b2")):
        made.node(node(name, labels=networks.labels(block[:2], block)))
    kind = deltas.CLUSTER_NETWORK_TOPOLOGY
    made.cluster.apply(deltas.ObjectDelta(kind, "default", None, networks.LAYERS))
    notes = {names.ANNOTATION_NETWORK_TOPOLOGY_SELECTOR: "cache"}

    def selected(name):
        made_pod = pod(name)
        return made_pod | {"metadata": made_pod["metadata"] | {"annotations": notes}}

    points = made.prioritize(selected("first"), *NAMES)
    assert max(points, key=points.get) == "n3", "its block has the fewest nodes"
    made.bind(selected("early"), "n1")
    made.bind(pod("other", cpu="4"), "n2")
    assert made.filter(pod("plain"), "n2", "n3") == ["n3"]
    points = made.prioritize(selected("late"), "n2", "n3")
    assert points["n2"] > points.get("n3", 0)
    assert made.filter(selected("late"), "n2", "n3") == ["n2"], "as prioritize says"


def test_refused_nodes_are_not_chosen(three):
    three.preference.refused = {"n3"}
    assert three.filter(pod("p"), *NAMES) == ["n2"]
    three.preference.refused = {"n2", "n3"}
    assert three.filter(pod("p"), *NAMES) == ["n1"]
    three.preference.refused = set(NAMES)
    assert three.filter(pod("p"), *NAMES) == []


def test_a_nominated_node_is_not_questioned(three):
    assert three.filter(pod("p"), "n1") == ["n1"]
    assert three.counted == []


def test_names_without_a_node_are_not_chosen(three):
    assert three.filter(pod("p"), "gone", "n1", "n2") == ["n2"]


@pytest.mark.parametrize("mode", [switches.Mode.OBSERVE, switches.Mode.OFF])
def test_only_an_extender_that_enforces_decides(three, mode):
    three.switches.take({"extender": str(mode)})
    assert three.filter(pod("p"), *NAMES) == list(NAMES)
    assert three.scoring.shadows() == {}


def test_full_nodes_are_never_decided(three):
    answer = three.verbs.filter(
        b'{"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": ['
        b'{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}}',
        NOW,
    )
    assert answer.count(b'"name"') == 2
    assert three.scoring.shadows() == {}


def test_ties_are_drawn():
    draws = iter((0, 1, 2, 3))
    made = Deciding(draw=draws.__next__)
    for name in NAMES:
        made.node(node(name))
    chosen = [made.filter(pod("p"), *NAMES)[0]]
    for _ in range(3):
        made.moment += 60
        chosen += made.filter(pod("p"), *NAMES)
    assert chosen == ["n1", "n2", "n3", "n1"]


def test_the_node_of_a_failed_attempt_loses_ties_for_thirty_seconds():
    made = Deciding()
    for name in ("n1", "n2"):
        made.node(node(name))
    assert made.filter(pod("p"), "n1", "n2") == ["n1"]
    made.moment += 5
    assert made.filter(pod("p"), "n1", "n2") == ["n2"]
    made.moment += 29
    assert made.filter(pod("p"), "n1", "n2") == ["n1"]
    made.moment += 31
    assert made.filter(pod("p"), "n1", "n2") == ["n1"]


def test_the_node_of_a_failed_attempt_still_wins_where_it_is_better(three):
    assert three.filter(pod("p"), *NAMES) == ["n3"]
    three.moment += 5
    assert three.filter(pod("p"), *NAMES) == ["n3"]


def test_consecutive_pods_do_not_pile_up_before_their_binds_arrive():
    made = Deciding()
    for name in NAMES:
        made.node(node(name))
    chosen = [made.filter(pod(f"p{number}"), *NAMES)[0] for number in range(6)]
    assert sorted(chosen) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    made.moment += 2
    assert made.filter(pod("late"), *NAMES) == ["n1"]
    assert made.scoring.shadows() == {"uid-late": "n1"}


def test_a_list_with_one_name_is_a_decision_too(three):
    three.preference.refused = {"n1", "n2"}
    three.filter(pod("p"), *NAMES)
    assert three.scoring.shadows() == {"uid-p": "n3"}


def test_an_undecided_pod_casts_no_shadow(three):
    three.synced = False
    assert three.filter(pod("p"), *NAMES) == list(NAMES)
    assert three.scoring.shadows() == {}
    assert three.counted == [eligibility.NOT_SYNCED]


def test_shadows_are_seen_by_scoring_alone(three):
    three.filter(pod("p"), *NAMES)
    view = three.cluster.view()
    assert not np.count_nonzero(view.requested)
    assert three.cluster.placements() == {}


def test_a_halt_leaves_everything_to_the_scheduler(three):
    three.decider.halted = "the file has changed"
    assert three.filter(pod("p"), *NAMES) == list(NAMES)
    assert three.counted == ["the file has changed"]


def test_the_total_is_explained_beside_the_runner_up(three):
    three.preference.points = {"n2": 1}
    three.filter(pod("p"), *NAMES)
    told = three.decider.decisions.get("default/p").document()
    assert told["chosen"]["node"] == "n3"
    assert told["runnerUp"]["node"] == "n2"
    assert (told["ties"], told["candidates"]) == (1, 3)
    points = {one["plugin"]: one["points"] for one in told["runnerUp"]["plugins"]}
    assert points[decider.POINTS] == 10
    assert sum(points.values()) == told["runnerUp"]["total"]
    assert {profile.FIT, profile.BALANCE, profile.TAINTS} <= set(points)


def test_what_is_left_to_the_scheduler_is_explained(three):
    three.filter(pod("p", schedulerName="another"), *NAMES)
    told = three.decider.decisions.get("default/p").document()
    assert told["leftToScheduler"] == decider.NO_PROFILE
    assert "chosen" not in told


# -- pods that the scheduler's own preferences could move are never decided ---------------------

TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = [{"weight": 1, "podAffinityTerm": TERM}]
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
ELSEWHERE = TERM | {"namespaceSelector": {"matchLabels": {"team": "a"}}}


def owned(kind):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "controller": True}
    return {"ownerReferences": [owner]}


NEVER = {
    "another profile": ({"schedulerName": "other"}, decider.NO_PROFILE),
    "its own preferred affinity": (
        {"affinity": {"podAffinity": {SOFT: PREFERRED}}},
        eligibility.POD_PREFERENCES,
    ),
    "its own preferred anti-affinity": (
        {"affinity": {"podAntiAffinity": {SOFT: PREFERRED}}},
        eligibility.POD_PREFERENCES,
    ),
    "spread constraints": (
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}]},
        eligibility.SPREAD_CONSTRAINTS,
    ),
    "resource claims": ({"resourceClaims": [{"name": "gpu"}]}, eligibility.RESOURCE_CLAIMS),
    "an unbound volume claim": ({"volumes": [CLAIM]}, eligibility.UNBOUND_CLAIM),
    "an ephemeral volume": (
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]},
        eligibility.UNBOUND_CLAIM,
    ),
    "a resource of a device class": (
        {"requests": {"example.com/dra": "1"}},
        eligibility.DEVICE_CLASS,
    ),
    "a controller that is not known": (
        {"metadata": owned("ReplicaSet")},
        decider.UNKNOWN_CONTROLLER,
    ),
}


@pytest.mark.parametrize(("spec", "reason"), NEVER.values(), ids=NEVER)
def test_pods_with_preferences_of_their_own_are_never_decided(three, spec, reason):
    three.device_resources.add("example.com/dra")
    assert three.filter(pod("p", **spec), *NAMES) == list(NAMES)
    assert three.counted == [reason]


TERM_OF_NODES = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
LONG = {
    "node affinity": {
        "affinity": {"nodeAffinity": {SOFT: [{"weight": 1, "preference": TERM_OF_NODES}] * 5000}}
    },
    "tolerations": {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(5000)]},
}


@pytest.mark.parametrize("spec", LONG.values(), ids=LONG)
def test_a_pod_that_lists_thousands_holds_no_call_up(spec):
    made, names = Deciding(), [f"n{number}" for number in range(300)]
    for name in names:
        taints = [{"key": "of", "value": name, "effect": "PreferNoSchedule"}]
        made.node(node(name, taints=taints))
    with processor_time.below(0.2):
        assert made.filter(pod("p", **spec), *names) == names
    assert made.counted == [eligibility.TOO_MUCH]


OTHERS = {
    "preferred affinity": {"podAffinity": {SOFT: PREFERRED}},
    "preferred anti-affinity": {"podAntiAffinity": {SOFT: PREFERRED}},
    "required affinity": {"podAffinity": {HARD: [TERM]}},
    "a term with a namespace selector": {
        "podAntiAffinity": {SOFT: [{"weight": 1, "podAffinityTerm": ELSEWHERE}]}
    },
}


@pytest.mark.parametrize("assumed", [False, True], ids=["placed", "assumed"])
@pytest.mark.parametrize("affinity", OTHERS.values(), ids=OTHERS)
def test_pods_that_others_want_near_or_far_are_never_decided(three, affinity, assumed):
    three.scoring.terms.set_namespace("default", {"team": "a"})
    other = pod("other", affinity=affinity)
    if assumed:
        three.ledger.assume(three.pod(other), "n1", NOW, 0.0)
    else:
        three.bind(other, "n1")
    assert three.filter(pod("p"), *NAMES) == list(NAMES)
    assert three.counted == [eligibility.OTHERS_AFFINITY]
    unselected = pod("q", metadata={"labels": {"app": "db"}})
    assert three.filter(unselected, *NAMES) == ["n3"]


def test_required_anti_affinity_of_others_only_filters(three):
    three.bind(pod("other", affinity={"podAntiAffinity": {HARD: [TERM]}}), "n1")
    assert three.filter(pod("p"), *NAMES) == ["n3"]


def test_a_shadow_with_a_preference_counts_as_well(three):
    preferring = pod("other", affinity={"podAffinity": {HARD: [TERM]}})
    assert three.filter(preferring, "n1") == ["n1"]
    assert three.filter(pod("p"), *NAMES) == list(NAMES)
    assert three.counted == [eligibility.OTHERS_AFFINITY]


def test_bound_claims_do_not_matter(three):
    three.bound_claims.add("default/data")
    assert three.filter(pod("p", volumes=[CLAIM]), *NAMES) == ["n3"]


def test_a_known_controller_spreads_its_pods(three):
    three.workloads.set_controller("ReplicaSet", "default", "web", {"matchLabels": {"app": "web"}})
    three.node(node("n4", cpu="8", memory="8Gi"))
    for number in range(2):
        three.bind(pod(f"old-{number}", requests={}), "n4")
    assert three.filter(pod("p", metadata=owned("ReplicaSet")), "n3", "n4") == ["n3"]
    told = three.decider.decisions.get("default/p").document()
    assert profile.SPREAD in {one["plugin"] for one in told["chosen"]["plugins"]}


def test_profiles_are_told_apart_by_the_name_that_a_pod_gives():
    packs = dataclasses.replace(
        PROFILE,
        scheduler_name="packs",
        fit=node_resources.Fit(node_resources.Strategy.MOST_ALLOCATED),
    )
    made = Deciding(PROFILE, packs)
    made.node(node("n1", cpu="4", memory="4Gi"))
    made.node(node("n2", cpu="8", memory="8Gi"))
    assert made.filter(pod("p"), "n1", "n2") == ["n2"]
    assert made.filter(pod("q", schedulerName="packs"), "n1", "n2") == ["n1"]


# -- the same as the list and the scheduler's own scoring ---------------------------------------


def known(world):
    """Let every pod that names a controller name one that exists."""
    there = {
        (one["kind"], one["metadata"]["namespace"], one["metadata"]["name"])
        for one in world.cluster["workloads"]
    }
    for one in world.pending:
        metadata = one["metadata"]
        (owner,) = metadata["ownerReferences"]
        if (owner["kind"], metadata["namespace"], owner["name"]) not in there:
            metadata["ownerReferences"] = []


def built(world, decides):
    made = Deciding(world.settings, decides=decides)
    for one in world.cluster["nodes"]:
        made.node(one)
    for one in world.cluster["workloads"]:
        metadata, selector = one["metadata"], one["spec"]["selector"]
        place = metadata["namespace"], metadata["name"]
        if one["kind"] == "Service":
            made.workloads.set_service(*place, selector)
        else:
            made.workloads.set_controller(one["kind"], *place, selector)
    for placed, name in world.cluster["placed"]:
        metadata = placed["metadata"] | {"uid": placed["metadata"]["name"]}
        made.bind(placed | {"metadata": metadata}, name)
    return made


@hypothesis.given(st.integers(0, 2**32))
def test_the_chosen_total_is_the_highest_of_the_list(seed):
    draw, world = random.Random(seed), worlds.world(seed)
    release = world.settings.release
    if release.stale_image_counts:
        release = releases.RELEASES[30]
    world = dataclasses.replace(
        world,
        settings=dataclasses.replace(
            world.settings, release=release, extender_weight=draw.randint(0, 2)
        ),
    )
    known(world)
    deciding, listing = built(world, True), built(world, False)
    slow = naive.Naive(world.settings, world.cluster)
    for number, written in enumerate(world.pending):
        pending = written | {"metadata": written["metadata"] | {"uid": f"new-{number}"}}
        names = [one["metadata"]["name"] for one in world.cluster["nodes"]]
        asked = draw.sample(names, draw.randint(1, len(names)))
        for made in (deciding, listing):
            made.preference.points = {name: (seed + 7 * int(name[1:])) % 30 for name in names}
            made.preference.refused = {name for name in names if (seed + int(name[1:])) % 5 == 0}
        chosen, passed = deciding.filter(pending, *asked), listing.filter(pending, *asked)
        assert set(chosen) <= set(passed)
        assert len(chosen) == bool(passed)
        if not passed:
            continue
        ours = listing.prioritize(pending, *passed)
        weight = 10 * world.settings.extender_weight
        due = {
            name: figures["total"] + weight * ours.get(name, 0)
            for name, figures in slow.totals(pending, passed).items()
        }
        assert due[chosen[0]] == max(due.values())
        for made in (deciding, listing):
            made.bind(pending, chosen[0])
        slow.pods.append((pending, chosen[0]))
