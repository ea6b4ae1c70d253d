"""Custom resources of which there is one per node: what is there, and how to bring it about.

The object of a node is made with the node and set field by field. What a person has set stays
theirs. Only what this process made goes when the node goes; an object under the name of no node
was made by hand, is left alone and told that it has no effect.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names, resources
from domain import conditions, field_ownership
from manager.reconcile import actions

EFFECTIVE: Final = "Effective"
"""The condition that says whether an object made by hand has a node to act on."""
NO_SUCH_NODE: Final = "NoSuchNode"
FIELDS_LEFT: Final = "FieldsLeftToOwner"


class Present(msgspec.Struct, frozen=True, gc=False):
    """An object as it stands, without what the agent reports in its status."""

    name: str
    uid: str
    made_by_us: bool
    spec: dict[str, Any]
    ours: frozenset[field_ownership.Path]
    foreign: frozenset[field_ownership.Path]
    effective: str = ""
    """Status of the condition of that name."""
    conditions: tuple[Any, ...] = ()
    """All conditions of an object that another client made; on our own there is none of ours."""
    version: str = ""
    """The resource version at which it was seen last, where a controller asks for it."""


def present(raw: Mapping[str, Any]) -> Present:
    """Project an object of either kind."""
    metadata = raw.get("metadata") or {}
    managed = metadata.get("managedFields")
    made_by_us = (metadata.get("labels") or {}).get(
        names.LABEL_CREATED_BY
    ) == field_ownership.MANAGER
    said = (raw.get("status") or {}).get("conditions") or ()
    return Present(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        made_by_us=made_by_us,
        spec=raw.get("spec") or {},
        ours=field_ownership.owned(managed, field_ownership.is_ours),
        foreign=field_ownership.owned(managed, lambda one: not field_ownership.is_ours(one)),
        effective=next((str(c.get("status")) for c in said if c.get("type") == EFFECTIVE), ""),
        conditions=() if made_by_us else tuple(said),
    )


def at_version(there: Present | None, version: int) -> Present | None:
    """Return an object with the resource version that its store knows; 0 is unknown."""
    if there is None or not version:
        return there
    return msgspec.structs.replace(there, version=str(version))


def planned(
    resource: resources.Resource,
    name: str,
    there: Present | None,
    wanted: Mapping[str, Any],
    stated: frozenset[field_ownership.Path] = frozenset(),
) -> actions.Plan:
    """Plan the object of an existing node; ``stated`` paths are said by a person in other words."""
    kind = resource.kind
    if there is None:
        why = f"{kind} made for the node"
        fields = field_ownership.without(wanted, frozenset())
        return actions.Plan(why, (_apply(resource, name, fields, made_by_us=True),))
    fields = field_ownership.without(wanted, there.foreign | stated)
    left = _left(wanted, fields, there.spec)
    steps: list[actions.Step] = []
    message = f"{kind} is as it should be"
    if field_ownership.differs(fields, there.spec, there.ours):
        message = f"{kind} updated"
        steps.append(_apply(resource, name, fields, made_by_us=there.made_by_us))
    if left:
        note = f"left as another client has set it: {', '.join(left)}"
        message = f"{message}; {note}"
        steps.append(actions.Tell(resource, name, there.uid, FIELDS_LEFT, note))
    # The status first: its write is guarded by a version, which writing the spec would move.
    return actions.Plan(message, (*welcomed(resource, name, there), *steps))


def welcomed(
    resource: resources.Resource, name: str, there: Present
) -> tuple[actions.SetCondition, ...]:
    """Plan to take back that an object has no effect, now that its node exists."""
    if there.effective != "False":
        return ()
    said = conditions.Condition(EFFECTIVE, True, "NodeExists", f"node {name} exists")
    return (_condition(resource, name, there, said),)


def _left(
    wanted: Mapping[str, Any], fields: Mapping[str, Any], present: Mapping[str, Any]
) -> list[str]:
    taken, there = dict(field_ownership.leaves(fields)), dict(field_ownership.leaves(present))
    return sorted(
        ".".join(path)
        for path, value in field_ownership.leaves(wanted)
        if value != {} and path not in taken and there.get(path) != value
    )


def orphaned(resource: resources.Resource, name: str, there: Present | None) -> actions.Plan:
    """Plan the object of a node that does not exist."""
    if there is None:
        return actions.Plan(f"no node and no {resource.kind}")
    if there.made_by_us:
        why = f"{resource.kind} removed with its node"
        return actions.Plan(why, (actions.Delete(resource, name, there.uid),))
    note = f"there is no node {name}, so this {resource.kind} has no effect"
    if there.effective == "False":
        return actions.Plan(note)
    told = actions.Tell(resource, name, there.uid, NO_SUCH_NODE, note, warning=True)
    said = conditions.Condition(EFFECTIVE, False, NO_SUCH_NODE, note)
    return actions.Plan(note, (_condition(resource, name, there, said), told))


def _condition(
    resource: resources.Resource,
    name: str,
    there: Present,
    said: conditions.Condition[str],
) -> actions.SetCondition:
    return actions.SetCondition(resource, name, said, there.conditions, there.version)


def _apply(
    resource: resources.Resource,
    name: str,
    spec: Mapping[str, Any],
    *,
    made_by_us: bool,
) -> actions.Apply:
    metadata: dict[str, Any] = {"name": name}
    if made_by_us:
        metadata["labels"] = {names.LABEL_CREATED_BY: field_ownership.MANAGER}
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": dict(spec),
    }
    return actions.Apply(resource, name, body)
