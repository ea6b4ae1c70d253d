"""Admission of ElasticQuotas of any group: the rules in their order. Pure."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

from api import names
from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.kubernetes import crds
from api.kubernetes.webhooks import webhook_conditions
from api.wire import base, quantity
from domain.quota.tree import quota_trees
from webhook import review
from webhook.rules.objects import retired
from webhook.rules.quotas import quota_completion, quota_deletion, quota_shape, quota_topology

GROUP: Final = "quota"
MOST_WARNINGS: Final = 8
MOST_NAMESPACES: Final = 64
"""Namespaces of a quota that are looked into for pods that it is charged for."""
LONGEST_WARNING: Final = 256
MOST_FAULTS: Final = 16
DELETE: Final = "DELETE"
EXISTS: Final = "exists"
DUPLICATE: Final = "duplicate"

_MODELS: Final = {(one.resource.group, one.resource.plural): one.model for one in crds.DEFINITIONS}


def mutate(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Complete a new quota; nothing that its author wrote changes."""
    if asked.operation != "CREATE":
        return review.Decision()
    return quota_completion.complete(asked, _known(asked, picture))


def mutation_needs(asked: review.Review, picture: review.Picture) -> review.Needs:
    """Ask for the parent where no watch has told of it yet."""
    if asked.operation != "CREATE":
        return review.NO_NEEDS
    labels = review.section(review.section(asked.object, "metadata"), "labels")
    return review.Needs(quotas=_unknown((labels.get(names.LABEL_QUOTA_PARENT),), picture))


def validate(asked: review.Review, picture: review.Picture) -> review.Decision:
    """Check a quota that is written or deleted.

    An update that leaves alone all that is checked passes: finalizers and figures always may.
    """
    if asked.operation == DELETE:
        return _deleted(asked, picture)
    if review.section(asked.object, "metadata").get("deletionTimestamp"):
        return review.Decision()
    if asked.old is not None and said(asked.object) == said(asked.old):
        return review.Decision()
    try:
        raw = _shaped(asked)
        read = quota.review_elastic_quota(raw)
        found = quota_trees.member(raw)
    except (base.ReadError, quantity.QuantityError) as wrong:
        return review.Decision(review.Refusal(GROUP, (str(wrong),), causes=("shape",)))
    checked = quota_topology.Asked(
        found, _before(asked.old), _known(asked, picture), picture.gates, asked.pods
    )
    # A fault needs no warning beside it.
    warnings = [text for text in read.warnings if not text.startswith("annotation")]
    warnings += _implied(checked, raw)
    faults = _faults(asked, raw, read.value, checked)
    told = (*retired.warnings(asked.object, asked.old), *warnings)
    shown = tuple(text[:LONGEST_WARNING] for text in told[:MOST_WARNINGS])
    return review.Decision(_refusal(faults), warnings=shown)


def validation_needs(asked: review.Review, picture: review.Picture) -> review.Needs:
    """Ask for what no watch keeps: pods of the quota, and quotas that are new to us."""
    name = str(review.section(asked.object, "metadata").get("name", ""))
    labelled = review.PodQuery(f"{names.LABEL_QUOTA_NAME}={name}")
    if asked.operation == DELETE:
        return review.Needs(pods=(labelled,) if name else ())
    labels = review.section(review.section(asked.object, "metadata"), "labels")
    if asked.operation == "CREATE":
        return review.Needs(quotas=_unknown((name, labels.get(names.LABEL_QUOTA_PARENT)), picture))
    if asked.old is not None and said(asked.object) == said(asked.old):
        return review.NO_NEEDS
    before = _before(asked.old)
    if before is None or before.is_parent or labels.get(names.LABEL_QUOTA_IS_PARENT) != "true":
        return review.Needs(quotas=_unknown((labels.get(names.LABEL_QUOTA_PARENT),), picture))
    unlabelled = f"!{names.LABEL_QUOTA_NAME}"
    # A quota may name thousands of namespaces, each of which is a request to the API server.
    bound = tuple(dict.fromkeys((name, *before.namespaces)))[:MOST_NAMESPACES]
    return review.Needs(pods=(labelled, *(review.PodQuery(unlabelled, one) for one in bound)))


