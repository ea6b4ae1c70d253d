"""Defaults and checks of the built-in kinds."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import (
    kinds,
    metadata_rules,
    node_rules,
    placement_rules,
    pods,
    workload_rules,
)
from simulator.apiserver.storage import object_store

Object = dict[str, Any]

PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
SYSTEM_NAMESPACES = (*PROTECTED_NAMESPACES, "kube-node-lease")
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_BUDGET_FIGURES = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


def defaulted(kind: kinds.Kind, body: Object) -> Object:
    """Return an object with the defaults of its kind."""
    return _DEFAULTS.get(kind.sort, _unchanged)(body)


def begun(kind: kinds.Kind, filled: Object) -> Object:
    """Return a new object with what the server itself writes at the beginning."""
    if kind.sort == ("", "pods"):
        return {**filled, "status": pods.initial_status(filled)}
    if kind.sort == ("", "nodes"):
        # Unlike elsewhere, nodes may be registered with their status.
        return filled
    if kind.sort == ("", "namespaces"):
        finalizers = {"finalizers": ["kubernetes"], **(filled.get("spec") or {})}
        return {**filled, "spec": finalizers, "status": {"phase": "Active"}}
    if kind.sort == ("policy", "poddisruptionbudgets"):
        return {**filled, "status": dict.fromkeys(_BUDGET_FIGURES, 0)}
    if kind.has_status:
        filled = {key: value for key, value in filled.items() if key != "status"}
    return filled


def carried(kind: kinds.Kind, old: Object, new: Object, *, status: bool) -> Object:
    """Return a changed object with what only other writes may change."""
    if status and kind.sort == ("apps", "deployments"):
        meta = {**new["metadata"], "labels": old["metadata"].get("labels")}
        return {**new, "metadata": {k: v for k, v in meta.items() if v is not None}}
    if kind.sort != ("", "namespaces"):
        return new
    return {**new, "spec": old.get("spec", {})}


def problems(kind: kinds.Kind, old: Object | None, new: Object) -> list[api_errors.Cause]:
    """Return what is wrong with a new or changed object of a built-in kind."""
    found = metadata_rules.problems(kind, old, new)
    check = _CHECKS.get(kind.sort)
    if check is not None:
        found += check(new)
    if old is not None and kind.sort in _UPDATE_CHECKS:
        found += _UPDATE_CHECKS[kind.sort](old, new)
    return found


def seeded(store: object_store.Objects) -> None:
    """Create what every cluster starts with."""
    for name in SYSTEM_NAMESPACES:
        body = _namespace({"metadata": {"name": name}})
        status = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        store.create(object_store.NAMESPACES, {**body, **status})
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
        spec["template"] = {**template, "spec": inner}
    return {**body, "spec": spec}


def _deployment(body: Object) -> Object:
    strategy = {"type": "RollingUpdate", **(body.get("spec", {}).get("strategy") or {})}
    if strategy["type"] == "RollingUpdate":
        given = strategy.get("rollingUpdate") or {}
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **given}
    body = {**body, "spec": {**body.get("spec", {}), "strategy": strategy}}
    return _with_template(body, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)


def _replica_set(body: Object) -> Object:
    return _with_template(body, replicas=1)


def _job(body: Object) -> Object:
    # With pods in parallel and no number of completions, the pods share a queue of work.
    counts = {} if (body.get("spec") or {}).get("parallelism") is not None else {"completions": 1}
    return _with_template(
        body,
        **counts,
        parallelism=1,
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


def _job_problems(body: Object) -> list[api_errors.Cause]:
    policy = body["spec"].get("template", {}).get("spec", {}).get("restartPolicy")
    found = pods.template_problems(body)
    if policy == "Always":
        message = 'Unsupported value: "Always": supported values: "OnFailure", "Never"'
        field = "spec.template.spec.restartPolicy"
        found.append(api_errors.Cause(field, message, "FieldValueNotSupported"))
    return found


def _data_problems(body: Object) -> list[api_errors.Cause]:
    found = []
    for field in ("data", "binaryData"):
        for key in body.get(field) or {}:
            if not _DATA_KEY.fullmatch(key) or len(key) > 253 or key in (".", ".."):
                found.append(
                    api_errors.Cause(f"{field}[{key}]", f'Invalid value: "{key}": {_KEY_RULE}')
                )
            elif field == "binaryData" and key in (body.get("data") or {}):
                message = f'Invalid value: "{key}": duplicate of key present in data'
                found.append(api_errors.Cause(f"data[{key}]", message))
    size = sum(len(v) for f in ("data", "binaryData") for v in (body.get(f) or {}).values())
    if size > _MAX_DATA:
        message = f"Too long: may not be more than {_MAX_DATA} bytes"
        found.append(api_errors.Cause("", message, "FieldValueTooLong"))
    return found


_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_DATA = 1024 * 1024
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
# What a secret of a type must hold.
_SECRET_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _secret_problems(body: Object) -> list[api_errors.Cause]:
    found = _data_problems(body)
    sort, data = body.get("type", ""), body.get("data") or {}
    for key in _SECRET_KEYS.get(sort, ()):
        if key not in data:
            found.append(api_errors.Cause(f"data[{key}]", "Required value", "FieldValueRequired"))
    if sort == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        for key in ("username", "password"):
            found.append(api_errors.Cause(f"data[{key}]", "Required value", "FieldValueRequired"))
    return found


def _immutable_problems(old: Object, new: Object) -> list[api_errors.Cause]:
    """What was declared immutable stays as it is, and immutable."""
    found = []
    if old.get("immutable"):
        rule = "Forbidden: field is immutable when `immutable` is set"
        changed = [
            field
            for field in ("data", "binaryData")
            if (old.get(field) or {}) != (new.get(field) or {})
        ]
        if not new.get("immutable"):
            changed.insert(0, "immutable")
        found = [api_errors.Cause(field, rule, "FieldValueForbidden") for field in changed]
    if old.get("type", "") != new.get("type", ""):
        message = f'Invalid value: "{new.get("type", "")}": field is immutable'
        found.append(api_errors.Cause("type", message))
    return found


def _rule_problems(body: Object) -> list[api_errors.Cause]:
    namespaced = body.get("kind") == "Role" or "namespace" in body["metadata"]
    found = []
    for index, rule in enumerate(body.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            message = "Required value: verbs must contain at least one value"
            found.append(api_errors.Cause(f"{path}.verbs", message, "FieldValueRequired"))
        urls = rule.get("nonResourceURLs")
        if urls and namespaced:
            message = "Invalid value: namespaced rules cannot apply to non-resource URLs"
            found.append(api_errors.Cause(f"{path}.nonResourceURLs", message))
        elif urls:
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                message = "Invalid value: rules cannot apply to both regular resources and "
                message += "non-resource URLs"
                found.append(api_errors.Cause(f"{path}.nonResourceURLs", message))
            continue
        if urls:
            continue
        for field, title in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(field):
                message = f"Required value: resource rules must supply at least one {title}"
                found.append(api_errors.Cause(f"{path}.{field}", message, "FieldValueRequired"))
    return found


def _event_problems(body: Object) -> list[api_errors.Cause]:
    # Each of both groups has a name of its own for it.
    involved = body.get("involvedObject") or body.get("regarding") or {}
    namespace, own = involved.get("namespace", ""), body["metadata"].get("namespace", "")
    if namespace == own or (not namespace and own == "default"):
        return []
    message = f'Invalid value: "{namespace}": does not match event.namespace'
    return [api_errors.Cause("involvedObject.namespace", message)]


def _lease_problems(body: Object) -> list[api_errors.Cause]:
    spec = body.get("spec") or {}
    found = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        message = f"Invalid value: {spec['leaseDurationSeconds']}: must be greater than 0"
        found.append(api_errors.Cause("spec.leaseDurationSeconds", message))
    if spec.get("leaseTransitions", 0) < 0:
        message = f"Invalid value: {spec['leaseTransitions']}: must be greater than or equal to 0"
        found.append(api_errors.Cause("spec.leaseTransitions", message))
    return found


def _budget_problems(body: Object) -> list[api_errors.Cause]:
    spec = body.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        message = "Invalid value: minAvailable and maxUnavailable cannot be both set"
        return [api_errors.Cause("spec", message)]
    found = placement_rules.selector_problems(spec.get("selector") or {}, "spec.selector")
    return found + [
        api_errors.Cause(f"spec.{field}", f"Invalid value: {spec[field]}: {_AMOUNT_RULE}")
        for field in ("minAvailable", "maxUnavailable")
        if field in spec and not _is_amount(spec[field])
    ]


_AMOUNT_RULE = "must be a whole number of pods, or a percentage such as 50%"


def _is_amount(value: Any) -> bool:
    if isinstance(value, str):
        return value.endswith("%") and value[:-1].isdecimal() and int(value[:-1]) <= 100
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


def _priority_update_problems(old: Object, new: Object) -> list[api_errors.Cause]:
    return [
        api_errors.Cause(
            field, f"Forbidden: {field} may not be changed in an update", "FieldValueForbidden"
        )
        for field in ("value", "preemptionPolicy")
        if old.get(field) != new.get(field)
    ]


_CHECKS: Mapping[tuple[str, str], Callable[[Object], list[api_errors.Cause]]] = {
    ("", "pods"): pods.problems,
    ("", "configmaps"): _data_problems,
    ("", "secrets"): _secret_problems,
    ("", "events"): _event_problems,
    ("coordination.k8s.io", "leases"): _lease_problems,
    ("rbac.authorization.k8s.io", "roles"): _rule_problems,
    ("rbac.authorization.k8s.io", "clusterroles"): _rule_problems,
    ("apps", "deployments"): workload_rules.deployment_problems,
    ("apps", "replicasets"): workload_rules.problems,
    ("", "nodes"): node_rules.problems,
    ("batch", "jobs"): _job_problems,
    ("policy", "poddisruptionbudgets"): _budget_problems,
    ("scheduling.k8s.io", "priorityclasses"): _priority_problems,
}

_UPDATE_CHECKS: Mapping[tuple[str, str], Callable[[Object, Object], list[api_errors.Cause]]] = {
    ("", "pods"): pods.update_problems,
    ("", "nodes"): node_rules.update_problems,
    ("apps", "deployments"): workload_rules.update_problems,
    ("apps", "replicasets"): workload_rules.update_problems,
    ("scheduling.k8s.io", "priorityclasses"): _priority_update_problems,
    ("", "configmaps"): _immutable_problems,
    ("", "secrets"): _immutable_problems,
}
