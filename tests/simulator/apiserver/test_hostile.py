"""Bodies that make no sense are refused; none of them is an internal error."""

import random

import orjson
import pytest

from simulator.apiserver.registry import kinds

WORDS = tuple(
    """
metadata name namespace labels annotations ownerReferences finalizers uid spec status containers
image resources requests limits cpu template selector matchLabels matchExpressions key operator
values schedulingGates tolerations nodeName replicas webhooks rules clientConfig url caBundle
versions names plural kind group scope schema openAPIV3Schema properties type minAvailable data
stringData value ports port conditions target taints capacity timeoutSeconds jsonPath conversion
""".split()  # noqa: SIM905 - sixty words read better than sixty literals
)
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object"}},
}
GOOD = {
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "selector": {"matchLabels": {"a": "b"}},
        "template": TEMPLATE,
        "group": "e.com",
        "scope": "Cluster",
        "names": {"plural": "xs", "kind": "X"},
        "versions": [VERSION],
    },
    "status": {},
    "data": {},
    "webhooks": [
        {
            "name": "x",
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "rules": [],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
    "value": 1,
}
ATOMS = (None, True, 1, -1, 1.5, "a", "1Gi", "x/y", "In", "50%", [], {})
MEDIA = ("merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json-patch+json")


def anything(chance, depth):
    kind = chance.randrange(10)
    if depth <= 0 or kind < 4:
        return chance.choice(ATOMS)
    if kind < 8:
        below = range(chance.randrange(5))
        return {chance.choice(WORDS): anything(chance, depth - 1) for _ in below}
    return [anything(chance, depth - 1) for _ in range(chance.randrange(3))]


def damaged(chance, body):
    """Return a copy with something else in a random place."""
    copy = node = orjson.loads(orjson.dumps(body))
    while node:
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], dict | list) and node[key] and chance.random() < 0.75:
            node = node[key]
            continue
        node[key] = anything(chance, 2)
        break
    return copy


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_an_internal_error(api, seed):
    chance = random.Random(seed)
    for number in range(60):
        kind = chance.choice(kinds.BUILT_IN)
        path = kind.resource.path("default" if kind.namespaced else "")
        name = "xs.e.com" if kind.name == "CustomResourceDefinition" else f"x{number}"
        body = damaged(chance, {"metadata": {"name": name}, **GOOD})
        made = await api.call("POST", path, body)
        assert made.status in (201, 400, 403, 404, 409, 422, 501), (path, body)
        media = f"application/{chance.choice(MEDIA)}"
        patch = damaged(chance, GOOD)
        query = {"fieldManager": "test"}
        answer = await api.call("PATCH", f"{path}/{name}", patch, media=media, params=query)
        assert answer.status < 500 or answer.status == 501, (path, media, body, patch)
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        assert (await api.call("GET", path, headers=accept)).status == 200, (path, body, patch)
        assert (await api.call("DELETE", f"{path}/{name}")).status in (200, 404, 501)
