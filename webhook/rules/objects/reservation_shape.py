"""Check Reservations: what could never be placed, expire or be used, and what schedulers write."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from api.koordinator import scheduling
from api.koordinator.metadata import annotations, protected_metadata
from api.wire import base, quantity
from domain.pods import label_syntax, resources
from webhook import review

_READ: Final = (annotations.RESERVATION_RESTRICTED, annotations.NODE_RESERVATION)
_EFFECTS: Final = ("NoSchedule", "NoExecute")
_FIXED: Final = ("template", "preAllocation")
_INT32: Final = 1 << 31
_INT64: Final = 1 << 63


def check(asked: review.Review, picture: review.Picture) -> review.Findings:
    """Look at the lifetime, the template, the owners, and at what an update changes."""
    read = scheduling.review_reservation(asked.object)
    reservation = read.value
    faults = [
        *_written(asked, picture.writers),
        *_changed(asked),
        *_lifetime(reservation),
        *_annotations(reservation),
        *_selectors(reservation),
    ]
    warnings = [*read.warnings, *_owners(reservation), *_labels(reservation), *_taints(reservation)]
    try:
        requests = resources.pod_requests(reservation.pod)
    except quantity.QuantityError as wrong:
        faults.append(f"spec.template.spec: {wrong}")
    else:
        warnings += _template(reservation, bool(any(requests.values())))
    return review.Findings(tuple(faults), tuple(warnings))


def _lifetime(reservation: scheduling.Reservation) -> Iterator[str]:
    if reservation.spec.ttl is not None and reservation.spec.expires is not None:
        yield "spec.expires: Forbidden: give either ttl or expires, not both"


def _annotations(reservation: scheduling.Reservation) -> Iterator[str]:
    for payload in _READ:
        try:
            payload.read(reservation.metadata.annotations)
        except base.ReadError as wrong:
            yield f"metadata: {wrong}; no pod could use the Reservation"


def _selectors(reservation: scheduling.Reservation) -> Iterator[str]:
    for index, owner in enumerate(reservation.spec.owners):
        path = f"spec.owners[{index}].labelSelector"
        yield from label_syntax.bad_selector(path, owner.label_selector)


def _template(reservation: scheduling.Reservation, requests: bool) -> Iterator[str]:
    spec = reservation.spec.template.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    if not spec.get("containers"):
        yield "spec.template.spec.containers: there are none, so it is never placed"
    if not requests:
        yield "spec.template: it requests nothing, so nothing is reserved"
    if spec.get("resourceClaims"):
        yield "spec.template.spec.resourceClaims: no devices of claims are held; it is not placed"


def _owners(reservation: scheduling.Reservation) -> Iterator[str]:
    for index, owner in enumerate(reservation.spec.owners):
        selector = owner.label_selector
        if selector is None or selector.match_labels or selector.match_expressions:
            continue
        if owner.object is None and owner.controller is None:
            yield f"spec.owners[{index}].labelSelector: empty, so every pod may use the reservation"


def _labels(reservation: scheduling.Reservation) -> Iterator[str]:
    limits = {names.LABEL_RESERVATION_ORDER: _INT64, names.LABEL_PRIORITY: _INT32}
    for key, limit in limits.items():
        text = reservation.metadata.labels.get(key)
        if text is not None and not _is_number(text, limit):
            yield f"metadata.labels[{key}]: {text!r} is no whole number and is ignored"


def _is_number(text: str, limit: int) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return False
    return -limit <= int(text) < limit


def _taints(reservation: scheduling.Reservation) -> Iterator[str]:
    for index, taint in enumerate(reservation.spec.taints):
        if taint.effect not in _EFFECTS:
            yield (
                f"spec.taints[{index}].effect: {taint.effect!r} keeps no pod away; write "
                f"{' or '.join(_EFFECTS)}"
            )


def _changed(asked: review.Review) -> Iterator[str]:
    """Yield what stays as it is once capacity of a node is held for it."""
    if asked.old is None or not review.section(asked.old, "status").get("nodeName"):
        return
    before, after = review.section(asked.old, "spec"), review.section(asked.object, "spec")
    for name in _FIXED:
        if (before.get(name) or None) != (after.get(name) or None):
            yield (
                f"spec.{name}: Forbidden: field is immutable once the Reservation has a node; "
                "delete it and create another one"
            )


def _written(asked: review.Review, writers: review.Writers) -> Iterator[str]:
    """Yield what only schedulers write: the capacity that a Reservation has taken on its node."""
    if asked.user in writers.accounts or not writers.groups.isdisjoint(asked.groups):
        return
    after = _notes(asked.object)
    if asked.old is None:
        for key in protected_metadata.RESERVATIONS:
            if key in after:
                yield f"metadata.annotations[{key}]: Forbidden: schedulers write it; leave it out"
        return
    before = _notes(asked.old)
    for key in protected_metadata.RESERVATIONS:
        if before.get(key) != after.get(key):
            yield f"metadata.annotations[{key}]: Forbidden: only schedulers change it"


def _notes(body: review.Pod) -> Mapping[str, Any]:
    return review.section(review.section(body, "metadata"), "annotations")
