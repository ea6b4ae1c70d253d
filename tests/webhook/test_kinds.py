"""What is refused and what is doubted in objects of our own kinds."""

import pathlib

import pytest

from api import names, resources
from api.kubernetes import crds
from tests.planes.install import manifests
from webhook import kinds, review

PICTURE = review.Picture(
    (),
    {},
    {
        "koord-batch": review.PriorityClass("koord-batch", 5000),
        "koord-prod": review.PriorityClass("koord-prod", 9000),
    },
    lambda _: 0,
)
MANIFESTS = pathlib.Path(__file__).parent.parent / "manifests"
KINDS = {(one.api_version, one.kind): one for one in resources.CUSTOM}
TEMPLATE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
OWNERS = [{"labelSelector": {"matchLabels": {"app": "a"}}}]
RESERVED = {"template": TEMPLATE, "owners": OWNERS}
CHAIN = [
    {"topologyLayer": "rack"},
    {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "rack"},
]


def ask(kind, spec, *, old=None, operation="CREATE", **metadata):
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", **metadata},
        "spec": spec,
    }
    asked = review.Review(operation, "default", body, old, resource=(kind.group, kind.plural))
    return kinds.validate(asked, PICTURE)


P = resources.COLOCATION_PROFILES

REFUSED = {
    "label value": (P, {"labels": {"a": "not ok"}}, "spec.labels[a]"),
    "label key": (P, {"labels": {"/a": "b"}}, "spec.labels"),
    "mapped key": (P, {"labelKeysMapping": {"a": "-b"}}, "spec.labelKeysMapping"),
    "suffix": (P, {"labelSuffixes": {"a": "!"}}, "spec.labelSuffixes[a]"),
    "patch": (P, {"patch": {"spec": {"containers": "x"}}}, "spec.patch"),
    "operator without values": (
        P,
        {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "values",
    ),
    "probability": (P, {"probability": "some"}, "probability"),
    "ttl and expires": (
        resources.RESERVATIONS,
        {**RESERVED, "ttl": "1h", "expires": "2026-01-01T00:00:00Z"},
        "spec.expires",
    ),
    "no duration": (resources.RESERVATIONS, {**RESERVED, "ttl": "ten minutes"}, "ttl"),
    "template is no pod": (
        resources.RESERVATIONS,
        {**RESERVED, "template": {"spec": {"containers": 1}}},
        "spec.template",
    ),
    "template asks for nonsense": (
        resources.RESERVATIONS,
        {
            **RESERVED,
            "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}},
        },
        "spec.template.spec",
    ),
    "ratio": (
        resources.ELASTIC_QUOTA_PROFILES,
        {"quotaName": "q", "nodeSelector": {"matchLabels": {"a": "b"}}, "resourceRatio": "2"},
        "spec.resourceRatio",
    ),
    "no node selector": (resources.ELASTIC_QUOTA_PROFILES, {"quotaName": "q"}, "nodeSelector"),
    "negative members": (resources.POD_GROUPS, {"minMember": -1}, "spec.minMember"),
    "out of range": (
        resources.NODE_SLOS,
        {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 101}},
        "cpuSuppressThresholdPercent",
    ),
    "device twice": (
        resources.DEVICES,
        {"devices": [{"type": "gpu", "minor": 1, "health": True}] * 2},
        "spec.devices[1].minor",
    ),
    "mode": (
        resources.POD_MIGRATION_JOBS,
        {"podRef": {"namespace": "a", "name": "b"}, "mode": "Sideways"},
        "spec.mode",
    ),
    "which pod": (resources.POD_MIGRATION_JOBS, {"podRef": {"uid": "u"}}, "spec.podRef.name"),
    "no node layer": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [{"topologyLayer": "rack"}]},
        "spec.networkTopologySpec",
    ),
    "unknown layer": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [CHAIN[1]]},
        "parentTopologyLayer",
    ),
    "layers in a circle": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [{**CHAIN[0], "parentTopologyLayer": "NodeTopologyLayer"},
                                 CHAIN[1]]},
        "above itself",
    ),
    "a layer beside": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [*CHAIN, {"topologyLayer": "block"}]},
        "block",
    ),
    "a layer twice": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [*CHAIN, CHAIN[0]]},
        "Duplicate value",
    ),
    "the layer of the cluster": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [*CHAIN, {"topologyLayer": "ClusterTopologyLayer"}]},
        "spec.networkTopologySpec[2].topologyLayer: Invalid value",
    ),
    "no target": (resources.RECOMMENDATIONS, {}, "target"),
    "target without its field": (
        resources.RECOMMENDATIONS,
        {"target": {"type": "workload"}},
        "workload",
    ),
    "memory policy": (
        resources.NODE_METRICS,
        {"metricCollectPolicy": {"nodeMemoryCollectPolicy": "all"}},
        "nodeMemoryCollectPolicy",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_could_not_work_is_refused_with_its_field(case):
    kind, spec, field, *metadata = case
    refusal = ask(kind, spec, **(metadata[0] if metadata else {})).refusal
    assert refusal is not None
    assert (refusal.group, refusal.code) == (kinds.GROUP, 400)
    assert any(field in reason for reason in refusal.reasons), refusal.reasons


DOUBTED = {
    "no selector": (P, {"qosClass": "BE"}, "every pod matches"),
    "never": (P, {"selector": {}, "probability": 0}, "no pod at all"),
    "no such class": (P, {"selector": {}, "priorityClassName": "gone"}, "there is no Priority"),
    "illegal together": (
        P,
        {"selector": {}, "qosClass": "BE", "priorityClassName": "koord-prod"},
        "cannot be used in combination",
    ),
    "reserves nothing": (
        resources.RESERVATIONS,
        {**RESERVED, "template": {"spec": {"containers": []}}},
        "nothing is reserved",
    ),
    "any owner": (
        resources.RESERVATIONS,
        {**RESERVED, "owners": [{"labelSelector": {}}]},
        "every pod may use",
    ),
    "nobody waits": (resources.POD_GROUPS, {"minMember": 1}, "do not wait"),
    "all nodes": (
        resources.ELASTIC_QUOTA_PROFILES,
        {"quotaName": "q", "nodeSelector": {}},
        "every node",
    ),
    "stops above its start": (
        resources.NODE_SLOS,
        {"resourceUsedThresholdWithBE": {
            "memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 70}},
        "memoryEvictLowerPercent",
    ),
    "cache range": (
        resources.NODE_SLOS,
        {"resourceQOSStrategy": {"beClass": {"resctrlQOS": {
            "catRangeStartPercent": 50, "catRangeEndPercent": 30}}}},
        "beClass.resctrlQOS.catRangeStartPercent",
    ),
    "weaker class first": (
        resources.NODE_SLOS,
        {"resourceQOSStrategy": {"lsClass": {"cpuQOS": {"groupIdentity": -1}},
                                 "beClass": {"cpuQOS": {"groupIdentity": 2}}}},
        "outranks",
    ),
    "always": (P, {"selector": {}, "probability": 200}, "every pod, as 100 does"),
    "partitions": (
        resources.DEVICES,
        {"devices": []},
        "the node has no partitions",
        {"annotations": {names.ANNOTATION_GPU_PARTITIONS: "{"}},
    ),
    "odd partitions": (
        resources.DEVICES,
        {"devices": []},
        "2 different minors",
        {"annotations": {names.ANNOTATION_GPU_PARTITIONS: '{"2": [{"minors": [1, 1]}]}'}},
    ),
    "too many partitions": (
        resources.DEVICES,
        {"devices": []},
        "more than 1024 partitions",
        {"annotations": {
            names.ANNOTATION_GPU_PARTITIONS: f'{{"1": [{"{}," * 1024}{{}}]}}'.replace(
                "{}", '{"minors":[1]}')}},
    ),
    "keys of a quota": (
        resources.ELASTIC_QUOTA_PROFILES,
        {"quotaName": "q", "nodeSelector": {"matchLabels": {"a": "b"}}},
        "cpu and memory are used",
        {"annotations": {names.ANNOTATION_QUOTA_RESOURCE_KEYS: "{"}},
    ),
    "fewer than must wait": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "is below minMember",
        {"annotations": {names.ANNOTATION_GANG_TOTAL: "2"}},
    ),
    "total": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "3 is used",
        {"annotations": {names.ANNOTATION_GANG_TOTAL: "many"}},
    ),
    "mode of a gang": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "is none of Strict, NonStrict",
        {"annotations": {names.ANNOTATION_GANG_MODE: "lax"}},
    ),
    "groups": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "it is ignored",
        {"annotations": {names.ANNOTATION_GANG_GROUPS: "{"}},
    ),
    "repair of a gang": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "is none of none, replace, restart",
        {"annotations": {names.ANNOTATION_GANG_REPAIR: "always"}},
    ),
    "a gang group without itself": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "itself; it is added",
        {"annotations": {names.ANNOTATION_GANG_GROUPS: '["default/other"]'}},
    ),
    "waiting time of a PodGroup": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "set spec.scheduleTimeoutSeconds",
        {"annotations": {names.ANNOTATION_GANG_WAITING_TIME: "10m"}},
    ),
    "minimum of a PodGroup as annotation": (
        resources.POD_GROUPS,
        {"minMember": 3},
        "spec.minMember count",
        {"annotations": {names.ANNOTATION_GANG_MIN_AVAILABLE: "3"}},
    ),
    "timeout of a PodGroup": (
        resources.POD_GROUPS,
        {"minMember": 3, "scheduleTimeoutSeconds": 0},
        "0 is not positive",
    ),
    "resources of a PodGroup": (
        resources.POD_GROUPS,
        {"minMember": 3, "minResources": {"cpu": "8"}},
        "the requests of the pods count",
    ),
    "unused target": (
        resources.RECOMMENDATIONS,
        {"target": {"type": "workload", "workload": {"kind": "Deployment", "name": "d"},
                    "podSelector": {"matchLabels": {"a": "b"}}}},
        "spec.target.podSelector: ignored",
    ),
    "not the one": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": CHAIN},
        "only the object default",
    ),
    "no label": (
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": CHAIN},
        "spec.networkTopologySpec[0].labelKey: rack names no label of nodes, so each node is a",
    ),
    "question": (
        resources.SCHEDULE_EXPLANATIONS,
        {"questionObjectKey": "job"},
        "write namespace/name",
    ),
    "all pods": (
        resources.RECOMMENDATIONS,
        {"target": {"type": "podSelector", "podSelector": {}}},
        "every pod of the namespace",
    ),
}  # fmt: skip


