"""The two webhook configuration objects, built from the routes. Pure."""

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from api import resources
from webhook import gates, registry, settings

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
# The label by which control planes mark their own namespaces.
CONTROL_PLANE = "control-plane"


def document(
    kind: str,
    options: settings.RegistrationSettings,
    namespace: str,
    bundle: bytes,
    on: Collection[str] = gates.ON,
) -> dict[str, Any]:
    """Return the configuration object of one of the two kinds; `on` names the gates that are."""
    mutating = kind.startswith("Mutating")
    routes = {
        path: route
        for path, route in registry.ROUTES.items()
        if route.mutating is mutating and (not route.gate or route.gate in on)
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": options.name},
        "webhooks": [
            _webhook(path, route, options, namespace, bundle) for path, route in routes.items()
        ],
    }


def without_rules(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose webhooks are kept true but never called."""
    entries = [
        {field: value for field, value in entry.items() if field != "rules"}
        for entry in document["webhooks"]
    ]
    return {**document, "webhooks": entries}


def _webhook(
    path: str,
    route: registry.Route,
    options: settings.RegistrationSettings,
    namespace: str,
    bundle: bytes,
) -> dict[str, Any]:
    webhook: dict[str, Any] = {
        "name": route.name,
        "clientConfig": {
            **_target(path, options, namespace),
            "caBundle": base64.b64encode(bundle).decode(),
        },
        "rules": [_rule(route, resource) for resource in route.kinds],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun" if route.writes else "None",
        # Our own settings must not depend on whether we answer.
        "failurePolicy": "Ignore" if route.home or route.everywhere else options.failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": share(options.timeout_seconds, mutating=route.mutating),
        "namespaceSelector": _selector(route, options, namespace),
        "objectSelector": {},
    }
    if route.condition:
        webhook["matchConditions"] = [{"name": "condition", "expression": route.condition}]
    if route.mutating:
        # What other webhooks add after us, such as a sidecar, is looked at as well.
        webhook["reinvocationPolicy"] = "IfNeeded"
    return webhook


def _rule(route: registry.Route, resource: resources.Resource) -> dict[str, Any]:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": list(route.operations),
        "resources": _parts(route, resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def resources_of(route: registry.Route) -> list[str]:
    """Return the resources that a route is asked about, each with its group."""
    return [f"{one.group}/{part}" for one in route.kinds for part in _parts(route, one)]


def _parts(route: registry.Route, resource: resources.Resource) -> list[str]:
    return [f"{resource.plural}/{part}" if part else resource.plural for part in route.subresources]


def share(seconds: int, *, mutating: bool) -> int:
    """Divide the time for one pod between the two webhooks that it waits for, one after the other.

    The one that changes pods gets two thirds: what it does not do cannot be repaired later.
    """
    validating = seconds // 3
    return max(1, seconds - validating if mutating else validating)


def _target(path: str, options: settings.RegistrationSettings, namespace: str) -> Mapping[str, Any]:
    if options.url:
        return {"url": options.url.rstrip("/") + path}
    service = {"namespace": namespace, "name": options.service, "path": path, "port": 443}
    return {"service": service}


def _selector(
    route: registry.Route, options: settings.RegistrationSettings, namespace: str
) -> Mapping[str, Any]:
    if route.home:
        return _only(namespace)
    if route.everywhere:
        return {}
    return _namespaces((*options.excluded_namespaces, namespace))


def _only(namespace: str) -> Mapping[str, Any]:
    return {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "In", "values": [namespace]}]}


def _namespaces(excluded: Sequence[str]) -> Mapping[str, Any]:
    return {
        "matchExpressions": [
            {
                "key": NAMESPACE_LABEL,
                "operator": "NotIn",
                "values": sorted(dict.fromkeys(excluded)),
            },
            {"key": CONTROL_PLANE, "operator": "DoesNotExist"},
        ]
    }
