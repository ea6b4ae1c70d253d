"""Review in, Decision out: the vocabulary of every admission rule."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from api import admission, colocation

JSON = Any
Pod = Mapping[str, JSON]

BAD_REQUEST = 400
FORBIDDEN = 403
FAILED = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Review:
    """One admission request, as far as rules look at it."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    namespace: str
    object: Pod
    old: Pod | None = None
    name: str = ""
    user: str = ""
    """Name of whoever asks."""
    dry_run: bool = False
    """Whether the object is tried only and will not be stored."""


def of(asked: admission.Request) -> Review:
    """Return the question that a request puts to rules."""
    body = asked.object or {}
    metadata = section(body, "metadata")
    namespace = asked.namespace or metadata.get("namespace")
    return Review(
        asked.operation,
        namespace if isinstance(namespace, str) else "",
        body,
        asked.old_object,
        name=asked.name,
        user=asked.user_info.username,
        dry_run=bool(asked.dry_run),
    )


def section(body: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    """Return a nested object, an empty one where it is missing or none."""
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


@dataclasses.dataclass(frozen=True, slots=True)
class PriorityClass:
    """What a profile copies from a PriorityClass."""

    name: str
    value: int
    preemption_policy: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """The part of the cluster that admission decides on; nobody changes it while a rule looks."""

    profiles: Sequence[colocation.ClusterColocationProfile]
    namespaces: Mapping[str, Mapping[str, str]]
    """Namespace name to its labels."""
    priority_classes: Mapping[str, PriorityClass]
    draw: Callable[[str], int]
    """A number in [0, 100) for the profile of this name; a random source is the caller's."""
    gates: frozenset[str] = frozenset()
    """The feature gates that are on."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What a mutating rule made of the object."""

    object: Pod
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: one of a fixed set of groups and a sentence per fault."""

    group: str
    reasons: tuple[str, ...]
    code: int = BAD_REQUEST

    @property
    def message(self) -> str:
        """One sentence for the person who sees the answer."""
        if len(self.reasons) == 1:
            return self.reasons[0]
        return f"[{', '.join(self.reasons)}]"


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one review."""

    refusal: Refusal | None = None
    object: Pod | None = None
    """The object to store instead of the one sent; None leaves it as it is."""
    warnings: tuple[str, ...] = ()


Mutation = Callable[[Review, Picture], "Change | Refusal"]
Check = Callable[[Review, Picture], Refusal | None]
