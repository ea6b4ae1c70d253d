"""Generated reviews of every path over HTTP: an answer, never a fault of ours.

A thousand, the same ones each time; `make fuzz` sends KOORD_FUZZ of them, others each time.
"""

import asyncio
import base64
import collections
import contextlib
import copy
import dataclasses
import json
import os
import pathlib
import random
import resource
import time

import jsonpatch
import pytest
import yaml
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import names, resources
from api.koordinator import colocation
from api.koordinator.settings import configuration
from api.kubernetes.webhooks import admission
from api.wire import base
from domain.quota.tree import quota_trees
from process.configuration import settings as process_settings
from process.configuration import switches
from process.http import fast_path, server
from process.runtime import metrics
from tests.planes import admissions
from webhook import conversion, gates, handlers, registry, review
from webhook import settings as webhook_settings

pytestmark = pytest.mark.timeout(max(120, int(os.environ.get("KOORD_FUZZ", "0")) // 10))
CASES = int(os.environ.get("KOORD_FUZZ", "1000"))
SHARES = {"objects": 0.6, "profiles": 0.15, "settings": 0.07, "scheduler": 0.03, "texts": 0.15}
MOST_SECONDS, MOST_MEBIBYTES, PATIENCE = 2.0, 64.0, 60.0
LIMIT = webhook_settings.ReviewServer().max_body_bytes
MANIFESTS = pathlib.Path(__file__).parent.parent / "manifests"


def share(name):
    """Settings of a test that takes its share of all cases."""
    return settings(
        max_examples=max(1, int(CASES * SHARES[name])),
        derandomize=CASES <= 2000,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


# --- what is sent -------------------------------------------------------------------------------

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


# --- who answers --------------------------------------------------------------------------------

EVERYTHING = frozenset(gates.DESCRIPTIONS) - {gates.SKIP_RESOURCES, gates.DISABLE_RECORD,
                                              gates.DISABLE_DEVICES}  # fmt: skip
PICTURE = review.Picture(
    profiles=admissions.PROFILES[:12],
    namespaces={"default": {"home": "yes"}},
    priority_classes=admissions.CLASSES,
    draw=lambda _: 50,
    gates=EVERYTHING,
    trees=admissions.TREES,
    limits={"default": [("limits", admissions.DEFAULTS)]},
    nodes={"n": {"pool": "a"}},
    settings=CONFIG["data"],
    binding=review.Binding(users=("scheduler",)),
)


HEAD = (
    "POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-apiserver-admission\r\n"
    "Content-Length: {length}\r\nAccept: application/json, */*\r\n"
    "Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
)


class Served:
    """The paths of the webhook behind a real socket, on a loop of their own."""

    def __init__(self):
        self.picture = PICTURE
        self.figures = metrics.Registry()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        self.streams = None
        self.statuses = collections.Counter()
        self.reviews = collections.Counter()
        """The same, without bodies that are random bytes."""
        self.runner.run(self._start())

    async def answered(self, asked, needs):
        """Stand in for what is read from the API server."""
        found = {name: (quota_trees.Member(name, "elsewhere"),) for name in needs.quotas}
        pods = ("a/p",) if needs.pods else ()
        bound = {"metadata": {"labels": {}}} if needs.bound else None
        return dataclasses.replace(asked, bound=bound, pods=pods, quotas=found)

    async def _start(self):
        live = switches.Switches("webhook")
        reviews = handlers.Admission(lambda: self.picture, self.figures, live, reads=self)
        app = web.Application(client_max_size=LIMIT)
        app.add_routes(reviews.routes())
        app[fast_path.ROUTES] = reviews.short_way()
        app.add_routes(conversion.Conversion(self.figures).routes())
        listening = process_settings.ServerSettings(host="127.0.0.1", port=0)
        site = await self.stack.enter_async_context(server.running_site(app, listening))
        self.port = int(site.url.rpartition(":")[2])

    async def _post(self, target, body):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(HEAD.format(target=target, length=len(body)).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        answer = await reader.readexactly(length)
        if "connection: close" in head:
            writer.close()
            self.streams = None
        return int(head.split()[1]), answer

    def post(self, path, body):
        """Send a body; returns the status and what came back.

        Processor time is bounded: others may use this machine as well.
        """
        started = time.process_time()
        found = self.runner.run(asyncio.wait_for(self._post(path, body), PATIENCE))
        assert time.process_time() - started < MOST_SECONDS, (path, body[:500])
        self.statuses[found[0]] += 1
        return found

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
        self.runner.run(self.stack.aclose())
        self.runner.close()


@pytest.fixture(scope="module")
def served():
    made = Served()
    yield made
    made.close()
    print(f"statuses {dict(made.statuses)}, of reviews {dict(made.reviews)}")
    # A worker may run some of these tests only.
    total = made.reviews.total()
    assert not total or made.reviews[200] > total / 2, made.reviews


def read(body):
    """Read a review as the webhook does: what is nested too deeply for a reader is left out."""
    try:
        return admission.decode(body)
    except RecursionError:
        return admission.decode(admission.trimmed(body))


def check(served, path, body, *, shaped=True):
    """Send a body, which has the shape of a review, and hold the answer to what is promised."""
    # Of both ways, one has a parser and a router of its own.
    status, answer = served.post(f"{path}?timeout=5s" if len(body) % 2 else path, body)
    assert status in (200, 400, 413), (status, answer)
    served.reviews[status] += shaped
    if status != 200:
        return
    asked = read(body)
    response = json.loads(answer)["response"]
    assert response["uid"] == asked.uid
    told = " ".join([*response.get("warnings", ()), str(response.get("status"))])
    assert "could not review" not in told, told
    assert all(len(text) <= 256 for text in response.get("warnings", ())), response["warnings"]
    if response.get("patch"):
        operations = json.loads(base64.b64decode(response["patch"]))
        jsonpatch.apply_patch(asked.object, operations)


@share("objects")
@given(questions())
def test_objects_of_any_shape_are_answered(served, question):
    path, made = question
    check(served, path, json.dumps(made).encode())


PROFILE_PLACES = [
    (raw, list(places(raw["spec"])))
    for raw in (profile.wire() for profile in admissions.PROFILES[:200])
    if raw.get("spec")
]


@share("profiles")
@given(st.data())
def test_profiles_of_any_shape_change_pods_or_are_left_out(served, data):
    raw, where = data.draw(st.sampled_from(PROFILE_PLACES))
    made = copy.deepcopy(raw)
    for place in data.draw(st.lists(st.sampled_from(where), max_size=3)) if where else ():
        put(made["spec"], place, data.draw(JUNK))
    try:
        profile = colocation.read_profile(json.loads(json.dumps(made)))
    except base.ReadError:
        return
    served.picture = PICTURE.but(profiles=(profile, *admissions.PROFILES[:2]))
    pod = data.draw(admissions.pods)
    check(served, "/mutate-pod", json.dumps(asking("/mutate-pod", resources.PODS, pod)).encode())
    served.picture = PICTURE


SETTINGS_PLACES = {
    key: (document, list(places(document)))
    for key, document in ((key, json.loads(text)) for key, text in CONFIG["data"].items())
}


@share("settings")
@given(st.data())
def test_settings_of_any_shape_are_answered(served, data):
    made = copy.deepcopy(CONFIG)
    for key in data.draw(st.lists(st.sampled_from(sorted(SETTINGS_PLACES)), max_size=2)):
        document, where = SETTINGS_PLACES[key]
        changed = copy.deepcopy(document)
        for place in data.draw(st.lists(st.sampled_from(where), max_size=3)):
            put(changed, place, data.draw(JUNK))
        text = json.dumps(changed)
        cut = data.draw(st.integers(0, len(text)))
        whole = data.draw(st.booleans())
        made["data"][key] = text if whole else text[:cut] + data.draw(st.text(max_size=3))
    old = data.draw(st.sampled_from((None, CONFIG, {})))
    path = "/validate-configmap"
    operation = "CREATE" if old is None else "UPDATE"
    asked = asking(path, resources.CONFIG_MAPS, made, operation, old)
    check(served, path, json.dumps(asked).encode())
    labelled = asking("/validate-node", resources.NODES, NODE, "UPDATE", {"metadata": {}})
    served.picture = PICTURE.but(settings=made["data"])
    check(served, "/validate-node", json.dumps(labelled).encode())
    served.picture = PICTURE


SCHEDULER_PLACES = list(places(SCHEDULER))


@share("scheduler")
@given(st.data())
def test_scheduler_configurations_of_any_shape_are_answered(served, data):
    changed = copy.deepcopy(SCHEDULER)
    for place in data.draw(st.lists(st.sampled_from(SCHEDULER_PLACES), max_size=3)):
        put(changed, place, data.draw(JUNK))
    text = json.dumps(changed)
    whole, cut = data.draw(st.booleans()), data.draw(st.integers(0, len(text)))
    name = names.CONFIG_MAP_SCHEDULER
    written = text if whole else text[:cut] + data.draw(st.text(max_size=3))
    made = {"metadata": {"name": name}, "data": {name: written}}
    path = "/validate-configmap"
    check(served, path, json.dumps(asking(path, resources.CONFIG_MAPS, made)).encode())


ODD = [
    b"NaN", b"-Infinity", b"9" * 5000, b"1e999999", b"-1e-999999", b'"\\ud800"', b"\xff\xfe",
    b"[" * 20_000 + b"]" * 20_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"a":1,"a":2}',
    b'"' + b"x" * 70_000 + b'"', b"{}", b"[]", b"null", b"tru", b"\x00", b"1.", b"01", b'{"a"}',
]  # fmt: skip


@pytest.mark.parametrize("deep", [odd for odd in ODD if odd[-1:] in b"]}" and len(odd) > 9000])
def test_what_is_nested_too_deeply_to_be_read_is_answered(served, deep):
    path, question = QUESTIONS[0]
    question = copy.deepcopy(question)
    question["request"]["object"]["unknown"] = "HERE"
    check(served, path, json.dumps(question).encode().replace(b'"HERE"', deep))


@share("texts")
@given(st.data())
def test_bytes_of_any_kind_are_answered_or_refused(served, data):
    path, question = QUESTIONS[data.draw(st.integers(0, len(QUESTIONS) - 1))]
    body = bytearray(json.dumps(question).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        cut = data.draw(st.integers(0, 3))
        body[at : at + cut] = data.draw(st.one_of(st.binary(max_size=4), st.sampled_from(ODD)))
    if data.draw(st.integers(0, 9)) == 0:
        path = conversion.PATH
        status, _ = served.post(path, bytes(body))
        assert status in (200, 400, 413)
        return
    check(served, path, bytes(body), shaped=False)


def peak():
    """The most memory that this process ever had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_answers_leave_nothing_behind():
    """Ever new values fill what is remembered between reviews, and no more than that."""
    rng, live = random.Random(CASES), switches.Switches("webhook")
    reviews = handlers.Admission(lambda: PICTURE, metrics.Registry(), live)
    before, kinds = 0.0, [(*found, list(places(found[1]["request"]))) for found in QUESTIONS]
    for number in range(CASES // 2):
        if number == CASES // 8:
            before = peak()
        path, question, where = rng.choice(kinds)
        made = copy.deepcopy(question)
        new = f"{number}m", f"x{number}", number * 10**6, {f"k{number}": [f"v{number}"]}
        for place in rng.sample(where, 2):
            put(made["request"], place, rng.choice(new))
        with contextlib.suppress(admission.ReviewError):
            asked = admission.decode(json.dumps(made).encode())
            answer, result = reviews.answer(ROUTES[path], asked, PICTURE)
            assert result != "failed", answer
    assert peak() - before < MOST_MEBIBYTES
