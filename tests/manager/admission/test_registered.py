"""What is registered is read as the API server reads it."""

import base64

import pytest

from api import names
from api.kubernetes.webhooks import webhook_configuration
from manager.admission import registered

BUNDLE = base64.b64encode(b"PEM").decode()
NOT_SYSTEM = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    ]
}


def configuration(*webhooks, annotations=None):
    metadata = {
        "name": "koord-webhook",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": annotations or {},
    }
    return registered.view({"metadata": metadata, "webhooks": list(webhooks)})


def called(**where):
    return {"name": "a", "clientConfig": {"caBundle": BUNDLE, **where}}


SERVICE = {"namespace": "ns", "name": "hook"}


@pytest.mark.parametrize(
    ("webhooks", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param(
            [called(service=SERVICE)],
            registered.Target("hook.ns.svc", 443, "PEM"),
            id="service, its port defaulted",
        ),
        pytest.param(
            [called(service={**SERVICE, "port": 8443})],
            registered.Target("hook.ns.svc", 8443, "PEM"),
            id="service with a port",
        ),
        pytest.param(
            [called(url="https://127.0.0.1:9876/mutate-pod")],
            registered.Target("127.0.0.1", 9876, "PEM"),
            id="url",
        ),
        pytest.param(
            [{"clientConfig": {"caBundle": "%", "url": "https://a"}}, called(url="https://b/x")],
            registered.Target("b", 443, "PEM"),
            id="an unreadable bundle is passed over",
        ),
    ],
)
def test_where_it_is_found(webhooks, expected):
    assert configuration(*webhooks).target() == expected


@pytest.mark.parametrize(
    ("webhook", "namespace", "labels", "expected"),
    [
        pytest.param({}, {}, {}, True, id="no selectors"),
        pytest.param(
            {"namespaceSelector": NOT_SYSTEM},
            {"kubernetes.io/metadata.name": "kube-system"},
            {},
            False,
            id="left out by namespace",
        ),
        pytest.param(
            {"objectSelector": {"matchLabels": {"a": "b"}}}, {}, {"a": "c"}, False, id="by label"
        ),
    ],
)
def test_who_is_reviewed(webhook, namespace, labels, expected):
    assert configuration(webhook).reviews(namespace, labels) is expected
    assert not configuration().reviews(namespace, labels)


def test_its_notes_are_read():
    note = webhook_configuration.Withdrawal("a", "b", "c")
    answering = webhook_configuration.Answering("observe")
    found = configuration(
        annotations={
            names.ANNOTATION_WITHDRAWN: webhook_configuration.text(note),
            names.ANNOTATION_ADMISSION: webhook_configuration.text(answering),
        }
    )
    assert (found.note, found.answering) == (note, answering)
