"""PodGroups of both API groups reach the cluster state; what cannot be read changes nothing."""

import json

import pytest

from api import names, resources
from domain.gangs import declaration
from extender.informers import pod_groups
from extender.state import cluster_state, deltas, ledger
from kube.client import wire

SIGS = resources.POD_GROUPS
BETA, ALPHA = resources.NATIVE_POD_GROUPS
DEFAULTS = declaration.Defaults()
BEFORE, AT = "2026-07-01T12:00:05Z", "2026-07-01T12:10:00Z"
RESTARTED = {"conditions": [{"type": "Restarted", "status": "True", "lastTransitionTime": AT}]}


def _sigs(name="job", *, least=3, uid="u1", notes=None, status=None, **spec):
    return {
        "apiVersion": SIGS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team", "uid": uid, "annotations": notes or {}}
        | {"creationTimestamp": "2026-07-01T12:00:00Z"},
        "spec": {"minMember": least} | spec,
        "status": status or {},
    }


def _native(name="job", *, version=BETA, policy=None, uid="u1"):
    policy = policy if policy is not None else {"gang": {"minCount": 3}}
    return {
        "apiVersion": version.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team", "uid": uid},
        "spec": {"schedulingPolicy": policy},
    }


class Feeding:
    """The stores of one extender, fed as watches would."""

    def __init__(self):
        self.cluster = cluster_state.ClusterState((), ("cpu",))
        self.changes = []
        self.cluster.followers.append(self.changes.append)
        read, native = pod_groups.pod_groups.read, pod_groups.pod_groups.read_native
        self.readers = [pod_groups.Reader(one) for one in (read, native, native)]
        self.stores = [one.known for one in self.readers]
        pod_groups.connect(self.stores, ledger.Ledger(self.cluster))
        self.version = 0

    def put(self, raw):
        self.version += 1
        at = [SIGS, BETA, ALPHA].index(
            next(one for one in (SIGS, BETA, ALPHA) if one.api_version == raw["apiVersion"])
        )
        raw["metadata"]["resourceVersion"] = str(self.version)
        line = json.dumps({"type": "MODIFIED", "object": raw}).encode()
        event = wire.Reader(dict, self.readers[at].read).event(line)
        if event.item.value is not None:
            self.stores[at].put(event.item.meta, event.item.value)
        return event.item.flaw

    def gone(self, at):
        self.version += 1
        self.stores[at].remove("team/job", self.version)

    def told(self, key="team/job"):
        found = self.cluster.told(deltas.POD_GROUP, key)
        return found.after if found is not None else None


@pytest.fixture
def feeding():
    return Feeding()


def test_a_pod_group_declares_a_gang_with_its_annotations(feeding):
    notes = {
        names.ANNOTATION_GANG_MODE: "NonStrict",
        names.ANNOTATION_GANG_GROUPS: '["team/job","team/other"]',
        "other": "x",
    }
    feeding.put(_sigs(notes=notes, scheduleTimeoutSeconds=90))
    gang = feeding.told().gang(DEFAULTS)
    assert (gang.id, gang.min_member, gang.wait_seconds) == ("team/job", 3, 90.0)
    assert (gang.mode.value, gang.group) == ("NonStrict", ("team/job", "team/other"))
    assert feeding.told().created == 1782907200.0


@pytest.mark.parametrize(
    ("status", "begun"),
    [
        pytest.param({}, False, id="new"),
        pytest.param({"phase": "Scheduling", "scheduled": 1}, False, id="scheduling"),
        pytest.param({"phase": "Running", "running": 3}, False, id="all run and are counted"),
        pytest.param({"phase": "Running", "running": 1, "succeeded": 2}, True, id="some ended"),
        pytest.param({"phase": "Failed", "failed": 1}, True, id="one failed"),
        pytest.param(RESTARTED | {"phase": "Failed", "failed": 1}, False, id="it is restarted"),
        pytest.param(
            RESTARTED | {"phase": "Failed", "failed": 1, "scheduleStartTime": BEFORE},
            False,
            id="what failed was before the restart",
        ),
        pytest.param(
            RESTARTED | {"phase": "Failed", "failed": 1, "scheduleStartTime": AT},
            True,
            id="one failed after the restart",
        ),
        pytest.param(
            RESTARTED | {"phase": "Scheduling", "failed": 1, "scheduleStartTime": AT},
            False,
            id="it gathers after the restart",
        ),
        pytest.param(
            RESTARTED | {"phase": "Scheduling", "succeeded": 1, "scheduleStartTime": AT},
            True,
            id="one succeeded and will not come again",
        ),
    ],
)
def test_a_status_counts_where_members_have_ended(feeding, status, begun):
    feeding.put(_sigs(status=status))
    assert feeding.told().begun is begun


def test_what_a_status_says_often_is_no_change(feeding):
    feeding.put(_sigs())
    feeding.put(_sigs(status={"phase": "Running", "running": 1}))
    feeding.put(_sigs(status={"phase": "Running", "running": 2}))
    assert len(feeding.changes) == 1


@pytest.mark.parametrize(
    ("policy", "least", "initialised"),
    [
        pytest.param({"gang": {"minCount": 3}}, 3, True, id="gang"),
        pytest.param({"basic": {}}, 1, True, id="placed one by one"),
        pytest.param({"gang": {"minCount": "many"}}, 0, False, id="no number"),
        pytest.param({"gang": {}}, 0, False, id="no minimum"),
    ],
)
def test_a_native_pod_group_is_a_gang_of_its_own(feeding, policy, least, initialised):
    feeding.put(_sigs(least=7))
    feeding.put(_native(policy=policy))
    gang = feeding.told("team/job@scheduling.k8s.io").gang(DEFAULTS)
    assert (gang.min_member, gang.initialised) == (least, initialised)
    assert feeding.told().gang(DEFAULTS).min_member == 7


def test_one_object_in_two_versions_is_told_once(feeding):
    key = "team/job@scheduling.k8s.io"
    feeding.put(_native(version=ALPHA, policy={"gang": {"minCount": 2}}))
    assert feeding.told(key).min_member == 2
    feeding.put(_native())
    assert feeding.told(key).min_member == 3
    feeding.put(_native(version=ALPHA, policy={"gang": {"minCount": 4}}))
    assert feeding.told(key).min_member == 3
    feeding.gone(1)
    assert feeding.told(key).min_member == 4
    feeding.gone(2)
    assert feeding.told(key) is None


def test_an_edit_that_cannot_be_read_leaves_the_last_one_in_force(feeding):
    feeding.put(_sigs())
    assert feeding.put(_sigs(least="many")) == ""
    assert feeding.told().min_member == 3
    assert "minMember" in feeding.put(_sigs(least="many", uid="another"))
    assert len(feeding.changes) == 1
