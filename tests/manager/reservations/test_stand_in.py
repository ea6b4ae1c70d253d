"""What is taken from a template into the pod that stands in for a Reservation, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.koordinator.metadata import protected_metadata
from manager.reservations import priorities, stand_in
from tests.manager.reservations import reserved

OURS = ("koord-scheduler",)
PRIORITY = priorities.Priority(5000, preempts=False)
CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}


def made(template, namespace=None, number=0, **metadata):
    found = reserved.read(template=template, **metadata)
    place = stand_in.Place(namespace or found.home, OURS[0], PRIORITY, number)
    return stand_in.body(found, place)


def with_spec(**spec):
    return {"spec": {"containers": [CONTAINER], **spec}}


def test_it_asks_for_the_same_and_runs_nothing():
    full = {
        **CONTAINER,
        "image": "registry.example/app:1",
        "command": ["sh"],
        "env": [{"name": "A", "value": "b"}],
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
        "securityContext": {"privileged": True},
        "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 90}],
    }
    pod = made(
        with_spec(
            containers=[full],
            initContainers=[{**CONTAINER, "restartPolicy": "Always"}],
            serviceAccountName="admin",
            hostPID=True,
            volumes=[{"name": "host", "hostPath": {"path": "/"}}],
            schedulingGates=[{"name": "x"}],
        )
    )
    spec = pod["spec"]
    assert spec["containers"] == [
        {
            "name": "c",
            "image": stand_in.IMAGE,
            "imagePullPolicy": "Never",
            "resources": {"requests": {"cpu": "1"}},
            "ports": [{"containerPort": 80, "hostPort": 8080}],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ]
    assert spec["initContainers"][0]["restartPolicy"] == "Always"
    assert spec["initContainers"][0]["image"] == stand_in.IMAGE
    assert spec["schedulerName"] == "koord-scheduler"
    assert spec["priorityClassName"] == "koord-reservation-5000"
    gone = {"serviceAccountName", "hostPID", "volumes", "schedulingGates", "nodeName", "priority"}
    assert not gone & spec.keys()


def test_it_belongs_to_its_reservation_and_says_so():
    pod = made({"metadata": {"namespace": "team"}, **with_spec()}, name="r")
    metadata = pod["metadata"]
    assert metadata["namespace"] == "team"
    assert metadata["labels"][names.LABEL_STAND_IN] == "r"
    assert metadata["annotations"] == {
        names.ANNOTATION_STAND_IN_NAME: "r",
        names.ANNOTATION_STAND_IN_UID: reserved.UID,
        names.ANNOTATION_STAND_IN_GENERATION: "1",
        names.ANNOTATION_STAND_IN_POLICY: "Default",
    }
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Reservation", "r", reserved.UID)
    assert owner["controller"] is True


def test_labels_of_the_reservation_win_and_memberships_stay_behind():
    template = {
        "metadata": {
            "labels": {"app": "a", "tier": "t", names.LABEL_QUOTA_NAME: "q"},
            "annotations": {
                names.ANNOTATION_RESOURCE_SPEC: "{}",
                names.ANNOTATION_GANG_NAME: "g",
                names.ANNOTATION_RESERVATION_AFFINITY: "{}",
                **dict.fromkeys(protected_metadata.NEVER_CREATED, "forged"),
            },
        },
        **with_spec(),
    }
    metadata = made(template, labels={"tier": "own", names.LABEL_POD_GROUP: "g"})["metadata"]
    assert metadata["labels"] == {"app": "a", "tier": "own", names.LABEL_STAND_IN: "r"}
    assert metadata["annotations"] == {
        names.ANNOTATION_RESOURCE_SPEC: "{}",
        names.ANNOTATION_STAND_IN_NAME: "r",
        names.ANNOTATION_STAND_IN_UID: reserved.UID,
        names.ANNOTATION_STAND_IN_GENERATION: "1",
        names.ANNOTATION_STAND_IN_POLICY: "Default",
    }


def test_a_node_that_the_template_names_is_required_beside_what_it_requires():
    field = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    alone = made(with_spec(nodeName="n7"))["spec"]["affinity"]["nodeAffinity"]
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    assert alone == {kind: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    zones = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [z]}]} for z in "ab"]
    written = {"nodeAffinity": {kind: {"nodeSelectorTerms": zones}}}
    both = made(with_spec(nodeName="n7", affinity=written))["spec"]["affinity"]["nodeAffinity"]
    assert both[kind]["nodeSelectorTerms"] == [{**zone, "matchFields": [field]} for zone in zones]


def test_in_another_namespace_affinity_means_the_namespace_of_the_template():
    kinds = {
        "requiredDuringSchedulingIgnoredDuringExecution": [TERM, {**TERM, "namespaces": ["x"]}],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": TERM},
            {"weight": 2, "podAffinityTerm": {**TERM, "namespaceSelector": {}}},
        ],
    }
    template = with_spec(affinity={"podAffinity": kinds, "podAntiAffinity": kinds})
    at_home = made(template)["spec"]["affinity"]
    assert at_home == {"podAffinity": kinds, "podAntiAffinity": kinds}
    abroad = made(template, namespace="koordinator-system")["spec"]["affinity"]["podAntiAffinity"]
    required, preferred = abroad.values()
    assert [term["namespaces"] for term in required] == [["default"], ["x"]]
    assert preferred[0]["podAffinityTerm"]["namespaces"] == ["default"]
    assert "namespaces" not in preferred[1]["podAffinityTerm"]


REFUSED = {
    "no containers": ({"spec": {}}, "containers: Required"),
    "claims of devices": (with_spec(resourceClaims=[{"name": "x"}]), "resourceClaims: Forbidden"),
    "another scheduler": (with_spec(schedulerName="volcano"), "schedulerName: volcano"),
}


@pytest.mark.parametrize(("template", "text"), REFUSED.values(), ids=REFUSED)
def test_a_template_that_cannot_be_placed_is_refused_by_name(template, text):
    assert text in stand_in.refusal(reserved.read(template=template), OURS)


@pytest.mark.parametrize("name", ["", "default-scheduler", "koord-scheduler", "mine"])
def test_templates_without_a_scheduler_of_their_own_are_ours(name):
    found = reserved.read(template=with_spec(schedulerName=name))
    ours = (*OURS, "mine")
    assert stand_in.refusal(found, ours) == ""
    assert stand_in.scheduler(found, ours) == ("mine" if name == "mine" else "koord-scheduler")


ONE_NAMESPACE = {
    "spread": (with_spec(topologySpreadConstraints=[{"maxSkew": 1}]), True),
    "claim": (
        with_spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
        True,
    ),
    "neither": (with_spec(volumes=[{"name": "v", "emptyDir": {}}]), False),
}


@pytest.mark.parametrize(("template", "bound"), ONE_NAMESPACE.values(), ids=ONE_NAMESPACE)
def test_what_counts_within_one_namespace_is_not_created_in_another(template, bound):
    assert bool(stand_in.refusal_abroad(reserved.read(template=template))) is bound


HOMES = {
    "template": ({"metadata": {"namespace": "a"}, **with_spec()}, None, "a"),
    "owners": (with_spec(), [{"object": {"name": "p", "namespace": "b"}}], "b"),
    "owners that differ": (
        with_spec(),
        [{"object": {"name": "p", "namespace": n}} for n in "bc"],
        "default",
    ),
    "nothing": (with_spec(), None, "default"),
}


@pytest.mark.parametrize(("template", "owners", "home"), HOMES.values(), ids=HOMES)
def test_it_is_created_where_the_pods_of_the_reservation_will_be(template, owners, home):
    spec = {"owners": owners} if owners else {}
    assert reserved.read(template=template, spec=spec).home == home


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True), st.integers(0, 99))
def test_names_and_labels_are_legal_and_differ(name, number):
    found = reserved.read(name=name[:253])
    pod = stand_in.pod_name(found, number)
    assert len(pod) <= 253
    assert pod != stand_in.pod_name(found, number + 1)
    value = stand_in.label(found.name)
    assert len(value) <= 63
    assert value == found.name or len(found.name) > 63


PRIORITIES = {
    "value": ({"priority": 7}, {}, "koord-reservation-7"),
    "class": ({"priorityClassName": "koord-prod"}, {}, "koord-reservation-9500"),
    "label": ({}, {names.LABEL_PRIORITY: "-3"}, "koord-reservation-minus-3"),
    "bad label": ({}, {names.LABEL_PRIORITY: "high"}, "koord-reservation-1000000000"),
    "none": ({}, {}, "koord-reservation-1000000000"),
    "above what users may": ({"priority": 2_000_000_000}, {}, "koord-reservation-1000000000"),
}


@pytest.mark.parametrize(("spec", "labels", "name"), PRIORITIES.values(), ids=PRIORITIES)
def test_it_has_the_priority_of_the_template_and_preempts_no_pod(spec, labels, name):
    found = reserved.read(template=with_spec(**spec), labels=labels)
    for preempts, ending, policy in ((False, "", "Never"), (True, "-preempting", None)):
        priority = priorities.of(found, {"koord-prod": 9500}, preempts=preempts)
        assert not isinstance(priority, str)
        assert priority.name == name + ending
        body = priority.body()
        assert body["globalDefault"] is False
        assert body["preemptionPolicy"] == (policy or "PreemptLowerPriority")


def test_a_class_that_does_not_exist_is_named():
    found = reserved.read(template=with_spec(priorityClassName="gold"))
    assert "no PriorityClass gold" in str(priorities.of(found, {}, preempts=False))


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        pytest.param({}, "Default", id="none"),
        pytest.param({"allocatePolicy": "Aligned"}, "Aligned", id="named"),
        pytest.param({"preAllocation": True}, "Restricted", id="by pre-allocation"),
    ],
)
def test_it_says_which_policy_its_reservation_names(spec, policy):
    found = reserved.read(template=with_spec(), spec=spec)
    place = stand_in.Place(found.home, OURS[0], PRIORITY)
    notes = stand_in.body(found, place)["metadata"]["annotations"]
    assert notes[names.ANNOTATION_STAND_IN_POLICY] == policy


def test_it_asks_by_names_that_nodes_offer():
    """Admission does not change stand-ins, and the Reservation stays as its author wrote it."""
    asks = {"cpu": "1", "kubernetes.io/gpu": "50"}
    container = {"name": "c", "resources": {"requests": asks}}
    template = with_spec(containers=[container], initContainers=[container])
    spec = made(template)["spec"]
    wanted = {"requests": {"cpu": "1", names.GPU: "50"}, "limits": {names.GPU: "50"}}
    assert [spec[part][0]["resources"] for part in ("containers", "initContainers")] == [wanted] * 2
    assert template["spec"]["containers"][0]["resources"]["requests"] == asks
