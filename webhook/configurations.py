"""The two webhook configuration objects, built from the routes. Pure."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from webhook import registry, settings

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
# The label by which control planes mark their own namespaces.
CONTROL_PLANE = "control-plane"


def mutating(options: settings.Settings, bundle: bytes) -> dict[str, Any]:
    """Return the MutatingWebhookConfiguration."""
    return _document("MutatingWebhookConfiguration", options, bundle, mutating=True)


def validating(options: settings.Settings, bundle: bytes) -> dict[str, Any]:
    """Return the ValidatingWebhookConfiguration."""
    return _document("ValidatingWebhookConfiguration", options, bundle, mutating=False)


def _document(
    kind: str, options: settings.Settings, bundle: bytes, *, mutating: bool
) -> dict[str, Any]:
    routes = {path: r for path, r in registry.ROUTES.items() if r.mutating is mutating}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": options.registration.name},
        "webhooks": [_webhook(path, route, options, bundle) for path, route in routes.items()],
    }


def _webhook(
    path: str, route: registry.Route, options: settings.Settings, bundle: bytes
) -> dict[str, Any]:
    registration = options.registration
    webhook: dict[str, Any] = {
        "name": route.name,
        "clientConfig": {
            **_target(path, options),
            "caBundle": base64.b64encode(bundle).decode(),
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": list(route.operations),
                "resources": [route.resource],
                "scope": "Namespaced",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": registration.failure_policy,
        "matchPolicy": "Equivalent",
        "timeoutSeconds": registration.timeout_seconds,
        "namespaceSelector": _namespaces((*registration.excluded_namespaces, options.namespace)),
        "objectSelector": {},
    }
    if route.mutating:
        # Profiles append suffixes and draw lots, so applying them twice is not applying them once.
        webhook["reinvocationPolicy"] = "Never"
    return webhook


def _target(path: str, options: settings.Settings) -> Mapping[str, Any]:
    registration = options.registration
    if registration.url:
        return {"url": registration.url.rstrip("/") + path}
    service = {
        "namespace": options.namespace,
        "name": registration.service,
        "path": path,
        "port": 443,
    }
    return {"service": service}


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
