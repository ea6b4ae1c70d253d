"""Devices that ResourceClaims hold are given to no pod, and come back as they were."""

import hypothesis
import hypothesis.strategies as st
import pytest

from api import names
from api.kubernetes import dynamic_resources as dra
from domain.devices import dynamic_resources
from extender.framework import views
from extender.informers.nodes import dynamic_resources as feed
from extender.plugins.device_share import allocation, diagnosis
from extender.state import deltas, ledger
from kube.informers import store
from tests.domain.devices.test_dynamic_resources import a_slice, given
from tests.extender.clusters.device_cluster import DeviceCluster, device, eight, gpu

WHOLE, HALF = {names.NVIDIA_GPU: "1"}, {names.GPU: "50"}


class Shared:
    """Two GPUs, offered by a driver as well, and what claims hold of them."""

    def __init__(self, listed=None):
        self.cluster = DeviceCluster()
        self.cluster.node()
        self.cluster.devices(listed or device("n1", gpu(0), gpu(1)))
        self.watched = feed.Watched()
        self.version = 0
        feed.connect(self.watched, ledger.Ledger(self.cluster.state))
        self.put(
            self.watched.slices, "s", a_slice({f"g{n}": {"uuid": f"gpu-{n}"} for n in range(8)})
        )

    def put(self, where, key, value):
        self.version += 1
        where.put(store.Meta(key, key, self.version), value)

    def claim(self, name, *numbers):
        refs = given(*(f"g{number}" for number in numbers)) or None
        self.put(self.watched.claims, f"default/{name}", refs)

    def gone(self, name):
        self.version += 1
        self.watched.claims.remove(f"default/{name}", self.version)

    def page(self):
        state = self.cluster.state
        return self.cluster.plugin.inspect(state.view().node(0))


def test_what_a_claim_holds_is_given_to_no_pod_until_it_is_given_back():
    shared = Shared()
    shared.claim("c", 0)
    cluster = shared.cluster
    assert cluster.bind(cluster.pod("a", WHOLE)) == ""
    assert cluster.minors("a") == [1]
    assert cluster.refusal(cluster.pod("b", HALF)) == "Insufficient GPU Devices"
    shared.gone("c")
    assert cluster.bind(cluster.pod("b", HALF)) == ""
    assert cluster.minors("b") == [0]


def test_an_explanation_names_the_claim():
    shared = Shared()
    shared.claim("c", 0)
    cluster = shared.cluster
    cluster.bind(cluster.pod("a", WHOLE))
    asked = allocation.of(allocation.wanted(cluster.pod("b", WHOLE).requirements))
    said = diagnosis.diagnosis(asked, cluster.sparse(), "n1")
    assert "of 2 on the node 1 is healthy and held by no ResourceClaim" in said.figures
    assert "gpu 0 of n1 given back by ResourceClaim default/c" in said.helps


def test_what_pods_hold_stays_theirs_and_the_page_says_that_both_do():
    shared = Shared()
    cluster = shared.cluster
    assert cluster.bind(cluster.pod("a", WHOLE)) == ""
    shared.claim("c", 0)
    page = shared.page()
    assert page["heldTwice"] == ["gpu 0: pods and ResourceClaim default/c hold it"]
    assert page["devices"][0]["resourceClaim"] == "default/c"
    assert page["devices"][0]["healthy"] is True
    assert cluster.minors("a") == [0]
    shared.gone("c")
    assert shared.page()["heldTwice"] == []
    assert cluster.bind(cluster.pod("b", WHOLE)) == ""
    assert cluster.minors("b") == [1]


CHANGES = {
    "given back": (deltas.DEVICES_ELSEWHERE, True),
    "another kind": (deltas.NODE_TOPOLOGY, False),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_pods_that_wait_are_looked_at_again_when_a_claim_ends(case):
    kind, helps = case
    before = dynamic_resources.Elsewhere({"uuid gpu-0": "default/c"})
    delta = views.ObjectDelta(kind, "n1", before, None, node="n1")
    assert DeviceCluster().plugin.could_help(None, delta) is helps


def test_a_claim_that_was_not_allocated_is_not_kept():
    assert dynamic_resources.given(dra.ResourceClaim()) == ()


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["claim", "release", "bind", "leave"]),
        st.integers(0, 3),
        st.sets(st.integers(0, 7), min_size=1, max_size=3),
    ),
    max_size=14,
)


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(MOVES)
def test_no_device_is_given_that_a_claim_holds(moves):
    """And what is free at the end is what a state that is built anew says."""
    shared = Shared(eight())
    cluster, held, placed = shared.cluster, {}, {}
    for what, number, devices in moves:
        if what == "claim":
            held[number] = devices
            shared.claim(f"c{number}", *sorted(devices))
        elif what == "release" and held.pop(number, None):
            shared.gone(f"c{number}")
        elif what == "bind" and number not in placed:
            pod = cluster.pod(f"p{number}", WHOLE)
            claimed = set().union(*held.values()) if held else set()
            if cluster.bind(pod) == "":
                placed[number] = pod
                assert not set(cluster.minors(f"p{number}")) & claimed
        elif what == "leave" and number in placed:
            placed.pop(number)
            cluster.leave(f"p{number}")
    anew = Shared(eight())
    for number, devices in held.items():
        anew.claim(f"c{number}", *sorted(devices))
    for number in placed:
        claim = cluster.state.claim(f"uid-p{number}")
        anew.cluster.state.apply(deltas.ClaimDelta(claim.id, None, claim))
    assert shared.page() == anew.page()
