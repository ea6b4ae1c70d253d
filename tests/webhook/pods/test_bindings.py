"""Who may bind pods, labels of nodes, and profiles of Reservations."""

import json

import pytest
from aiohttp import web

from api import names
from api.koordinator import colocation
from api.koordinator.settings import configuration
from kube.client import errors
from process.configuration import switches
from process.runtime import metrics
from webhook import gates, handlers, pods, registry, review
from webhook.informers import lookups

POLICY = review.Binding(
    users=("kube-scheduler",), namespaces=("a", "b"), excluded=("b",), annotations=("skip",)
)
PICTURE = review.Picture((), {}, {}, lambda _: 0, gates=frozenset({gates.BINDING}), binding=POLICY)


def bound(user="someone", namespace="a", pod=None, picture=PICTURE, **more):
    asked = review.Review(
        "CREATE", namespace, {"target": {"name": "n"}}, name="p", user=user, bound=pod, **more
    )
    decision = pods.bind(asked, picture)
    return decision.note, decision.refusal


PLAIN = {"metadata": {"labels": {}}}
CASES = {
    "gate off": ({"picture": PICTURE.but(gates=frozenset())}, "gate_off"),
    "nobody listed": ({"picture": PICTURE.but(binding=review.Binding())}, "not_asked"),
    "listed": ({"user": "system:kube-scheduler"}, "allowed_username"),
    "excluded": ({"namespace": "b"}, "excluded_ns"),
    "elsewhere": ({"namespace": "c"}, "out_of_scope"),
    "pod unread": ({}, "pod_not_found"),
    "label": (
        {"pod": {"metadata": {"labels": {names.LABEL_BINDING_ADMISSION_BYPASS: ""}}}},
        "bypass_label",
    ),
    "annotation": ({"pod": {"metadata": {"annotations": {"skip": ""}}}}, "bypass_annotation"),
    "dry run": ({"pod": PLAIN, "dry_run": True}, "dry_run"),
    "denied": ({"pod": PLAIN}, "denied"),
}


@pytest.mark.parametrize(("case", "word"), CASES.values(), ids=CASES)
def test_only_listed_users_bind(case, word):
    note, refusal = bound(**case)
    assert note == word
    assert (refusal is not None) is (word == "denied")
    if refusal is not None:
        assert refusal.code == 403
        assert '"someone"' in refusal.message


def test_a_pod_is_read_only_where_it_decides():
    needs = registry.ROUTES["/validate-pod-binding"].needs
    assert needs is not None
    someone = review.Review("CREATE", "a", {}, user="someone")
    assert needs(someone, PICTURE) == review.Needs(bound=True)
    scheduler = review.Review("CREATE", "a", {}, user="system:kube-scheduler")
    assert needs(scheduler, PICTURE) == review.NO_NEEDS


ENTRIES = json.dumps(
    {
        "nodeConfigs": [
            {"name": "small", "nodeSelector": {"matchLabels": {"size": "s"}}},
            {"name": "edge", "nodeSelector": {"matchLabels": {"place": "edge"}}},
        ]
    }
)
SETTINGS = {configuration.COLOCATION: ENTRIES, configuration.SYSTEM: "{"}


@pytest.mark.parametrize(
    ("labels", "old", "denied"),
    [
        ({"size": "s", "place": "edge"}, {"size": "s"}, True),
        ({"size": "s"}, {}, False),
        ({"size": "s", "place": "edge"}, {"size": "s", "place": "edge"}, False),
        ({"size": "s", "place": "edge"}, None, False),
    ],
    ids=["both", "one", "unchanged", "created"],
)
def test_labels_by_which_a_node_matches_two_entries_are_refused(labels, old, denied):
    before = None if old is None else {"metadata": {"labels": old}}
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(operation, "", {"metadata": {"labels": labels}}, before)
    refusal = (
        registry.ROUTES["/validate-node"].decide(asked, PICTURE.but(settings=SETTINGS)).refusal
    )
    assert (refusal is not None) is denied
    if refusal is not None:
        assert "small, edge of colocation-config" in refusal.message


