"""Defaults and checks of the built-in kinds."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from api import selectors
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import kinds, pods
from simulator.apiserver.storage import object_store

Object = dict[str, Any]

PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
SYSTEM_NAMESPACES = (*PROTECTED_NAMESPACES, "kube-node-lease")
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_ROUTINE = ("name", "namespace")


def prepared(kind: kinds.Kind, body: Object, *, new: bool) -> Object:
    """Return an object with the defaults of its kind; `new` starts its status."""
    filled = _DEFAULTS.get(kind.sort, _unchanged)(body)
    if not new:
        return filled
    if kind.sort == ("", "pods"):
        return {**filled, "status": pods.initial_status(filled)}
    if kind.sort == ("", "nodes"):
        # Unlike elsewhere, nodes may be registered with their status.
        return filled
    if kind.has_status and kind.sort != ("", "namespaces"):
        filled = {key: value for key, value in filled.items() if key != "status"}
    return filled


def problems(kind: kinds.Kind, old: Object | None, new: Object) -> list[api_errors.Cause]:
    """Return what is wrong with a new or changed object of a built-in kind."""
    found = _name_problems(kind, new) if old is None else _identity_problems(old, new)
    check = _CHECKS.get(kind.sort)
    if check is not None:
        found += check(new)
    if old is not None and kind.sort == ("", "pods"):
        found += pods.update_problems(old, new)
    return found


def seeded(store: object_store.Objects) -> None:
    """Create what every cluster starts with."""
    for name in SYSTEM_NAMESPACES:
        store.create(object_store.NAMESPACES, _namespace({"metadata": {"name": name}}))
    for name, value in SYSTEM_PRIORITIES.items():
        words = name.removeprefix("system-").removesuffix("-critical")
        store.create(
            object_store.Collection("scheduling.k8s.io", "priorityclasses"),
            {
                "metadata": {"name": name},
                "value": value,
                "description": f"Used for system critical pods that must run in the {words}.",
                "preemptionPolicy": "PreemptLowerPriority",
            },
        )


def _unchanged(body: Object) -> Object:
    return body


def _with_template(body: Object, **extra: Any) -> Object:
    spec = {**extra, **body.get("spec", {})}
    template = spec.get("template")
    if isinstance(template, Mapping):
        inner = pods.defaulted_spec(template.get("spec") or {})
        meta = {"creationTimestamp": None, **(template.get("metadata") or {})}
        spec["template"] = {**template, "metadata": meta, "spec": inner}
    return {**body, "spec": spec}


def _deployment(body: Object) -> Object:
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    return _with_template(
        body,
        replicas=1,
        revisionHistoryLimit=10,
        progressDeadlineSeconds=600,
        strategy={"type": "RollingUpdate", "rollingUpdate": rolling},
    )


def _replica_set(body: Object) -> Object:
    return _with_template(body, replicas=1)


def _job(body: Object) -> Object:
    return _with_template(
        body,
        parallelism=1,
        completions=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
    )


def _namespace(body: Object) -> Object:
    meta = body["metadata"]
    labels = {**(meta.get("labels") or {})}
    if meta.get("name"):
        labels["kubernetes.io/metadata.name"] = meta["name"]
    return {
        **body,
        "metadata": {**meta, "labels": labels},
        "spec": {"finalizers": ["kubernetes"], **(body.get("spec") or {})},
        "status": {"phase": "Active", **(body.get("status") or {})},
    }


def _service(body: Object) -> Object:
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **(body.get("spec") or {})}
    if isinstance(spec.get("ports"), list):
        spec["ports"] = [
            {"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec["ports"]
        ]
    return {**body, "spec": spec}


def _secret(body: Object) -> Object:
    plain = body.get("stringData") or {}
    data = {**(body.get("data") or {})}
    data |= {key: base64.b64encode(str(text).encode()).decode() for key, text in plain.items()}
    rest = {key: value for key, value in body.items() if key not in ("stringData", "data")}
    return {"type": "Opaque", **rest, **({"data": data} if data else {})}


def _priority_class(body: Object) -> Object:
    return {"value": 0, "preemptionPolicy": "PreemptLowerPriority", **body}


def _node(body: Object) -> Object:
    status = {**(body.get("status") or {})}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
    return {**body, "spec": body.get("spec") or {}, **({"status": status} if status else {})}


def _webhooks(body: Object) -> Object:
    base = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    }
    hooks = [{**base, **hook} for hook in body.get("webhooks") or ()]
    for hook in hooks:
        hook["rules"] = [{"scope": "*", **rule} for rule in hook.get("rules") or ()]
    return {**body, "webhooks": hooks}


def _mutating(body: Object) -> Object:
    filled = _webhooks(body)
    hooks = [{"reinvocationPolicy": "Never", **hook} for hook in filled["webhooks"]]
    return {**filled, "webhooks": hooks}


_DEFAULTS: Mapping[tuple[str, str], Callable[[Object], Object]] = {
    ("", "pods"): pods.defaulted,
    ("", "nodes"): _node,
    ("", "namespaces"): _namespace,
    ("", "services"): _service,
    ("", "secrets"): _secret,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("batch", "jobs"): _job,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _mutating,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _webhooks,
}


def _name_problems(kind: kinds.Kind, new: Object) -> list[api_errors.Cause]:
    meta = new["metadata"]
    # A generated name is made when the object is stored; its prefix decides whether it is valid.
    name = meta.get("name", "") or (meta.get("generateName", "") and f"{meta['generateName']}x")
    if not name:
        message = "Required value: name or generateName is required"
        return [api_errors.Cause("metadata.name", message, "FieldValueRequired")]
    if kind.group == "rbac.authorization.k8s.io" or api_errors.is_subdomain(name):
        return []
    message = f'Invalid value: "{name}": {api_errors.SUBDOMAIN_RULE}'
    return [api_errors.Cause("metadata.name", message)]


def _identity_problems(old: Object, new: Object) -> list[api_errors.Cause]:
    found = []
    for field in _ROUTINE:
        before, after = old["metadata"].get(field, ""), new["metadata"].get(field, "")
        if before != after:
            message = f'Invalid value: "{after}": field is immutable'
            found.append(api_errors.Cause(f"metadata.{field}", message))
    return found


def _workload_problems(body: Object) -> list[api_errors.Cause]:
    found = pods.template_problems(body)
    spec = body.get("spec", {})
    labels = (spec.get("template", {}).get("metadata") or {}).get("labels") or {}
    if not spec.get("selector"):
        found.append(api_errors.Cause("spec.selector", "Required value", "FieldValueRequired"))
    elif not selectors.matches(spec["selector"], labels):
        message = f"Invalid value: {labels}: `selector` does not match template `labels`"
        found.append(api_errors.Cause("spec.template.metadata.labels", message))
    return found


def _job_problems(body: Object) -> list[api_errors.Cause]:
    policy = body["spec"].get("template", {}).get("spec", {}).get("restartPolicy")
    found = pods.template_problems(body)
    if policy == "Always":
        message = 'Unsupported value: "Always": supported values: "OnFailure", "Never"'
        field = "spec.template.spec.restartPolicy"
        found.append(api_errors.Cause(field, message, "FieldValueNotSupported"))
    return found


def _text_problems(body: Object) -> list[api_errors.Cause]:
    return [
        api_errors.Cause(f"data.{key}", f"Invalid value: {value}: must be a string; quote it")
        for key, value in (body.get("data") or {}).items()
        if not isinstance(value, str)
    ]


def _budget_problems(body: Object) -> list[api_errors.Cause]:
    spec = body.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        message = "Invalid value: minAvailable and maxUnavailable cannot be both set"
        return [api_errors.Cause("spec", message)]
    return [
        api_errors.Cause(f"spec.{field}", f"Invalid value: {spec[field]}: {_AMOUNT_RULE}")
        for field in ("minAvailable", "maxUnavailable")
        if field in spec and not _is_amount(spec[field])
    ]


_AMOUNT_RULE = "must be a whole number of pods, or a percentage such as 50%"


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return value.endswith("%") and value[:-1].isdecimal()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _priority_problems(body: Object) -> list[api_errors.Cause]:
    name, value = body["metadata"].get("name", ""), body["value"]
    if not isinstance(value, int) or isinstance(value, bool):
        return [api_errors.Cause("value", f"Invalid value: {value}: must be an integer")]
    if name.startswith("system-") and SYSTEM_PRIORITIES.get(name) != value:
        message = f'Forbidden: "{name}" is not a known system priority class'
        return [api_errors.Cause("metadata.name", message, "FieldValueForbidden")]
    if value > 1_000_000_000 and name not in SYSTEM_PRIORITIES:
        message = "Forbidden: maximum allowed value of a user defined priority is 1000000000"
        return [api_errors.Cause("value", message, "FieldValueForbidden")]
    return []


_CHECKS: Mapping[tuple[str, str], Callable[[Object], list[api_errors.Cause]]] = {
    ("", "pods"): pods.problems,
    ("", "configmaps"): _text_problems,
    ("", "secrets"): _text_problems,
    ("apps", "deployments"): _workload_problems,
    ("apps", "replicasets"): _workload_problems,
    ("batch", "jobs"): _job_problems,
    ("policy", "poddisruptionbudgets"): _budget_problems,
    ("scheduling.k8s.io", "priorityclasses"): _priority_problems,
}