def said(body: review.Pod) -> tuple[review.JSON, ...]:
    """Return what is checked of a quota; controllers write the rest all the time."""
    metadata = review.section(body, "metadata")
    labels, notes = (review.section(metadata, part) for part in ("labels", "annotations"))
    return (
        body.get("spec") or {},
        *(labels.get(key) or "" for key in webhook_conditions.QUOTA_LABELS),
        *(notes.get(key) or "" for key in webhook_conditions.QUOTA_ANNOTATIONS),
    )


def _faults(
    asked: review.Review, raw: review.Pod, found: quota.Quota, checked: quota_topology.Asked
) -> list[review.Fault]:
    """Return the faults of the first group of checks that has any, as many as are told."""
    return (
        _first(_named(asked, checked))
        or _first(quota_topology.namespaces(checked, _explicit(raw)))
        or _first(quota_shape.check(raw, found))
        or _first(quota_topology.check(checked))
    )


def _first(faults: Iterable[review.Fault]) -> list[review.Fault]:
    return list(itertools.islice(faults, MOST_FAULTS))


def _named(asked: review.Review, checked: quota_topology.Asked) -> Iterator[review.Fault]:
    if asked.operation != "CREATE":
        yield from quota_shape.untouchable(checked.new.name)
        return
    new, other = checked.new, checked.trees.by_name.get(checked.new.name)
    if other is not None:
        same = (other.group, other.key) == (new.group, new.key)
        yield review.Fault(
            EXISTS if same else DUPLICATE,
            f'metadata.name: Duplicate value: "{new.name}": ElasticQuota {other.key} of '
            f"{other.group} has this name; names of quotas are unique over all namespaces and "
            "groups",
        )


def _implied(checked: quota_topology.Asked, raw: review.Pod) -> list[str]:
    """Warn where a quota would have the pods of its namespace, and another has them."""
    implied = set(checked.new.namespaces) - set(_explicit(raw))
    found = quota_topology.namespaces(checked, sorted(implied))
    return [f"namespace {checked.new.namespace} keeps its quota: {fault.text}" for fault in found]


def _explicit(raw: review.Pod) -> tuple[str, ...]:
    notes = review.section(review.section(raw, "metadata"), "annotations")
    try:
        return annotations.QUOTA_NAMESPACES.read(notes) or ()
    except base.ReadError:
        return ()


def _deleted(asked: review.Review, picture: review.Picture) -> review.Decision:
    metadata = review.section(asked.object, "metadata")
    found = quota_trees.Member(str(metadata.get("name", "")), asked.namespace)
    return review.Decision(
        _refusal(list(quota_deletion.check(asked, found, _known(asked, picture))))
    )


def _refusal(faults: list[review.Fault]) -> review.Refusal | None:
    if not faults:
        return None
    shown = faults[:MOST_FAULTS]
    return review.Refusal(
        GROUP,
        tuple(fault.text for fault in shown),
        review.EXISTS if shown[0].reason == EXISTS else review.BAD_REQUEST,
        tuple(fault.reason for fault in shown),
    )


def _known(asked: review.Review, picture: review.Picture) -> quota_trees.Trees:
    """Return the quotas of the picture, corrected by those that were read for this review."""
    trees = picture.trees
    for name, found in asked.quotas.items():
        if found or name in trees.by_name:
            trees = trees.with_named(name, found)
    return trees


def _unknown(wanted: tuple[Any, ...], picture: review.Picture) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            name
            for name in wanted
            if isinstance(name, str)
            and name
            and name != names.ROOT_QUOTA
            and name not in picture.trees.by_name
        )
    )


def _before(old: review.Pod | None) -> quota_trees.Member | None:
    """Read the stored quota; one that cannot be read is as good as none."""
    if old is None:
        return None
    try:
        return quota_trees.member({name: part for name, part in old.items() if name != "status"})
    except (base.ReadError, quantity.QuantityError):
        return None


def _shaped(asked: review.Review) -> review.Pod:
    """Return an object that has its kind's shape, without a status that has not.

    Of the status nothing is ever refused.
    """
    try:
        base.read(_MODELS[asked.resource], asked.object)
    except base.ReadError:
        written = {name: value for name, value in asked.object.items() if name != "status"}
        base.read(_MODELS[asked.resource], written)
        return written
    return asked.object
