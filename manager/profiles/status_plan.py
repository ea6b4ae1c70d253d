"""The status of a ClusterColocationProfile: whether it is accepted, and what becomes of pods. Pure.

How many pods it has selected is not said: the figure would change, and be written, with every pod.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from api import resources
from api.koordinator import colocation
from api.wire import base
from domain import conditions
from domain.pods import profile_checks
from manager.reconcile import actions, outcomes

ACCEPTED: Final = "Accepted"
"""Whether admission can apply it."""
READY: Final = "Ready"
"""Whether admission lets in the pods that it selects."""
EFFECTIVE: Final = "Effective"
"""Whether what it sets holds."""
_TYPES: Final = (ACCEPTED, READY, EFFECTIVE)
_MOST_NAMED: Final = 5
_LONGEST: Final = 1000
_RESOURCE: Final = resources.COLOCATION_PROFILES


class ProfileObject(msgspec.Struct, frozen=True):
    """A profile as far as its status is concerned."""

    name: str
    uid: str
    generation: int | None
    profile: colocation.ClusterColocationProfile | None
    """None: it cannot be read."""
    fault: str = ""
    """Why it cannot."""
    conditions: Any = None
    """``status.conditions`` as they stand."""


def projected(raw: Mapping[str, Any]) -> ProfileObject:
    """Project a profile; what stands in its status does not keep it from being read."""
    metadata, status = raw["metadata"], raw.get("status")
    found = ProfileObject(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        generation=metadata.get("generation"),
        profile=None,
        conditions=status.get("conditions") if isinstance(status, Mapping) else None,
    )
    try:
        read = colocation.read_profile(raw)
    except base.ReadError as wrong:
        return msgspec.structs.replace(found, fault=str(wrong))
    return msgspec.structs.replace(found, profile=read)


def planned(
    found: ProfileObject,
    others: Iterable[ProfileObject],
    classes: profile_checks.Classes,
    now: float,
) -> actions.Plan:
    """Plan the status of a profile; nothing where it says already what is so."""
    judged = tuple(_judged(found, others, classes))
    about = (_RESOURCE, "", found.name, found.uid)
    told = tuple(outcomes.told(about, found.conditions, judged))
    said = conditions.merged(
        found.conditions, judged, now, types=_TYPES, generation=found.generation
    )
    bad = [one for one in judged if not one.holds]
    message = "; ".join(one.message for one in bad) or "is applied to the pods that it selects"
    if said is None:
        return actions.Plan(message, told)
    body = {"metadata": {"uid": found.uid}, "status": {"conditions": said}}
    return actions.Plan(message, (actions.PatchStatus(_RESOURCE, found.name, body), *told))


def _judged(
    found: ProfileObject, others: Iterable[ProfileObject], classes: profile_checks.Classes
) -> Iterator[outcomes.Condition]:
    profile = found.profile
    faults = [found.fault] if profile is None else list(profile_checks.faults(profile, classes))
    if profile is None or faults:
        yield outcomes.Condition(ACCEPTED, False, "ProfileInvalid", _listed(faults))
        return
    yield outcomes.Condition(
        ACCEPTED, True, "ProfileAccepted", "new pods that it selects are changed as it says"
    )
    yield _ready(profile, classes)
    yield _effective(profile, others)


def _ready(
    profile: colocation.ClusterColocationProfile, classes: profile_checks.Classes
) -> outcomes.Condition:
    if missing := profile_checks.missing_class(profile, classes):
        return outcomes.Condition(READY, False, "PriorityClassMissing", missing)
    if wrong := profile_checks.contradiction(profile, classes):
        return outcomes.Condition(READY, False, "ClassesContradict", wrong)
    note = "its priority class is there and fits its QoS class"
    return outcomes.Condition(READY, True, "PodsAdmitted", note)


def _effective(
    profile: colocation.ClusterColocationProfile, others: Iterable[ProfileObject]
) -> outcomes.Condition:
    if profile.percentage <= 0:
        note = profile_checks.chance(profile)
        return outcomes.Condition(EFFECTIVE, False, "ProfileWithoutEffect", note)
    readable = (one.profile for one in others if one.profile is not None)
    stronger = sorted(profile_checks.overridden(profile, readable))
    if not stronger:
        note = "no profile that comes later sets the same fields otherwise for all of its pods"
        return outcomes.Condition(EFFECTIVE, True, "ProfileEffective", note)
    listed = _listed([f"{field} to {value!r} ({name})" for field, value, name in stronger])
    note = (
        f"profiles that come later by name, and select all of its pods, set {listed}. "
        "Change a selector, or rename the profile that is to prevail"
    )
    return outcomes.Condition(EFFECTIVE, False, "ProfileOverridden", note[:_LONGEST])


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ("; ".join(texts[:_MOST_NAMED]) + more)[:_LONGEST]
