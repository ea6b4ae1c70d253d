"""What a pod spec must be, also that of a pod template."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from api.wire import quantity
from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import metadata_rules, placement_rules

Object = Mapping[str, Any]
Cause = api_errors.Cause

CONTAINERS = ("initContainers", "containers")
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_ENV = re.compile(r"[^=\x00-\x1f\x7f]+")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character"
)


def problems(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a pod spec."""
    if not spec.get("containers"):
        yield _required(f"{path}.containers")
    names: set[str] = set()
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    for field in CONTAINERS:
        for index, container in enumerate(spec.get(field) or ()):
            here = f"{path}.{field}[{index}]"
            yield from _container(container, here, names)
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    message = f'Not found: "{mount.get("name")}"'
                    place = f"{here}.volumeMounts[{number}].name"
                    yield Cause(place, message, "FieldValueNotFound")
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        message = (
            f'Unsupported value: "{spec.get("restartPolicy")}": '
            'supported values: "Always", "OnFailure", "Never"'
        )
        yield Cause(f"{path}.restartPolicy", message, "FieldValueNotSupported")
    yield from _figures(spec, path)
    yield from _placement(spec, path)
    yield from _volumes(spec.get("volumes") or (), f"{path}.volumes")


def gate_problems(spec: Object) -> Iterator[Cause]:
    """Yield what is wrong with the scheduling gates of a pod."""
    gates = spec.get("schedulingGates") or ()
    if gates and spec.get("nodeName"):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        yield Cause("spec.nodeName", message, "FieldValueForbidden")
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        here = f"spec.schedulingGates[{index}]"
        yield from (_invalid(here, name, w) for w in metadata_rules.qualified_name_problems(name))
        if name in seen:
            yield Cause(here, f'Duplicate value: "{name}"', "FieldValueDuplicate")
        seen.add(name)


def toleration_problems(tolerations: Any, path: str) -> Iterator[Cause]:
    """Yield what is wrong with tolerations."""
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key:
            yield from (_invalid(f"{here}.key", key, w) for w in _qualified(key))
        elif operator != "Exists":
            why = "operator must be Exists when `key` is empty, which means match all values"
            yield _invalid(f"{here}.operator", operator, why)
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield _invalid(f"{here}.effect", toleration.get("effect", ""), why)
        if operator == "Exists" and toleration.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            yield _invalid(f"{here}.operator", toleration["value"], why)
        elif why := metadata_rules.label_value_problem(toleration.get("value", "")):
            yield _invalid(f"{here}.value", toleration["value"], why)


def _container(container: Object, path: str, names: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield _required(f"{path}.name")
    elif not metadata_rules.is_label(name):
        yield _invalid(f"{path}.name", name, _LABEL_RULE)
    elif name in names:
        yield Cause(f"{path}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate")
    names.add(name)
    image = container.get("image", "")
    if not image.strip():
        yield _required(f"{path}.image")
    elif image != image.strip():
        yield _invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _ports_and_variables(container, path)
    yield from _resources(container.get("resources") or {}, f"{path}.resources")


def _ports_and_variables(container: Object, path: str) -> Iterator[Cause]:
    for index, port in enumerate(container.get("ports") or ()):
        number = port.get("containerPort", 0)
        if not 1 <= number <= 65535:
            place = f"{path}.ports[{index}].containerPort"
            yield (
                _required(place)
                if not number
                else _invalid(place, number, "must be between 1 and 65535, inclusive")
            )
    for index, variable in enumerate(container.get("env") or ()):
        given = variable.get("name", "")
        place = f"{path}.env[{index}].name"
        if not given:
            yield _required(place)
        elif not _ENV.fullmatch(given):
            yield _invalid(place, given, "a valid environment variable name must not contain '='")


def _resources(resources: Object, path: str) -> Iterator[Cause]:
    figures: dict[str, dict[str, int]] = {"requests": {}, "limits": {}}
    for side, amounts in figures.items():
        for name, value in (resources.get(side) or {}).items():
            here = f"{path}.{side}[{name}]"
            yield from _resource_name(name, here)
            # What is no quantity was refused when the body was read.
            amounts[name] = quantity.milli(value)
            if amounts[name] < 0:
                yield _invalid(here, value, "must be greater than or equal to 0")
            elif is_extended(name) and amounts[name] % 1000:
                yield _invalid(here, value, "must be an integer")
    for name, wanted in figures["requests"].items():
        shown = resources["requests"][name]
        limit = figures["limits"].get(name)
        if is_extended(name):
            if limit is None:
                message = "Required value: Limit must be set for non overcommitable resources"
                yield Cause(f"{path}.limits", message, "FieldValueRequired")
            elif limit != wanted:
                why = f"must be equal to {name} limit of {resources['limits'][name]}"
                yield _invalid(f"{path}.requests", shown, why)
        elif limit is not None and wanted > limit:
            why = f"must be less than or equal to {name} limit of {resources['limits'][name]}"
            yield _invalid(f"{path}.requests", shown, why)


def is_extended(name: str) -> bool:
    """Tell whether a resource cannot be overcommitted."""
    domain = name.partition("/")[0] if "/" in name else ""
    return bool(domain) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))


def _resource_name(name: str, path: str) -> Iterator[Cause]:
    wrong = _qualified(name)
    yield from (_invalid(path, name, why) for why in wrong)
    plain = "/" not in name and not name.startswith("hugepages-")
    if not wrong and plain and name not in _STANDARD:
        yield _invalid(path, name, "must be a standard resource for containers")


def _figures(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        value = spec["terminationGracePeriodSeconds"]
        why = "must be greater than or equal to 0"
        yield _invalid(f"{path}.terminationGracePeriodSeconds", value, why)
    if spec.get("activeDeadlineSeconds", 1) < 1:
        value, why = spec["activeDeadlineSeconds"], "must be between 1 and 2147483647, inclusive"
        yield _invalid(f"{path}.activeDeadlineSeconds", value, why)


def _placement(spec: Object, path: str) -> Iterator[Cause]:
    for field in ("nodeName", "serviceAccountName", "priorityClassName"):
        name = spec.get(field, "")
        if name and not api_errors.is_subdomain(name):
            yield _invalid(f"{path}.{field}", name, api_errors.SUBDOMAIN_RULE)
    hostname = spec.get("hostname", "")
    if hostname and not metadata_rules.is_label(hostname):
        yield _invalid(f"{path}.hostname", hostname, _LABEL_RULE)
    selector = spec.get("nodeSelector") or {}
    yield from metadata_rules.label_problems(selector, f"{path}.nodeSelector")
    yield from toleration_problems(spec.get("tolerations") or (), f"{path}.tolerations")
    yield from placement_rules.problems(spec, path)


def _volumes(volumes: Any, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        here = f"{path}[{index}]"
        if not name:
            yield _required(f"{here}.name")
        elif not metadata_rules.is_label(name):
            yield _invalid(f"{here}.name", name, _LABEL_RULE)
        elif name in seen:
            yield Cause(f"{here}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate")
        seen.add(name)
        if len(volume) > 2:
            message = "Forbidden: may not specify more than 1 volume type"
            yield Cause(here, message, "FieldValueForbidden")


def _qualified(name: str) -> list[str]:
    return metadata_rules.qualified_name_problems(name)


def _required(path: str) -> Cause:
    return Cause(path, "Required value", "FieldValueRequired")


def _invalid(path: str, value: Any, why: str) -> Cause:
    return Cause(path, f'Invalid value: "{value}": {why}')
