"""Which reservations a pod may use: owners, reservation affinity, taints and exact match."""

import enum
from collections.abc import Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator.metadata import annotations, payloads
from api.kubernetes import core, selectors
from domain.pods import resources
from domain.reservations import model, owners
from domain.scoring import terms

_UNSCHEDULABLE: Final = core.Taint(key=names.TAINT_UNSCHEDULABLE, effect="NoSchedule")


class Match(enum.Enum):
    """Whether a pod may use a reservation, and why not."""

    MATCHED = "Reservation(s) matched"
    NOT_OWNED = "Reservation(s) didn't match the owners"
    TAKEN = "Reservation(s) is used up by its only owner"
    WAITING = "Reservation(s) waits for pods that run in its place"
    OTHER_NAME = "Reservation(s) didn't match the requested reservation name"
    CLOSED = "Reservation(s) is unschedulable"
    TAINTED = "Reservation(s) had untolerated taint"
    AFFINITY = "Reservation(s) didn't match affinity rules"
    NOT_EXACT = "Reservation(s) is not exact matched"


class Affinity(msgspec.Struct, frozen=True):
    """The annotation with a pod's reservation affinity: it may use no other capacity."""

    name: str = ""
    """The only reservation that it may use; taints and selectors do not count then."""
    selector: tuple[terms.Requirement, ...] = ()
    required: tuple[terms.NodeTerm, ...] | None = None
    tolerations: tuple[core.Toleration, ...] = ()

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether selector and terms select a reservation of this name with these labels."""
        if not all(one.matches(labels) for one in self.selector):
            return False
        return self.required is None or any(term.matches(name, labels) for term in self.required)


class Wishes(msgspec.Struct, frozen=True):
    """What a pod says about reservations."""

    affinity: Affinity | None = None
    exact: tuple[str, ...] = ()
    """Resources whose request has to equal what is reserved."""
    ignores: bool = False
    """Whether it may use what reservations keep, without becoming an owner."""


class Asking(msgspec.Struct, frozen=True):
    """A pod that is being placed."""

    pod: owners.Pod
    requests: resources.Amounts
    wishes: Wishes = Wishes()


def wishes(labels: Mapping[str, str], notes: Mapping[str, str]) -> Wishes:
    """Read what a pod says about reservations; `base.ReadError` names what cannot be read."""
    exact = annotations.EXACT_MATCH_RESERVATION.read(notes)
    written = annotations.RESERVATION_AFFINITY.read(notes)
    return Wishes(
        affinity=None if written is None else _affinity(written),
        exact=exact.resource_names if exact else (),
        ignores=labels.get(names.LABEL_RESERVATION_IGNORED) == "true",
    )


def _affinity(written: payloads.ReservationAffinity) -> Affinity:
    required = written.required
    found = () if required is None else required.reservation_selector_terms
    return Affinity(
        name=written.name,
        selector=terms.equalities(written.reservation_selector),
        required=None if required is None else tuple(map(_term, found)),
        tolerations=tuple(
            core.Toleration(key=one.key, operator=one.operator, value=one.value, effect=one.effect)
            for one in written.tolerations
        ),
    )


def _term(written: payloads.SelectorTerm) -> terms.NodeTerm:
    return terms.NodeTerm(
        labels=tuple(map(_requirement, written.match_expressions)),
        fields=tuple(map(_requirement, written.match_fields)),
    )


def _requirement(written: payloads.NodeRequirement) -> terms.Requirement:
    return terms.Requirement(written.key, written.operator, written.values)


def match(asking: Asking, held: model.Held, node_labels: Mapping[str, str]) -> Match:
    """Tell whether a pod may use a reservation of a node; whether it fits is not asked here."""
    if held.taken:
        return Match.TAKEN
    if not any(owner.matches(asking.pod) for owner in held.reservation.owners):
        return Match.NOT_OWNED
    return usable(asking.wishes, asking.requests, held, node_labels)


def usable(
    wanted: Wishes, requests: resources.Amounts, held: model.Held, node_labels: Mapping[str, str]
) -> Match:
    """Tell whether an owner may use a reservation of a node."""
    one = held.reservation
    if held.taken:
        return Match.TAKEN
    if one.waiting:
        return Match.WAITING
    affinity = wanted.affinity or Affinity()
    if affinity.name:
        found = Match.MATCHED if affinity.name == one.name else Match.OTHER_NAME
    else:
        found = _open(wanted, affinity, one, node_labels)
    if found is Match.MATCHED and not _exact(wanted, requests, one):
        return Match.NOT_EXACT
    return found


def _open(
    wanted: Wishes, affinity: Affinity, one: model.Reservation, node_labels: Mapping[str, str]
) -> Match:
    if one.closed and not selectors.tolerated((_UNSCHEDULABLE,), affinity.tolerations):
        return Match.CLOSED
    # As in the reference: taints concern only pods that say something about reservations.
    if wanted.affinity is not None and not selectors.tolerated(one.taints, affinity.tolerations):
        return Match.TAINTED
    if not affinity.selects(one.name, {**node_labels, **one.labels}):
        return Match.AFFINITY
    return Match.MATCHED


def _exact(wanted: Wishes, requests: resources.Amounts, one: model.Reservation) -> bool:
    """Compare resource by resource; one that neither side names ends the comparison."""
    for name in wanted.exact:
        asked, reserved = requests.get(name), one.allocatable.get(name)
        if asked is None and reserved is None:
            return True
        if asked != reserved:
            return False
    return True
