"""Whether a quota has room for new pods, by the request that admission has let in so far."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from api import names
from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.kubernetes import core
from api.wire import base, quantity
from domain.pods import resources as amounts
from webhook import review

PODS = "pods"
_FINISHED = ("Succeeded", "Failed")

Amounts = Mapping[str, int]


class Balance(NamedTuple):
    """What a quota may be asked for and is asked for; cpu in milli, the rest in whole units."""

    key: str
    limit: Amounts
    """What admission may let in; a resource that is not named is not limited."""
    used: Amounts
    """What admission has let in, as the annotation ``child-request`` says."""
    counted: frozenset[str]
    """The resources that are looked at: those of max and hard."""

    def text(self) -> str:
        """Return the value of the annotation ``child-request``."""
        return base.encoded(quantity.texts(self.used))


def balance(raw: review.Pod) -> Balance:
    """Read the balance of an ElasticQuota of any group.

    Raises a base.ReadError where one of the annotations cannot be read: no pod is admitted then,
    since what is used or allowed is not known.
    """
    found = quota.read_elastic_quota({name: part for name, part in raw.items() if name != "status"})
    notes = base.section(base.section(raw, "metadata"), "annotations")
    used, limit = (
        _read(notes, payload)
        for payload in (annotations.QUOTA_CHILD_REQUEST, annotations.QUOTA_ADMISSION)
    )
    return Balance(found.key, limit or found.cap, used, frozenset(found.cap))


def _read(notes: Mapping[str, str], payload: annotations.Payload[dict[str, str]]) -> Amounts:
    if notes.get(payload.key, "").strip() in ("", "null"):
        return {}
    return quota.amounts(payload.read(notes) or {})


def requests(pod: review.Pod) -> dict[str, int]:
    """Return what a pod asks for, itself counted as one; nothing once it has finished.

    Raises a msgspec.ValidationError or QuantityError for what is no pod.
    """
    found = msgspec.convert(pod, core.Pod)
    if found.status.phase in _FINISHED:
        return {}
    return {PODS: 1, **amounts.pod_requests(found)}


def charged(before: Balance, asked: Amounts) -> tuple[Balance, str]:
    """Return the balance after a pod, and why it is refused; the balance stays as it was then."""
    delta = {name: value for name, value in asked.items() if value > 0 and name in before.counted}
    if not delta:
        return before, ""
    after = amounts.add(before.used, delta)
    exceeded = sorted(
        name for name in delta if name in before.limit and after[name] > before.limit[name]
    )
    if exceeded:
        figures = ", ".join(
            f"{word}: {_text(values, exceeded)}"
            for word, values in (
                ("requested", delta),
                ("used", before.used),
                ("limited", before.limit),
            )
        )
        return before, f"exceeded quota: {before.key}, {figures}"
    return before._replace(used=after), ""


def _text(values: Amounts, wanted: list[str]) -> str:
    return ",".join(
        f"{name}={quantity.text(name, values[name])}" for name in wanted if name in values
    )


def changes_quota(asked: review.Review) -> bool:
    """Tell whether a pod is new to its quota: created, or moved to it by its label."""
    if asked.old is None:
        return asked.operation == "CREATE"
    key = names.LABEL_QUOTA_NAME
    now, before = (
        review.section(review.section(pod, "metadata"), "labels").get(key)
        for pod in (asked.object, asked.old)
    )
    return now != before
