"""What is refused and what is doubted in Reservations, and what stays as it is."""

import pytest

from api import names, resources
from api.koordinator.metadata import protected_metadata
from webhook import kinds, review

KIND = resources.RESERVATIONS
EXTENDER = "system:serviceaccount:koordinator-system:koord-scheduler"
PICTURE = review.Picture(
    (), {}, {}, lambda _: 0, writers=review.Writers(frozenset({EXTENDER}), frozenset())
)
CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
SPEC = {
    "template": {"spec": {"containers": [CONTAINER]}},
    "owners": [{"labelSelector": {"matchLabels": {"app": "a"}}}],
}
MORE = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}


def body(spec=None, status=None, **metadata):
    found = {
        "apiVersion": KIND.api_version,
        "kind": KIND.kind,
        "metadata": {"name": "r", **metadata},
        "spec": {**SPEC, **(spec or {})},
    }
    return found if status is None else {**found, "status": status}


def ask(new, old=None, user="tenant"):
    operation = "CREATE" if old is None else "UPDATE"
    resource = (KIND.group, KIND.plural)
    asked = review.Review(operation, "", new, old, user=user, resource=resource)
    decision = kinds.validate(asked, PICTURE)
    refused = decision.refusal
    return "" if refused is None else refused.message, " ".join(decision.warnings)


def noted(key, value):
    return body(annotations={key: value})


REFUSED = {
    "both ends": (body({"ttl": "1h", "expires": "2030-01-01T00:00:00Z"}), "expires"),
    "options": (noted(names.ANNOTATION_RESERVATION_RESTRICTED, "{"), "no pod could"),
    "kept back": (noted(names.ANNOTATION_NODE_RESERVATION, "{"), "no pod could"),
}


@pytest.mark.parametrize(("new", "text"), REFUSED.values(), ids=REFUSED)
def test_what_could_never_work_is_refused(new, text):
    assert text in ask(new)[0]


DOUBTED = {
    "order": (body(labels={names.LABEL_RESERVATION_ORDER: "first"}), "no whole number"),
    "priority": (body(labels={names.LABEL_PRIORITY: "9" * 12}), "no whole number"),
    "taint": (body({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), "keeps no pod away"),
    "no containers": (body({"template": {"spec": {}}}), "never placed"),
    "claims": (
        body({"template": {"spec": {"containers": [CONTAINER], "resourceClaims": [{}]}}}),
        "no devices of claims",
    ),
}


@pytest.mark.parametrize(("new", "text"), DOUBTED.values(), ids=DOUBTED)
def test_what_will_not_do_what_it_seems_to_is_doubted(new, text):
    refusal, warnings = ask(new)
    assert refusal == ""
    assert text in warnings


def test_a_good_reservation_is_neither_refused_nor_doubted():
    labels = {names.LABEL_RESERVATION_ORDER: "-5", names.LABEL_PRIORITY: "+7"}
    assert ask(body(labels=labels)) == ("", "")


PLACED = {"nodeName": "n1", "phase": "Available"}
CHANGES = {
    "template": ({"template": MORE}, True),
    "preAllocation": ({"preAllocation": True}, True),
    "ttl": ({"ttl": "48h"}, False),
    "owners": ({"owners": [{"object": {"name": "p"}}]}, False),
    "unschedulable": ({"unschedulable": True}, False),
    "nothing": ({"preAllocation": False}, False),
}


@pytest.mark.parametrize(("change", "fixed"), CHANGES.values(), ids=CHANGES)
def test_what_is_held_on_a_node_is_not_changed_under_its_owners(change, fixed):
    refusal, _ = ask(body(change, PLACED), body(status=PLACED))
    assert ("immutable once the Reservation has a node" in refusal) is fixed
    waiting = {"phase": "Pending"}
    assert ask(body(change, waiting), body(status=waiting))[0] == ""


@pytest.mark.parametrize("key", protected_metadata.RESERVATIONS)
def test_only_schedulers_write_what_a_reservation_holds(key):
    for new, old in (
        (noted(key, "{}"), None),
        (noted(key, "{}"), body()),
        (noted(key, "{}"), noted(key, "[]")),
        (body(), noted(key, "{}")),
    ):
        assert f"metadata.annotations[{key}]: Forbidden" in ask(new, old)[0]
        assert ask(new, old, user=EXTENDER)[0] == ""
    kept = body({"ttl": "1h"}, annotations={key: "{}"})
    assert ask(kept, noted(key, "{}"))[0] == ""
