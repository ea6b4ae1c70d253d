"""The NodeSLO as the API server has it."""

import json

import pytest

from agent.informers import node_objects
from agent.store import last_enforced
from api import resources
from kube.client import wire
from kube.informers import store

NODE = "node-1"
GOOD = {"resourceUsedThresholdWithBE": {"enable": True}}
BAD = {"systemStrategy": {"totalNetworkBandwidth": "1e.5"}}


class Informers:
    """The stores of one agent; that of NodeSLOs is filled as its reflector does."""

    def add(self, projection):
        found = store.Store()
        if projection.resource is resources.NODE_SLOS:
            self.slos, self._reader = found, wire.Reader(projection.type, projection.project)
        return found

    def item(self, version, uid, spec):
        meta = {"name": NODE, "uid": uid, "resourceVersion": str(version), "generation": 1}
        event = {"type": "ADDED", "object": {"metadata": meta, "spec": spec}}
        return self._reader.event(json.dumps(event).encode()).item

    def watched(self, version, uid="u", spec=GOOD):
        item = self.item(version, uid, spec)
        self.slos.put(item.meta, item.value)

    def listed(self, version, uid="u", spec=GOOD):
        item = self.item(version, uid, spec)
        self.slos.accept(item.meta, item.value)
        self.slos.finish({item.meta.key}, version)


@pytest.fixture
def informers():
    return Informers()


@pytest.fixture
def watched(informers, tmp_path):
    return node_objects.Watched(informers, NODE, last_enforced.Remembered(tmp_path, "boot"))


def version(watched):
    return watched.stated and (watched.stated.uid, watched.stated.version)


def test_nothing_is_stated_before_a_node_slo_is_there_and_after_it_is_gone(informers, watched):
    assert watched.stated is None
    informers.listed(7)
    assert version(watched) == ("u", "7")
    informers.slos.remove(NODE, 8)
    assert watched.stated is None


def test_a_stale_event_does_not_hide_a_later_state(informers, watched):
    informers.listed(9)
    informers.watched(8, spec=BAD)
    assert (version(watched), watched.problem) == (("u", "9"), None)
    informers.watched(10)
    assert version(watched) == ("u", "10")


def test_a_restored_backup_counts_though_its_versions_are_lower(informers, watched):
    informers.listed(900)
    informers.listed(12)
    assert version(watched) == ("u", "12")
    informers.watched(13)
    assert version(watched) == ("u", "13")


@pytest.mark.parametrize("told", ["listed", "watched"])
@pytest.mark.parametrize("spec", [GOOD, BAD], ids=["readable", "unreadable"])
def test_a_node_slo_that_was_made_anew_is_stated(informers, watched, told, spec):
    informers.listed(7, "old")
    getattr(informers, told)(9, "new", spec)
    assert version(watched) == ("new", "9")
    assert (watched.problem is None) is (spec is GOOD)


def test_what_cannot_be_read_is_a_problem_until_it_is_corrected_or_gone(informers, watched):
    informers.listed(7)
    for at, spec, problem in ((8, BAD, True), (9, GOOD, False), (10, BAD, True)):
        informers.watched(at, spec=spec)
        assert (watched.problem is not None) is problem
        assert watched.slo is not None
    informers.slos.remove(NODE, 11)
    assert watched.problem is None
