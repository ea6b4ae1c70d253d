"""Check ElasticQuotas by themselves, whatever other quotas there are."""

from collections.abc import Iterator, Mapping
from typing import Final

from api import names
from api.koordinator import quota
from api.koordinator.metadata import annotations
from api.wire import base, quantity
from webhook import review

UNTOUCHABLE: Final = frozenset({names.ROOT_QUOTA, names.SYSTEM_QUOTA})


def check(raw: review.Pod, found: quota.Quota) -> Iterator[review.Fault]:
    """Yield what is wrong with the amounts, weights and annotations of a quota of any group."""
    yield from _negative(found)
    yield from _annotations(raw)
    yield from _order(found)
    yield from _strict(raw, found)


def untouchable(name: str) -> Iterator[review.Fault]:
    """Yield a fault if the quota of this name may not be changed."""
    if name in UNTOUCHABLE:
        yield review.Fault(
            "reserved",
            f'metadata.name: Forbidden: "{name}" is kept by the system; write a quota of your own '
            "and name it in the pods",
        )


def _negative(found: quota.Quota) -> Iterator[review.Fault]:
    for field, amounts in (("max", found.maximum), ("hard", found.hard), ("min", found.minimum)):
        for name, value in amounts.items():
            if value < 0:
                yield review.Fault(
                    f"{field}-negative",
                    f'spec.{field}[{name}]: Invalid value: "{quantity.text(name, value)}": '
                    "must not be negative",
                )


def _order(found: quota.Quota) -> Iterator[review.Fault]:
    cap = found.cap
    for name, least in found.minimum.items():
        if name not in cap:
            yield review.Fault(
                "min-not-in-max",
                f"spec.min[{name}]: Forbidden: spec.max says nothing of {name}; add it there with "
                "at least this amount",
            )
        elif least > cap[name]:
            yield review.Fault(
                "min-above-max",
                f'spec.min[{name}]: Invalid value: "{quantity.text(name, least)}": above the '
                f"{quantity.text(name, cap[name])} that the quota may ever use",
            )


def _annotations(raw: review.Pod) -> Iterator[review.Fault]:
    notes = _notes(raw)
    for word, payload in (
        ("weight", annotations.QUOTA_WEIGHT),
        ("admission", annotations.QUOTA_ADMISSION),
    ):
        if not notes.get(payload.key):
            continue
        try:
            amounts = quota.amounts(payload.read(notes) or {})
        except base.ReadError as wrong:
            yield review.Fault(f"{word}-unreadable", f"metadata.annotations: {wrong}")
            continue
        for name, value in amounts.items():
            if value < 0:
                yield review.Fault(
                    f"{word}-negative",
                    f"metadata.annotations[{payload.key}]: Invalid value: {name} "
                    f"{quantity.text(name, value)}: must not be negative",
                )


def _strict(raw: review.Pod, found: quota.Quota) -> Iterator[review.Fault]:
    key, notes = names.ANNOTATION_QUOTA_STRICT_KEYS, _notes(raw)
    if not notes.get(key):
        return
    try:
        strict = annotations.QUOTA_STRICT_KEYS.read(notes) or ()
    except base.ReadError as wrong:
        yield review.Fault("strict-unreadable", f"metadata.annotations: {wrong}")
        return
    for name in strict:
        used = found.used.get(name)
        if used is not None and found.maximum.get(name, -1) < used:
            yield review.Fault(
                "max-below-used",
                f"spec.max[{name}]: Forbidden: {quantity.text(name, used)} are used, and "
                f"{key} asks for no less",
            )


def _notes(raw: review.Pod) -> Mapping[str, str]:
    return review.section(review.section(raw, "metadata"), "annotations")
