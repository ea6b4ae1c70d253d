"""What scores depend on follows the cluster state and never differs from what is built anew."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies

from domain.scoring import objects, releases, terms
from extender.scoring import state, traits
from extender.state import claims, cluster_state, deltas, ledger, records

RESOURCES = ("cpu", "memory", "example.com/gpu")
MI = 1 << 20
WEB = terms.Selector(terms.equalities({"app": "web"}))


class Followed:
    """A cluster state whose scoring state follows."""

    def __init__(self):
        self.projector = records.Projector(traits.Projector(RESOURCES, releases.RELEASES[36]))
        self.cluster = cluster_state.ClusterState((), RESOURCES)
        self.ledger = ledger.Ledger(self.cluster)
        self.scoring = state.ScoringState(RESOURCES)
        self.cluster.followers.append(self.scoring.follow)
        self.pods = {}

    def node(self, name, **more):
        record = self.projector.node(msgspec.convert(node(name, **more), objects.Node))
        self.ledger.node(self.cluster.node(name), record)

    def remove_node(self, name):
        self.ledger.node(self.cluster.node(name), None)

    def pod(self, name, node_name="", **more):
        record = self.projector.pod(msgspec.convert(pod(name, node_name, **more), objects.Pod))
        self.ledger.pod(self.pods.get(name), record, 0.0)
        self.pods[name] = record
        return record

    def remove_pod(self, name):
        self.ledger.pod(self.pods.pop(name), None, 0.0)

    def requested(self, name):
        columns, row = self.scoring.nodes(), self.scoring.names.index(name)
        return columns.requested[:, row].tolist(), columns.nonzero[:, row].tolist()

    def matching(self, name):
        row = self.scoring.names.index(name)
        return int(self.scoring.indexes.pods.matching("default", WEB, self.scoring.size)[row])


def node(name, cpu="8", zone="a", images=()):
    return {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"taints": [{"key": "soft", "value": name, "effect": "PreferNoSchedule"}]},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "16Gi", "example.com/gpu": "4"},
            "images": [{"names": [one], "sizeBytes": 50 * MI} for one in images],
        },
    }


def pod(name, node_name="", *, cpu=None, labels=None, deleted=None, affinity=None):
    requests = {"cpu": cpu, "example.com/gpu": "1"} if cpu else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": labels or {"app": "web"},
            "deletionTimestamp": deleted,
        },
        "spec": {
            "nodeName": node_name,
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "affinity": affinity,
        },
    }


PREFERS = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}


def test_pods_count_with_what_they_request_and_at_least_so_much_per_container():
    known = Followed()
    known.node("n1")
    known.pod("asks", "n1", cpu="500m")
    known.pod("asks-nothing", "n1")
    assert known.requested("n1") == ([500, 0, 1], [600, 400 * MI])
    known.remove_pod("asks")
    assert known.requested("n1") == ([0, 0, 0], [100, 200 * MI])


def test_an_assumed_pod_counts_until_it_is_forgotten():
    known = Followed()
    known.node("n1")
    record = known.pod("p", cpu="1")
    known.ledger.assume(record, "n1", 0.0, 0.0)
    assert known.requested("n1")[0] == [1000, 0, 1]
    known.ledger.forget(record.uid)
    assert known.requested("n1")[0] == [0, 0, 0]


def test_terminating_pods_keep_their_resources_and_are_not_spread():
    known = Followed()
    known.node("n1")
    known.pod("p", "n1", cpu="1")
    assert known.matching("n1") == 1
    known.pod("p", "n1", cpu="1", deleted="2026-11-22T00:00:00Z")
    assert known.matching("n1") == 0
    assert known.requested("n1")[0] == [1000, 0, 1]


def test_terms_of_pods_on_nodes_are_known_while_the_pods_are():
    known = Followed()
    known.pod("p", "n1", affinity=PREFERS)
    assert known.scoring.terms.may_score("default", {"app": "web"}, False)
    assert not known.scoring.terms.may_score("other", {"app": "web"}, False)
    known.remove_pod("p")
    assert not known.scoring.terms.may_score("default", {"app": "web"}, False)


def test_rows_are_used_again_without_what_was_there():
    known = Followed()
    known.node("n1", images=("a:latest",))
    known.pod("p", "n1", cpu="1")
    known.remove_node("n1")
    known.remove_pod("p")
    known.node("n2")
    assert known.scoring.names == ["n2"]
    assert known.requested("n2") == ([0, 0, 0], [0, 0])
    assert known.scoring.indexes.images.scaled(("a:latest",), 1, 1) is None


def test_rows_of_a_view_lead_to_the_same_nodes():
    known = Followed()
    known.pod("early", "n3")
    for name in ("n1", "n2", "n3"):
        known.node(name)
    known.remove_node("n1")
    view = known.cluster.view()
    rows = known.scoring.translated(view)
    found = {name: known.scoring.names[rows[row]] for name, row in view.rows.items()}
    assert found == {"n2": "n2", "n3": "n3"}
    known.node("n4")
    view = known.cluster.view()
    assert known.scoring.names[known.scoring.translated(view)[view.rows["n4"]]] == "n4"


def test_there_is_room_for_more_nodes_than_at_first():
    known = Followed()
    for number in range(150):
        known.node(f"n{number}", cpu=str(number + 1))
    columns = known.scoring.nodes()
    rows = [known.scoring.names.index(f"n{number}") for number in range(150)]
    assert columns.allocatable[0].take(rows).tolist() == [1000 * (n + 1) for n in range(150)]


def test_columns_cannot_be_written():
    known = Followed()
    known.node("n1")
    with pytest.raises(ValueError, match="read-only"):
        known.scoring.nodes().requested[0, 0] = 1
    known.pod("p", "n1", cpu="1")
    assert known.requested("n1")[0] == [1000, 0, 1]


def cast(known, name, node_name, now):
    record = known.pods[name]
    known.scoring.cast_shadow(record.uid, state.Placed(node_name, "default", record.scoring), now)


def test_a_shadow_counts_for_two_seconds():
    known = Followed()
    known.node("n1")
    known.pod("p", cpu="1")
    cast(known, "p", "n1", 10.0)
    assert known.requested("n1")[0] == [1000, 0, 1]
    known.scoring.expire(11.9)
    assert known.matching("n1") == 1
    known.scoring.expire(12.0)
    assert known.requested("n1")[0] == [0, 0, 0]
    assert known.matching("n1") == 0


@pytest.mark.parametrize("bound_to", ["n1", "n2"])
def test_a_shadow_ends_with_the_bind(bound_to):
    known = Followed()
    known.node("n1")
    known.node("n2")
    record = known.pod("p", cpu="1")
    cast(known, "p", "n1", 10.0)
    known.ledger.assume(record, bound_to, 0.0, 0.0)
    assert known.scoring.shadows() == {}
    other = "n2" if bound_to == "n1" else "n1"
    assert known.requested(bound_to)[0] == [1000, 0, 1]
    assert known.requested(other)[0] == [0, 0, 0]
    known.scoring.expire(99.0)
    assert known.requested(bound_to)[0] == [1000, 0, 1]


def test_a_shadow_moves_with_the_decision():
    known = Followed()
    known.node("n1")
    known.node("n2")
    known.pod("p", cpu="1")
    cast(known, "p", "n1", 10.0)
    cast(known, "p", "n2", 11.0)
    assert known.requested("n1")[0] == [0, 0, 0]
    assert known.requested("n2")[0] == [1000, 0, 1]
    known.scoring.expire(12.5)
    assert known.scoring.shadows() == {"uid-p": "n2"}


def change(known, draw):
    """Make one random change."""
    name, node_name = f"p{draw.randrange(8)}", f"n{draw.randrange(4)}"
    kind = draw.randrange(6)
    if kind == 0:
        known.node(node_name, cpu=str(draw.randint(1, 9)), zone=draw.choice("ab"))
    elif kind == 1:
        known.remove_node(node_name)
    elif kind == 2 and name in known.pods:
        known.remove_pod(name)
    elif kind == 3 and name in known.pods and not known.pods[name].node:
        known.ledger.assume(known.pods[name], node_name, 0.0, 0.0)
    elif kind == 4:
        known.ledger.forget(f"uid-{name}")
    else:
        present = known.pods.get(name)
        placed = present.node if present is not None and present.node else node_name
        labels = {"app": draw.choice(("web", "db"))}
        waits = draw.random() < 0.3 and not (present and present.node)
        deleted = draw.choice((None, None, "2026-11-22T00:00:00Z"))
        known.pod(
            name,
            "" if waits else placed,
            cpu=draw.choice((None, "250m", "1")),
            labels=labels,
            deleted=deleted,
            affinity=draw.choice((None, PREFERS)),
        )


@given(strategies.integers(0, 2**32))
def test_incremental_equals_rebuilt(seed):
    draw, known = random.Random(seed), Followed()
    for moment in range(60):
        if draw.random() < 0.2 and known.pods:
            cast(known, draw.choice(sorted(known.pods)), f"n{draw.randrange(4)}", float(moment))
        change(known, draw)
        # Remembered from here on, so that it has to be corrected.
        known.scoring.indexes.pods.matching("default", WEB, 1)
    known.scoring.expire(1e9)
    fresh = state.ScoringState(RESOURCES)
    for uid, placed in known.cluster.placements().items():
        bound = claims.Claim(uid, claims.ClaimKind.BOUND, placed.node, placed)
        fresh.follow(deltas.ClaimDelta(uid, None, bound))
    for name in known.cluster.nodes():
        fresh.follow(deltas.NodeDelta(name, None, known.cluster.node(name)))
    assert fresh.fingerprint() == known.scoring.fingerprint()
    size = max(fresh.size, known.scoring.size)
    for mine in (fresh, known.scoring):
        mine.counts = dict(
            zip(mine.names, mine.indexes.pods.matching("default", WEB, size).tolist(), strict=False)
        )
    assert {k: v for k, v in fresh.counts.items() if v} == {
        k: v for k, v in known.scoring.counts.items() if v
    }
    asked = ("default", {"app": "web"}, False)
    assert fresh.terms.may_score(*asked) == known.scoring.terms.may_score(*asked)
    assert not np.any(known.scoring.nodes().requested < 0)


@pytest.mark.parametrize("names", [1, 5000])
def test_images_of_a_node_beyond_those_of_any_real_one_are_not_kept(names):
    known = Followed()
    raw = node("n1", images=("a:latest",))
    raw["status"]["images"] += [
        {"names": [f"i{at}.{name}:v" for name in range(names)], "sizeBytes": MI}
        for at in range(10_000 // names)
    ]
    record = known.projector.node(msgspec.convert(raw, objects.Node))
    known.ledger.node(None, record)
    assert sum(len(one.names) for one in record.scoring.images) <= 4096
    images = known.scoring.indexes.images
    assert images.scaled(("a:latest",), 1, 1).tolist() == [50 * MI]
    assert not images.reported(("i9999.0:v", "i1.4999:v"))
