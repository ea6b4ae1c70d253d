"""Kind to checks: one visible table of what is looked at in custom resources. Pure.

What a schema or its expressions can say is said there; here is the rest.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final

from api import resources
from api.kubernetes import crds, selectors
from api.wire import base, quantity
from webhook import review
from webhook.rules.objects import (
    device_shape,
    group_shape,
    migration_shape,
    network_shape,
    profile_shape,
    recommendation_shape,
    reservation_shape,
    retired,
    slo_shape,
)
from webhook.rules.quotas import quota_profile_shape

Check = Callable[[review.Review, review.Picture], review.Findings]

GROUP: Final = "shape"
MOST_WARNINGS: Final = 8
LONGEST_WARNING: Final = 256

TABLE: Final[Mapping[resources.Resource, Check]] = {
    resources.COLOCATION_PROFILES: profile_shape.check,
    resources.NODE_SLOS: slo_shape.check,
    resources.NODE_METRICS: slo_shape.check_metric,
    resources.RESERVATIONS: reservation_shape.check,
    resources.DEVICES: device_shape.check,
    resources.POD_MIGRATION_JOBS: migration_shape.check,
    resources.CLUSTER_NETWORK_TOPOLOGIES: network_shape.check,
    resources.SCHEDULE_EXPLANATIONS: recommendation_shape.check_question,
    resources.POD_GROUPS: group_shape.check,
    resources.ELASTIC_QUOTA_PROFILES: quota_profile_shape.check,
    resources.RECOMMENDATIONS: recommendation_shape.check,
}
"""``webhook.quotas`` checks quotas. NodeResourceTopology is checked by its schema alone: other
programs write it."""

CHECKED: Final = tuple(TABLE)
_TABLE: Final = {(one.group, one.plural): check for one, check in TABLE.items()}
_MODELS: Final = {(one.resource.group, one.resource.plural): one.model for one in crds.DEFINITIONS}


def validate(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check one object; what was wrong before and is still is no reason to hold up an update."""
    metadata = review.section(asked.object, "metadata")
    if asked.resource not in _TABLE or metadata.get("deletionTimestamp"):
        return review.Decision()
    if asked.old is not None and _said(asked.object) == _said(asked.old):
        return review.Decision()
    found = findings(asked, picture)
    faults, warnings = found.faults, found.warnings
    if faults and asked.old is not None:
        known = findings(_before(asked), picture).faults
        warnings = (*(fault for fault in faults if fault in known), *warnings)
        faults = tuple(fault for fault in faults if fault not in known)
    warnings = (*retired.warnings(asked.object, asked.old), *warnings)
    shown = tuple(text[:LONGEST_WARNING] for text in warnings[:MOST_WARNINGS])
    refusal = review.Refusal(GROUP, faults) if faults else None
    return review.Decision(refusal, warnings=shown)


def findings(asked: review.Review, picture: review.Picture) -> review.Findings:
    """Return what is wrong and what is doubtful with an object that is in the table."""
    try:
        shaped = dataclasses.replace(asked, object=_shaped(asked))
        return _TABLE[asked.resource](shaped, picture)
    except (base.ReadError, quantity.QuantityError, selectors.SelectorError) as wrong:
        return review.Findings((str(wrong),))


def _shaped(asked: review.Review) -> review.Pod:
    """Return an object that has its kind's shape, without a status that has not.

    Readers build on the shape; of the status nothing is ever refused.
    """
    model = _MODELS[asked.resource]
    try:
        base.read(model, asked.object)
    except base.ReadError:
        written = {name: value for name, value in asked.object.items() if name != "status"}
        base.read(model, written)
        return written
    return asked.object


def _before(asked: review.Review) -> review.Review:
    return review.Review(
        "CREATE", asked.namespace, asked.old or {}, name=asked.name, resource=asked.resource
    )


def _said(body: review.Pod) -> tuple[review.JSON, ...]:
    """Return what people write of an object."""
    metadata = review.section(body, "metadata")
    return body.get("spec"), metadata.get("labels"), metadata.get("annotations")
