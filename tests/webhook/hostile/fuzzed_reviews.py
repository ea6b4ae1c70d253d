"""Reviews of every path, and junk to put into them."""

import contextlib
import copy
import json
import os
import pathlib

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from api import names, resources
from api.koordinator.settings import configuration
from tests.planes.admission import admissions
from webhook import registry

CASES = int(os.environ.get("KOORD_FUZZ", "1000"))
SHARES = {"objects": 0.6, "profiles": 0.15, "settings": 0.07, "scheduler": 0.03, "texts": 0.15}
MANIFESTS = pathlib.Path(__file__).parent.parent.parent / "manifests"


def share(name):
    """Settings of a test that takes its share of all cases."""
    return settings(
        max_examples=max(1, int(CASES * SHARES[name])),
        derandomize=CASES <= 2000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


ROUTES = {path: route for path, route in registry.ROUTES.items() if route.kinds}
NODE = {
    "metadata": {
        "name": "n",
        "labels": {"pool": "a"},
        "annotations": {names.ANNOTATION_AMPLIFICATION: '{"cpu": 1.5}'},
    },
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}, "capacity": {"cpu": "4"}},
}
BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
CONFIG = {
    "metadata": {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE},
    "data": {
        configuration.COLOCATION: json.dumps(
            {
                "enable": True,
                "cpuReclaimThresholdPercent": 60,
                "nodeConfigs": [
                    {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}},
                    {"name": "b", "nodeSelector": {"matchExpressions": [
                        {"key": "pool", "operator": "In", "values": ["a", "b"]}]}},
                ],
            }
        ),
        configuration.RESOURCE_QOS: json.dumps(
            {"clusterStrategy": {"lsClass": {"memoryQOS": {"wmarkRatio": 95}}}}
        ),
        configuration.SYSTEM: '{"clusterStrategy": {"totalNetworkBandwidth": "10G"}}',
        configuration.CPU_BURST: '{"clusterStrategy": {"policy": "auto"}}',
        configuration.RESOURCE_THRESHOLD: '{"clusterStrategy": {"cpuEvictLowerPercent": 65}}',
    },
}  # fmt: skip
SCHEDULER = {
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "koord-scheduler",
            "pluginConfig": [
                {"name": "LoadAwareScheduling", "args": {"usageThresholds": {"cpu": 60}}},
                {"name": "ElasticQuota", "args": {"systemQuotaGroupMax": {"cpu": "1"}}},
                {"name": "DeviceShare", "args": {"gpuShareUnsupportedModels": [{"model": "x"}]}},
            ],
            "plugins": {
                "filter": {"enabled": [{"name": "Reservation"}], "disabled": [{"name": "*"}]},
                "score": {"enabled": [{"name": "Reservation", "weight": 5000}]},
            },
        }
    ],
}
CUSTOM = [
    document
    for path in sorted(MANIFESTS.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document
]
KINDS = {(one.api_version, one.kind): one for one in resources.CUSTOM}


def objects_of(route):
    """Pairs of a resource and an object that a path is asked about."""
    for kind in route.kinds:
        if route.subresources == ("binding",) or kind is resources.BINDINGS:
            yield kind, BINDING
        elif kind is resources.PODS:
            yield from ((kind, pod) for pod in admissions.PODS[:40])
        elif kind is resources.NODES:
            yield kind, NODE
        elif kind is resources.CONFIG_MAPS:
            yield kind, CONFIG
        else:
            found = [d for d in CUSTOM if KINDS.get((d["apiVersion"], d["kind"])) is kind]
            empty = {"metadata": {"name": "x"}, "spec": {}}
            yield from ((kind, document) for document in (*found, empty))


def asking(path, kind, body, operation="CREATE", old=None):
    route = ROUTES[path]
    request = {
        "uid": "u-1",
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "subResource": route.subresources[0],
        "name": body["metadata"]["name"],
        "namespace": names.NAMESPACE if route.home else "default",
        "operation": operation,
        "userInfo": {"username": "somebody"},
        "object": body,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


QUESTIONS = [
    (path, asking(path, kind, body, operation, old))
    for path, route in ROUTES.items()
    for kind, body in objects_of(route)
    for operation in route.operations
    for old in ((None,) if operation == "CREATE" else (body, {}))
]
JUNK = st.one_of(
    st.sampled_from([None, True, False, 0, -1, 1, 10**30, -(10**30), 1.5, 1e308, -0.0]),
    st.sampled_from(["", "x", "1e400", "-1", "9" * 400, "0x", "1Ki", "\x00", "٣", "BE", "5%"]),
    st.sampled_from([[], {}, [None], [[]], {"": None}, {"a": {"b": [1]}}, [{}], ["x", 1]]),
    st.sampled_from(["{", "[1", '{"a":1,"a":2}', "[" * 300, "null", "NaN", '{"cpu":1e999}']),
    st.text(max_size=6),
)  # fmt: skip


def places(document, path=()):
    """Every place in a document that something may be put into."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


PLACES = {}


@st.composite
def questions(draw):
    """A review of one path with junk in up to four places, mostly inside the object."""
    number = draw(st.integers(0, len(QUESTIONS) - 1))
    path, question = QUESTIONS[number]
    if number not in PLACES:
        every = list(places(question["request"]))
        PLACES[number] = (
            every + [place for place in every if place[0] in ("object", "oldObject")] * 5
        )
    made = copy.deepcopy(question)
    for place in draw(st.lists(st.sampled_from(PLACES[number]), max_size=4)):
        put(made["request"], place, draw(JUNK))
    return path, made


def put(document, place, junk):
    """Put junk into a place if it is still there."""
    with contextlib.suppress(KeyError, IndexError, TypeError):
        parent = document
        for step in place[:-1]:
            parent = parent[step]
        if isinstance(parent, dict | list):
            parent[place[-1]] = copy.deepcopy(junk)


ODD = [
    b"NaN", b"-Infinity", b"9" * 5000, b"1e999999", b"-1e-999999", b'"\\ud800"', b"\xff\xfe",
    b"[" * 20_000 + b"]" * 20_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"a":1,"a":2}',
    b'"' + b"x" * 70_000 + b'"', b"{}", b"[]", b"null", b"tru", b"\x00", b"1.", b"01", b'{"a"}',
]  # fmt: skip
