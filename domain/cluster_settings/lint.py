"""What is legal in the cluster settings and still probably not meant."""

import difflib
import itertools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.koordinator.settings import configuration
from api.wire import base, untrusted
from domain.cluster_settings import documents, value_limits
from domain.cluster_settings.value_limits import Fault, shown

_MOST_TOLD: Final = 10
_LONGEST: Final = 256
_OTHERS: Final = (
    configuration.HOST_APPLICATION,
    configuration.CPU_NORMALIZATION,
    configuration.RESOURCE_AMPLIFICATION,
)
_NORMALIZED: Final = value_limits.Range(1, 5)
_AMPLIFIED: Final = value_limits.Range(1)
_SWITCHED: Final = ("cpuQOS", "memoryQOS", "resctrlQOS", "networkQOS", "blkioQOS")
_CLASSES: Final = ("lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot")


def review(data: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return what the author of a configuration map should read about the keys he changed."""
    changed = (key for key, written in data.items() if written != old.get(key))
    found = (fault for key in changed for fault in _doubts(key, data[key]))
    return [str(fault)[:_LONGEST] for fault in itertools.islice(found, _MOST_TOLD)]


def _doubts(key: str, written: str) -> Iterator[Fault]:
    if key not in configuration.MODELS:
        yield Fault(key, f"is no key of the cluster settings{_meant(key)}")
        return
    if not written:
        return
    try:
        document = documents.parse(key, written)
        raw = untrusted.parsed(written, key, untrusted.DOCUMENT)
    except ValueError as wrong:
        if key in _OTHERS:
            yield Fault(key, f"has no effect, what it said before goes on to hold: {wrong}")
        return
    yield from _unknown(configuration.MODELS[key], raw, key)
    match key:
        case configuration.COLOCATION:
            yield from _lending(document)
        case configuration.RESOURCE_QOS:
            yield from _switched_off(document)
        case configuration.CPU_NORMALIZATION:
            yield from _ratios(document, _NORMALIZED)
        case configuration.RESOURCE_AMPLIFICATION:
            yield from _ratios(document, _AMPLIFIED)


def _meant(name: str, known: typing.Iterable[str] = configuration.MODELS) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" and is ignored; did you mean {close[0]}?" if close else " and is ignored"


def _unknown(model: Any, raw: Any, path: str) -> Iterator[Fault]:
    """Yield the fields that no reader knows, however deep."""
    if not isinstance(raw, Mapping):
        return
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    folded = {name.casefold(): name for name in fields}
    for name, value in raw.items():
        known = folded.get(str(name).casefold())
        if known is None:
            yield Fault(f"{path}.{name}", f"is no field here{_meant(name, fields)}")
            continue
        for inner, below, place in _below(fields[known].annotation, value, f"{path}.{known}"):
            yield from _unknown(inner, below, place)


def _below(annotation: Any, value: Any, path: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield the models inside a field with their values."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _below(argument, value, path)
    elif origin is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(arguments[0], item, f"{path}[{index}]")
    elif origin is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _below(arguments[1], item, f"{path}.{name}")
    elif isinstance(annotation, type) and issubclass(annotation, base.Model):
        yield annotation, value, path


def _lending(document: documents.Document) -> Iterator[Fault]:
    cluster = document.cluster or {}
    for entry in document.entries:
        if entry.values.get("enable") and not cluster.get("enable"):
            note = "is true, but lends nothing: enable of the cluster is not true"
            yield Fault(f"{entry.path}.enable", note)
    for path, values in document.parts():
        for name in ("cpuReclaimThresholdPercent", "memoryReclaimThresholdPercent"):
            percent = values.get(name) or 0
            if percent > 100:
                note = f"is {percent}: more than all of a node is lent; 100 keeps no margin at all"
                yield Fault(f"{path}.{name}", note)


def _switched_off(document: documents.Document) -> Iterator[Fault]:
    for path, values in document.parts():
        if path != document.cluster_path:
            continue  # An entry may inherit the switch.
        for name in _CLASSES:
            for part in _SWITCHED:
                settings = (values.get(name) or {}).get(part) or {}
                if settings and settings.get("enable") is None:
                    note = "has no effect without enable: true"
                    yield Fault(f"{path}.{name}.{part}", note)


def _ratios(document: documents.Document, limits: value_limits.Range) -> Iterator[Fault]:
    for path, values in document.parts():
        for place, ratio in _numbers(values, path):
            if not limits.holds(ratio):
                yield Fault(place, f"is {shown(ratio)}, must be {limits}; nodes keep what they had")


def _numbers(values: Any, path: str) -> Iterator[tuple[str, float]]:
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{path}.{name}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}.{name}", value
