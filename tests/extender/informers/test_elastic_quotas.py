"""ElasticQuotas of three groups reach the cluster state; a bad one changes nothing for others."""

import json

import pytest

from api import names, resources
from extender.informers import elastic_quotas
from extender.state import cluster_state, deltas, ledger
from kube.client import wire
from kube.informers import store

GROUPS = resources.QUOTA_RESOURCES


def _quota(name, *, resource=GROUPS[0], uid="", used="0", **spec):
    return {
        "apiVersion": resource.api_version,
        "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "teams", "uid": uid or f"uid-{name}"},
        "spec": spec or {"min": {"cpu": "1"}, "max": {"cpu": "2"}},
        "status": {"used": {"cpu": used}},
    }


class Feeding:
    """Stores of the three groups, fed as watches would."""

    def __init__(self):
        self.cluster = cluster_state.ClusterState((), ("cpu",))
        self.told = []
        self.cluster.followers.append(self.told.append)
        self.books = ledger.Ledger(self.cluster)
        self.readers = [elastic_quotas.Reader() for _ in GROUPS]
        self.stores = []
        for reader in self.readers:
            reader.known = store.Store()
            self.stores.append(reader.known)
        elastic_quotas.connect(self.stores, self.books)
        self.version = 0

    def put(self, raw):
        self.version += 1
        at = [one.api_version for one in GROUPS].index(raw["apiVersion"])
        raw["metadata"]["resourceVersion"] = str(self.version)
        line = json.dumps({"type": "MODIFIED", "object": raw}).encode()
        event = wire.Reader(dict, self.readers[at].read).event(line)
        self.stores[at].put(event.item.meta, event.item.value)
        return event.item.flaw

    def known(self):
        return {one.key: one.after for one in self.cluster.objects()}


@pytest.fixture
def feeding():
    return Feeding()


def test_one_name_in_three_groups_is_three_objects(feeding):
    for resource in GROUPS:
        feeding.put(_quota("team", resource=resource))
    assert set(feeding.known()) == {f"{one.group}/teams/team" for one in GROUPS}
    feeding.stores[1].remove("teams/team", 9)
    assert set(feeding.known()) == {f"{GROUPS[at].group}/teams/team" for at in (0, 2)}


def test_a_written_status_is_no_change(feeding):
    feeding.put(_quota("team"))
    feeding.put(_quota("team", used="7"))
    assert len(feeding.told) == 1
    feeding.put(_quota("team", min={"cpu": "1"}, max={"cpu": "3"}))
    assert len(feeding.told) == 2
    assert isinstance(feeding.told[1], deltas.ObjectDelta)
    assert feeding.told[1].after.maximum == {"cpu": 3000}


def test_an_edit_that_cannot_be_read_leaves_the_quota_as_it_was(feeding, caplog):
    feeding.put(_quota("team"))
    assert feeding.put(_quota("team", max={"cpu": "much"})) == ""
    assert [one.maximum for one in feeding.known().values()] == [{"cpu": 2000}]
    assert "quota cannot be read and stays as it was key=teams/team" in caplog.text
    assert len(feeding.told) == 1


@pytest.mark.parametrize(
    "status",
    [{"used": {"cpu": "much"}}, {"used": 7}, {"borrowed": {"time": "x"}}, 7, ["x"]],
    ids=["amount", "number", "loans", "no object", "list"],
)
def test_a_status_that_cannot_be_read_changes_nothing(feeding, status):
    assert feeding.put(_quota("team") | {"status": status}) == ""
    assert [one.maximum for one in feeding.known().values()] == [{"cpu": 2000}]
    feeding.put(_quota("team"))
    assert len(feeding.told) == 1


@pytest.mark.parametrize(
    "before", [None, "another-uid"], ids=["never-read", "of-an-earlier-object"]
)
def test_a_quota_of_which_nothing_can_be_read_is_told_as_a_flaw(feeding, before):
    if before:
        feeding.put(_quota("team", uid=before))
    assert "max" in feeding.put(_quota("team", max={"cpu": "much"}))
    assert feeding.known() == {}
    feeding.put(_quota("other"))
    assert len(feeding.known()) == 1


def test_an_unreadable_annotation_does_not_cost_the_quota(feeding):
    raw = _quota("team")
    raw["metadata"]["annotations"] = {names.ANNOTATION_QUOTA_NAMESPACES: "{"}
    assert feeding.put(raw) == ""
    assert len(feeding.known()) == 1
