"""What a node must be."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.apiserver.http import api_errors
from simulator.apiserver.registry import metadata_rules

Object = Mapping[str, Any]
Cause = api_errors.Cause


def problems(body: Object) -> list[Cause]:
    """Return what is wrong with a node."""
    spec = body.get("spec") or {}
    # A real API server names taints as if they were metadata, and so does this one.
    found = list(_taints(spec.get("taints") or (), "metadata.taints"))
    for index, block in enumerate(spec.get("podCIDRs") or ()):
        try:
            ipaddress.ip_network(block, strict=False)
        except ValueError:
            message = f'Invalid value: "{block}": must be a valid CIDR value'
            found.append(Cause(f"spec.podCIDRs[{index}]", message))
    return found


def update_problems(old: Object, new: Object) -> list[Cause]:
    """Return what an update of a node changes although it must not."""
    found = []
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before.get("podCIDRs") and before["podCIDRs"] != after.get("podCIDRs"):
        message = 'Forbidden: node updates may not change podCIDR except from "" to valid'
        found.append(Cause("spec.podCIDRs", message, "FieldValueForbidden"))
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        message = 'Forbidden: node updates may not change providerID except from "" to valid'
        found.append(Cause("spec.providerID", message, "FieldValueForbidden"))
    return found


def _taints(taints: Any, path: str) -> Iterator[Cause]:
    seen = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        for why in metadata_rules.qualified_name_problems(key):
            yield Cause(f"{here}.key", f'Invalid value: "{key}": {why}')
        if why := metadata_rules.label_value_problem(taint.get("value", "")):
            yield Cause(f"{here}.value", f'Invalid value: "{taint["value"]}": {why}')
        if not effect:
            yield Cause(f"{here}.effect", "Required value", "FieldValueRequired")
        if (key, effect) in seen:
            message = f'Duplicate value: "{key}:{effect}"'
            yield Cause(here, message, "FieldValueDuplicate")
        seen.add((key, effect))