def test_an_answer_names_a_bounded_number_of_faults():
    decision = ask(
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        {"networkTopologySpec": [{"topologyLayer": "rack"}] * 3000},
        name="default",
    )
    assert decision.refusal is not None
    assert len(str(decision)) < 4096
    assert "spec.networkTopologySpec[15].topologyLayer: Duplicate value" in str(decision)


@pytest.mark.parametrize("case", DOUBTED.values(), ids=DOUBTED)
def test_what_is_legal_and_doubtful_is_told(case):
    kind, spec, text, *metadata = case
    decision = ask(kind, spec, **(metadata[0] if metadata else {}))
    assert decision.refusal is None
    assert any(text in warning for warning in decision.warnings), decision.warnings


def documents():
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in manifests.read(path.read_text()):
            if document and (document["apiVersion"], document["kind"]) in KINDS:
                yield pytest.param(document, id=path.stem)


@pytest.mark.parametrize("document", list(documents()))
def test_every_published_manifest_is_accepted(document):
    kind = KINDS[document["apiVersion"], document["kind"]]
    asked = review.Review("CREATE", "default", document, resource=(kind.group, kind.plural))
    assert kinds.validate(asked, PICTURE).refusal is None


def test_what_was_wrong_before_holds_up_no_update():
    wrong = {"labels": {"a": "not ok"}}
    before = {"metadata": {"name": "x"}, "spec": wrong}
    decision = ask(P, {**wrong, "selector": {}}, old=before, operation="UPDATE")
    assert decision.refusal is None
    assert "spec.labels[a]" in decision.warnings[0]
    worse = {"labels": {"a": "not ok", "b": "nor this"}}
    refusal = ask(P, worse, old=before, operation="UPDATE").refusal
    assert refusal is not None
    assert "spec.labels[b]" in refusal.message
    assert "spec.labels[a]" not in refusal.message


