"""Objects that are good, and bytes that are no object of any kind."""

import copy
import json

POD = {
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ],
        "terminationGracePeriodSeconds": 0,
    }
}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i:1"}]},
}
SELECTOR = {"matchLabels": {"app": "x"}}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
CORE, APPS = "/api/v1", "/apis/apps/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# Plural: prefix, whether it is namespaced, kind, and the rest of a good object.
KINDS = {
    "pods": (CORE, True, "Pod", POD),
    "configmaps": (CORE, True, "ConfigMap", {"data": {"a": "1", "b": "2"}}),
    "secrets": (CORE, True, "Secret", {"data": {"a": "MQ=="}}),
    "serviceaccounts": (CORE, True, "ServiceAccount", {}),
    "events": (
        CORE,
        True,
        "Event",
        {"involvedObject": {"kind": "Pod"}, "reason": "R", "type": "Normal", "message": "m"},
    ),
    "nodes": (
        CORE,
        False,
        "Node",
        {"status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}},
    ),
    "namespaces": (CORE, False, "Namespace", {}),
    "deployments": (
        APPS,
        True,
        "Deployment",
        {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    ),
    "replicasets": (
        APPS,
        True,
        "ReplicaSet",
        {"spec": {"replicas": 2, "selector": SELECTOR, "template": TEMPLATE}},
    ),
    "poddisruptionbudgets": (
        "/apis/policy/v1",
        True,
        "PodDisruptionBudget",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ),
    "priorityclasses": ("/apis/scheduling.k8s.io/v1", False, "PriorityClass", {"value": 100}),
    "leases": (
        "/apis/coordination.k8s.io/v1",
        True,
        "Lease",
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    ),
    "roles": (RBAC, True, "Role", {"rules": [RULE]}),
    "clusterroles": (RBAC, False, "ClusterRole", {"rules": [RULE]}),
    "widgets": (
        "/apis/differential.koord.sh/v1",
        True,
        "Widget",
        {"spec": {"size": 1, "parts": [{"name": "a", "count": 1}], "tags": ["x"]}},
    ),
}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    },
}
WIDGET_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "parts": PARTS,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "words": {"type": "array", "items": {"type": "string"}},
        "free": ANYTHING,
    },
}
DEFINITION = {
    "metadata": {"name": "widgets.differential.koord.sh"},
    "spec": {
        "group": "differential.koord.sh",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": WIDGET_SPEC, "status": ANYTHING},
                    }
                },
            }
        ],
    },
}


def made(plural, name, **meta):
    """A good object."""
    prefix, _, kind, rest = KINDS[plural]
    parts = prefix.split("/")
    api_version = parts[2] if parts[1] == "api" else "/".join(parts[2:])
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}}
    return {**body, **copy.deepcopy(rest)}


def merged(body, patch):
    """A copy of an object with a JSON merge patch, in which null stays null."""
    if not isinstance(patch, dict) or not isinstance(body, dict):
        return copy.deepcopy(patch)
    result = dict(body)
    for key, value in patch.items():
        result[key] = merged(result.get(key), value) if key in result else copy.deepcopy(value)
    return result


# Bodies that are no object of any kind.
NONSENSE = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"1",
    b"{} trailing",
    json.dumps({"kind": "Nothing", "apiVersion": "v1"}).encode(),
    json.dumps({"kind": "Pod", "apiVersion": "v9"}).encode(),
    json.dumps({"metadata": None}).encode(),
)
