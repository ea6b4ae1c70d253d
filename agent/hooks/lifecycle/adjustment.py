"""What runtime hooks want of one pod or container: `adjust` asks them in order. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from agent.hooks.lifecycle import subject as subjects
from agent.model import edits

_R = TypeVar("_R")


class HookError(ValueError):
    """What a pod asks for and cannot have; the text names the annotation and what is wrong."""


class Value(msgspec.Struct, frozen=True):
    """A wanted value of one property of a cgroup or of its processes, as an edit has it."""

    text: str
    reason: str


class DeviceNode(msgspec.Struct, frozen=True):
    """A character device of the host that a container gets under the same path."""

    path: str
    major: int
    minor: int
    permissions: int = 0o666


class Adjustment(msgspec.Struct, frozen=True):
    """Values, variables, mounts and devices; empty where nothing is wanted."""

    values: Mapping[edits.Role, Value] = {}
    beside: tuple[edits.Edit, ...] = ()
    """What has to stand first outside of the cgroup, such as a resctrl group."""
    environment: Mapping[str, str] = {}
    mounts: Mapping[str, str] = {}
    """Folder or file of the host by the path inside the container; bind mounts."""
    devices: tuple[DeviceNode, ...] = ()
    problems: tuple[str, ...] = ()
    """What of the pod could not be honoured beside the values here."""

    def beside_of(self, other: "Adjustment") -> "Adjustment":
        """Return both; of two values for one thing, that of this one counts."""
        return Adjustment(
            {**other.values, **self.values},
            (*self.beside, *other.beside),
            {**other.environment, **self.environment},
            {**other.mounts, **self.mounts},
            (*self.devices, *(one for one in other.devices if one not in self.devices)),
        )


NOTHING = Adjustment()


class Problem(msgspec.Struct, frozen=True):
    """Why a hook did not give all of what a pod asks for."""

    hook: str
    text: str
    unexpected: Exception | None = None
    """What the hook met that it does not know; None for what is wrong with the pod."""


class Bound(msgspec.Struct, frozen=True):
    """A hook with its rule."""

    name: str
    adjust: Callable[[subjects.Subject], Adjustment]


class Hook(msgspec.Struct, Generic[_R], frozen=True):
    """One runtime hook: a pure function of a subject and of what the node says."""

    name: str
    """The name of its feature gate."""
    adjust: Callable[[subjects.Subject, _R], Adjustment]

    def bind(self, rule: _R) -> Bound:
        """Return the hook with a rule of this moment."""
        return Bound(self.name, lambda subject: self.adjust(subject, rule))


class Rules(msgspec.Struct, frozen=True):
    """The hooks of every stage with their rules, frozen for one tick."""

    stages: Mapping[subjects.Stage, tuple[Bound, ...]] = {}


def adjust(subject: subjects.Subject, rules: Rules) -> tuple[Adjustment, tuple[Problem, ...]]:
    """Ask the hooks of the subject's stage; one that fails keeps nothing from the others.

    Where two hooks want one property, the first one gets it.
    """
    found = NOTHING
    problems: tuple[Problem, ...] = ()
    for bound in rules.stages.get(subject.stage, ()):
        part, met = ask(bound, subject)
        problems += met
        if part is not NOTHING:
            found = part if found is NOTHING else found.beside_of(part)
    return found, problems


def ask(bound: Bound, subject: subjects.Subject) -> tuple[Adjustment, tuple[Problem, ...]]:
    """Ask one hook; what it raises is a problem."""
    try:
        part = bound.adjust(subject)
    except HookError as error:
        return NOTHING, (Problem(bound.name, str(error)),)
    except Exception as error:  # noqa: BLE001 - one hook and one pod stop no other
        text = f"{type(error).__name__}: {error}"[:_LONGEST]
        return NOTHING, (Problem(bound.name, text, error),)
    if not part.problems:
        return part, ()
    return part, tuple(Problem(bound.name, text) for text in part.problems)


_LONGEST = 200


def values(
    wanted: Mapping[edits.Role, int | None] | Iterable[tuple[edits.Role, int | None]], reason: str
) -> Adjustment:
    """Return an adjustment of numbers; what is unset is left out."""
    pairs = dict(wanted)
    return Adjustment(
        {role: Value(str(one), reason) for role, one in pairs.items() if one is not None}
    )
