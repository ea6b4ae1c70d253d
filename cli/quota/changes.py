"""Changes of quotas that are tried: flags like ``team-a.min.cpu=50``, and changed objects. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from api import resources
from api.koordinator import quota as quotas
from api.wire import quantity
from domain.quota.tree import forest as forests

FIELDS: Final = ("min", "max", "hard", "weight", "total")
_STRUCT_FIELDS: Final = {
    "min": "minimum", "max": "maximum", "hard": "hard", "weight": "weight", "total": "total",
}  # fmt: skip
_AMOUNT: Final = re.compile(rf"\.({'|'.join(FIELDS)})\.")
_PRIORITY: Final = ".priority"
_TOTAL: Final = "total."
_UNSET: Final = "none"
_EXAMPLE: Final = "write it as team-a.min.cpu=50, team-a.priority=10 or total.cpu=400"


class ChangeError(ValueError):
    """A change that cannot be tried; names it and the remedy."""


class Changed(NamedTuple):
    """The forest and its quotas after the changes."""

    forest: forests.Forest
    said: tuple[str, ...]
    """Each change as a sentence."""
    more: Mapping[str, int]
    """What the cluster has more (or less) of."""


def apply(
    forest: forests.Forest,
    known: Mapping[str, quotas.Quota],
    flags: Sequence[str],
    documents: Iterable[Mapping[str, Any]] = (),
    deleted: Sequence[str] = (),
) -> Changed:
    """Return the forest with every change made, in the order: objects, flags, deletions."""
    said: list[str] = []
    for document in documents:
        forest, sentence = _object(forest, known, document)
        said.append(sentence)
    before = dict(forest.total())
    for flag in flags:
        forest, sentence = _flag(forest, flag)
        said.append(sentence)
    # What trees of their own take is no change of the cluster.
    more = {
        key: amount
        for flag in flags
        if flag.startswith(_TOTAL)
        for key, amount in [_difference(flag, before)]
        if amount
    }
    for name in deleted:
        quota = _quota(forest, name)
        forest = forest.with_quota(quota, None)
        said.append(f"ElasticQuota {quota.key} is deleted")
    return Changed(forest, tuple(said), more)


def _object(
    forest: forests.Forest, known: Mapping[str, quotas.Quota], document: Mapping[str, Any]
) -> tuple[forests.Forest, str]:
    given = document.get("metadata")
    name = given.get("name") if isinstance(given, Mapping) else None
    if document.get("kind") != "ElasticQuota":
        raise ChangeError(f"the file holds {document.get('kind')!r}, only ElasticQuotas are tried")
    if not isinstance(given, Mapping) or not isinstance(name, str):
        raise ChangeError("an ElasticQuota of the file has no metadata.name: write one")
    metadata = {"namespace": "default", **given}
    whole = {"apiVersion": resources.ELASTIC_QUOTAS.api_version, **document, "metadata": metadata}
    try:
        after = quotas.read_elastic_quota(whole)
    except ValueError as error:
        raise ChangeError(f"ElasticQuota {name} cannot be read: {error}") from error
    before = known.get(after.identity)
    if before is not None:
        # It stays as old as it is: age decides between objects of one name.
        after = msgspec.structs.replace(after, created_at=before.created_at, uid=before.uid)
        if not after.weight:
            # Admission has written weights on the object; a manifest without any leaves them.
            after = msgspec.structs.replace(after, weight=before.weight)
    word = "is changed" if before is not None else "is created"
    return forest.with_quota(before, after), f"ElasticQuota {after.key} {word}"


def _flag(forest: forests.Forest, flag: str) -> tuple[forests.Forest, str]:
    left, equals, value = flag.partition("=")
    if not equals or not value:
        raise ChangeError(f"{flag!r} changes nothing: {_EXAMPLE}")
    if left.startswith(_TOTAL):
        key, more = _difference(flag, forest.total())
        made = forest.with_node(None, ((key, more),))
        return made, f"the cluster has {value} of {key} to share out"
    if left.endswith(_PRIORITY):
        quota = _quota(forest, left.removesuffix(_PRIORITY))
        after = msgspec.structs.replace(quota, priority=_integer(flag, value))
        return forest.with_quota(quota, after), f"{quota.name}: priority {quota.priority} → {value}"
    return _amount(forest, flag, left, value)


def _amount(forest: forests.Forest, flag: str, left: str, value: str) -> tuple[forests.Forest, str]:
    for found in _AMOUNT.finditer(left):
        name, field, key = left[: found.start()], found[1], left[found.end() :]
        if forest.quota(name) is not None and key:
            break
    else:
        match = _AMOUNT.search(left)
        if match is None:
            raise ChangeError(f"{flag!r} is not understood: {_EXAMPLE}")
        _quota(forest, left[: match.start()])
        raise ChangeError(f"{flag!r} names no resource: {_EXAMPLE}")
    quota = _quota(forest, name)
    amounts = dict(getattr(quota, _STRUCT_FIELDS[field]))
    stands = quota.weight_of(key) if field == "weight" and key in quota.cap else amounts.get(key)
    before = quantity.text(key, stands) if stands is not None else _UNSET
    if value == _UNSET:
        amounts.pop(key, None)
    else:
        amounts[key] = _quantity(flag, key, value)
    after = msgspec.structs.replace(quota, **{_STRUCT_FIELDS[field]: amounts})
    return forest.with_quota(quota, after), f"{name}: {field} of {key} {before} → {value}"


def _difference(flag: str, total: Mapping[str, int]) -> tuple[str, int]:
    left, _, value = flag.partition("=")
    key = left.removeprefix(_TOTAL)
    return key, _quantity(flag, key, value) - total.get(key, 0)


def _quota(forest: forests.Forest, name: str) -> quotas.Quota:
    quota = forest.quota(name)
    if quota is None:
        known = ", ".join(list(forest.names())[:8]) or "none"
        raise ChangeError(f"there is no ElasticQuota {name!r}; known are: {known}")
    return quota


def _quantity(flag: str, key: str, value: str) -> int:
    try:
        amount = quantity.amount(key, value)
    except ValueError as error:
        raise ChangeError(f"{flag!r}: {error}") from error
    if amount < 0:
        raise ChangeError(f"{flag!r}: an amount is 0 or more")
    return amount


def _integer(flag: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ChangeError(f"{flag!r}: a priority is a whole number") from error