def test_statuses_and_departures_are_let_pass():
    spec = {"minMember": -1}
    before = {"metadata": {"name": "x"}, "spec": spec, "status": {"phase": "Pending"}}
    kind = resources.POD_GROUPS
    assert ask(kind, spec, old=before, operation="UPDATE") == review.Decision()
    assert ask(kind, spec, deletionTimestamp="2026-01-01T00:00:00Z") == review.Decision()


def test_a_status_of_another_shape_refuses_nothing():
    kind = resources.DEVICES
    body = {
        "metadata": {"name": "n"},
        "spec": {"devices": [{"deviceType": "gpu", "uuid": "a", "health": True}]},
        "status": {"deviceAllocations": [{"device": {"uuid": "a"}, "allocations": True}]},
    }
    asked = review.Review("CREATE", "", body, resource=(kind.group, kind.plural))
    assert kinds.validate(asked, PICTURE).refusal is None


def test_every_kind_is_in_the_table_or_needs_nothing():
    described = {one.resource for one in crds.DEFINITIONS}
    elsewhere = {resources.NODE_RESOURCE_TOPOLOGIES, *resources.QUOTA_RESOURCES}
    assert described - set(kinds.TABLE) == elsewhere


def test_a_job_stays_with_its_pod():
    kind = resources.POD_MIGRATION_JOBS
    before = {"metadata": {"name": "x"}, "spec": {"podRef": {"namespace": "a", "name": "b"}}}
    other = {"podRef": {"namespace": "a", "name": "c"}}
    refusal = ask(kind, other, old=before, operation="UPDATE").refusal
    assert refusal is not None
    assert "the job moves a/b" in refusal.message
    same = {**before["spec"], "paused": True}
    assert ask(kind, same, old=before, operation="UPDATE").refusal is None
