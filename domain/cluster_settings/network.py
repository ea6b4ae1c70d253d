"""Whether the network shares that QoS classes are promised fit into what a node has.

A number is percent of the node's bandwidth, a text an absolute amount. Percentages add up to 100
at most; absolute amounts to the bandwidth of the node at most, where that is configured.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator.settings import configuration
from api.wire import quantity
from domain.cluster_settings import documents
from domain.cluster_settings.value_limits import Fault, shown

_CLASSES: Final = ("lsrClass", "lsClass", "beClass")
_REQUESTS: Final = ("ingressRequest", "egressRequest")
_FIELDS: Final = ("ingressRequest", "ingressLimit", "egressRequest", "egressLimit")
_TOTAL: Final = "totalNetworkBandwidth"


def faults(quality: documents.Document, system: documents.Document) -> list[Fault]:
    """Return what is wrong with the network settings of one key, given the bandwidth of another."""
    found: list[Fault] = []
    if quality.cluster is not None:
        total = _amount((system.cluster or {}).get(_TOTAL, 0))
        found += _checked(quality.cluster_path, quality.cluster, total)
    for entry in quality.entries:
        found += _checked(entry.path, entry.values, _total_of(entry, system))
    return found


def _total_of(entry: documents.Entry, system: documents.Document) -> int:
    """Return the bandwidth of the nodes of an entry; 0 where unknown."""
    if not system.entries:
        return _amount((system.cluster or {}).get(_TOTAL, 0))
    same = (one for one in system.entries if one.selector == entry.selector)
    return next((_amount(one.values.get(_TOTAL, 0)) for one in same), 0)


def _amount(written: quantity.Written) -> int:
    return quantity.whole(written)


def _checked(path: str, values: Mapping[str, Any], total: int) -> Iterator[Fault]:
    settings = {name: (values.get(name) or {}).get("networkQOS") or {} for name in _CLASSES}
    percent_texts = list(_percent_texts(path, settings))
    if percent_texts:
        yield from percent_texts
        return
    requests = [
        (f"{path}.{name}.networkQOS.{field}", field, part[field])
        for name, part in settings.items()
        for field in _REQUESTS
        if part.get(field) is not None
    ]
    if len({isinstance(value, str) for _, _, value in requests}) > 1:
        where, _, value = next(one for one in requests if isinstance(one[2], str))
        note = "is an absolute amount beside requests in percent; write all in the same way"
        yield Fault(where, f"{shown(value)} {note}")
        return
    for field in _REQUESTS:
        yield from _sum(path, field, [value for _, name, value in requests if name == field], total)


def _percent_texts(path: str, settings: Mapping[str, Mapping[str, Any]]) -> Iterator[Fault]:
    for name, part in settings.items():
        for field in _FIELDS:
            value = part.get(field)
            if isinstance(value, str) and value.endswith("%"):
                note = (
                    f"is {shown(value)}, must be a number in 0..100 (percent) or an amount such "
                    f'as "50M"; write {value.removesuffix("%")}'
                )
                yield Fault(f"{path}.{name}.networkQOS.{field}", note)


def _sum(path: str, field: str, values: list[Any], total: int) -> Iterator[Fault]:
    if not values:
        return
    where = f"{path}.*.networkQOS.{field}"
    if isinstance(values[0], str):
        amounts = sum(_amount(value) for value in values)
        if 0 < total < amounts:
            known = f"the {total} of {configuration.SYSTEM} {_TOTAL}"
            yield Fault(where, f"add up to {amounts}, must be at most {known}; promise less")
    elif (percent := sum(values)) > 100:
        yield Fault(where, f"add up to {percent}, must be at most 100; promise less")