def test_profiles_change_reservations_once():
    spec = {
        "selector": {"matchLabels": {"app": "a"}},
        "namespaceSelector": {"matchLabels": {"never": "mind"}},
        "qosClass": "LS",
        "priorityClassName": "koord-prod",
        "schedulerName": "koord-scheduler",
        "patch": {"spec": {"allocateOnce": False}},
    }
    profile = colocation.read_profile({"metadata": {"name": "p"}, "spec": spec})
    classes = {"koord-prod": review.PriorityClass("koord-prod", 9000)}
    picture = PICTURE.but(profiles=(profile,), priority_classes=classes)
    decide = registry.ROUTES["/mutate-reservation"].decide
    body = {"metadata": {"name": "r", "labels": {"app": "a"}}, "spec": {"template": {"spec": {}}}}
    decision = decide(review.Review("CREATE", "", body), picture)
    made = decision.object
    assert made is not None
    assert made["metadata"]["labels"] == {"app": "a", names.LABEL_QOS: "LS"}
    assert made["spec"] == {
        "template": {
            "spec": {
                "priority": 9000,
                "priorityClassName": "koord-prod",
                "schedulerName": "koord-scheduler",
            }
        },
        "allocateOnce": False,
    }
    assert decide(review.Review("CREATE", "", made), picture) == review.Decision()
    other = {**body, "metadata": {"name": "r"}}
    assert decide(review.Review("CREATE", "", other), picture) == review.Decision()
    gone = decide(review.Review("CREATE", "", body), picture.but(priority_classes={})).refusal
    assert gone is not None
    assert "ClusterColocationProfile p: spec.priorityClassName" in gone.message


class Unreachable:
    """A reader of pods that finds what the test says, or cannot be asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.found: dict[str, object] | None = None

    async def get(self, _resource, name: str, namespace: str) -> review.Pod:
        self.asked.append((namespace, name))
        if self.found is None:
            raise errors.NotFound("no such pod")
        return self.found


def binding_of(user):
    request = {
        "uid": "u-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "binding",
        "name": "p",
        "namespace": "a",
        "operation": "CREATE",
        "userInfo": {"username": user},
        "object": {"target": {"name": "n"}},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def test_over_http_the_pod_is_read_once_and_only_where_it_decides(aiohttp_client):
    pods_read, figures = Unreachable(), metrics.Registry()
    reviews = handlers.Admission(
        lambda: PICTURE, figures, switches.Switches("webhook"), reads=lookups.Lookups(pods_read)
    )
    app = web.Application()
    app.add_routes(reviews.routes())
    client = await aiohttp_client(app)

    async def ask(user):
        answer = await client.post("/validate-pod-binding", json=binding_of(user))
        return (await answer.json())["response"]

    assert (await ask("system:kube-scheduler"))["allowed"] is True
    assert pods_read.asked == []
    assert (await ask("somebody"))["allowed"] is True
    assert pods_read.asked == [("a", "p")]
    pods_read.found = PLAIN
    denied = await ask("somebody")
    assert (denied["allowed"], denied["status"]["code"]) == (False, 403)
    counted = {
        word: figures.value("koord_webhook_binding_decisions_total", {"decision": word})
        for word in ("allowed_username", "pod_not_found", "denied")
    }
    assert counted == {"allowed_username": 1, "pod_not_found": 1, "denied": 1}


async def test_who_only_observes_says_what_would_be_refused(aiohttp_client):
    """A trial writes nothing; the decision is that of the real thing."""
    pods_read, figures = Unreachable(), metrics.Registry()
    pods_read.found = PLAIN
    observing = switches.Switches("webhook", switches.Mode.OBSERVE)
    reads = lookups.Lookups(pods_read)
    reviews = handlers.Admission(lambda: PICTURE, figures, observing, reads=reads)
    app = web.Application()
    app.add_routes(reviews.routes())
    client = await aiohttp_client(app)
    answer = await client.post("/validate-pod-binding", json=binding_of("somebody"))
    assert (await answer.json())["response"]["allowed"] is True
    assert figures.value("koord_webhook_binding_decisions_total", {"decision": "denied"}) == 1
