"""Check Reservations: what could never be placed, expire or be used."""

from collections.abc import Iterator

from api.koordinator import scheduling
from api.wire import quantity
from domain.pods import resources
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the lifetime, the template and the owners."""
    read = scheduling.review_reservation(asked.object)
    reservation = read.value
    faults = []
    if reservation.spec.ttl is not None and reservation.spec.expires is not None:
        faults.append("spec.expires: Forbidden: give either ttl or expires, not both")
    warnings = [*read.warnings, *_owners(reservation)]
    try:
        requests = resources.pod_requests(reservation.pod)
    except quantity.QuantityError as wrong:
        faults.append(f"spec.template.spec: {wrong}")
    else:
        if not any(requests.values()):
            warnings.append("spec.template: it requests nothing, so nothing is reserved")
    return review.Findings(tuple(faults), tuple(warnings))


def _owners(reservation: scheduling.Reservation) -> Iterator[str]:
    for index, owner in enumerate(reservation.spec.owners):
        selector = owner.label_selector
        if selector is None or selector.match_labels or selector.match_expressions:
            continue
        if owner.object is None and owner.controller is None:
            yield f"spec.owners[{index}].labelSelector: empty, so every pod may use the reservation"
