"""PriorityClasses of stand-ins: the priority of a Reservation, without its right to preempt. Pure.

Admission derives priority and preemption policy of a pod from its class and refuses what differs,
so a stand-in that must not preempt has a class of its own, with the same value.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from api import names, resources
from manager.reservations import objects

HIGHEST: Final = 1_000_000_000
"""The highest value of a class that is not Kubernetes' own; of a Reservation that names none."""
_LOWEST: Final = -(1 << 31)
PREFIX: Final = "koord-reservation-"


class Class(NamedTuple):
    """What is kept of a PriorityClass."""

    value: int


def priority_class(raw: Mapping[str, Any]) -> Class:
    """Project a PriorityClass."""
    value = raw.get("value", 0)
    return Class(value if isinstance(value, int) else 0)


class Priority(NamedTuple):
    """The priority of a stand-in."""

    value: int
    preempts: bool

    @property
    def name(self) -> str:
        """Return the name of its class."""
        sign = "minus-" if self.value < 0 else ""
        ends = "-preempting" if self.preempts else ""
        return f"{PREFIX}{sign}{abs(self.value)}{ends}"

    def body(self) -> dict[str, Any]:
        """Return its class."""
        kind = resources.PRIORITY_CLASSES
        policy = "PreemptLowerPriority" if self.preempts else "Never"
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": self.name,
                "labels": {**names.INSTALLED, names.LABEL_CREATED_BY: "koord-manager"},
            },
            "value": self.value,
            "globalDefault": False,
            "preemptionPolicy": policy,
            "description": "Pods that stand in for Reservations until those have a node.",
        }


def of(
    found: objects.ReservationObject, classes: Mapping[str, int], *, preempts: bool
) -> Priority | str:
    """Return the priority of a Reservation, or why it has none.

    The template's value counts first, then its class, then the label, else the highest one.
    """
    spec = found.template.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    value, named = spec.get("priority"), spec.get("priorityClassName")
    if value is None and named:
        value = classes.get(str(named))
        if value is None:
            return f"spec.template.spec.priorityClassName: there is no PriorityClass {named}"
    if value is None:
        value = _labelled(found.labels.get(names.LABEL_PRIORITY, ""))
    if not isinstance(value, int):
        value = HIGHEST
    return Priority(max(_LOWEST, min(value, HIGHEST)), preempts)


def _labelled(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    return int(text)
