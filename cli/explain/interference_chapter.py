"""Which pods their neighbours slow down, as agents report it in NodeMetrics."""

import math
from collections.abc import Iterator
from typing import Final

import msgspec

from api import names
from api.koordinator.metrics import nodemetric
from cli import reading
from cli.explain import stories
from domain import wording

_MOST: Final = 10
_LONGEST: Final = 253


class Suspect(msgspec.Struct, frozen=True):
    """A neighbour that is suspected."""

    namespace: str = ""
    name: str = ""
    qos: str = ""
    rise: float = 0.0


class Entry(msgspec.Struct, frozen=True):
    """One signal of one pod that is above its baseline."""

    signal: str
    value: float
    baseline: float
    container: str = ""
    deviations: float = 0.0
    since: str = ""
    confidence: str = ""
    suspects: tuple[Suspect, ...] = ()


def of_node(metric: nodemetric.NodeMetric | None) -> stories.Chapter:
    """Tell every victim of a node."""
    sentences, figures = [], []
    for pod in metric.status.pods_metric if metric is not None else ():
        key = f"{pod.namespace}/{pod.name}"
        for one in entries(pod):
            sentences.append(f"Pod {key} is slowed down by its neighbours: {_said(one)}")
            figures.append({"pod": key, **msgspec.to_builtins(one)})
    more = len(sentences) - _MOST
    shown = (*sentences[:_MOST], f"There are {more} more.") if more > 0 else tuple(sentences)
    return stories.Chapter("interference", shown, {"findings": figures} if figures else {})


def of_pod(metric: nodemetric.NodeMetric | None, key: str) -> stories.Chapter:
    """Tell who slows a pod down, and whom it is suspected to slow down."""
    sentences, figures = [], []
    for pod in metric.status.pods_metric if metric is not None else ():
        other = f"{pod.namespace}/{pod.name}"
        for one in entries(pod):
            if other == key:
                sentences.append(f"Its neighbours slow it down: {_said(one)}")
            elif any(f"{held.namespace}/{held.name}" == key for held in one.suspects):
                sentences.append(
                    f"It is suspected with {_word(one.confidence)} confidence of slowing down pod "
                    f"{other}: {_figure(one)}."
                )
            else:
                continue
            figures.append({"pod": other, **msgspec.to_builtins(one)})
    return stories.Chapter(
        "interference", tuple(sentences[:_MOST]), {"findings": figures} if figures else {}
    )


def entries(pod: nodemetric.PodMetric) -> list[Entry]:
    """Return what an agent reported of a pod; what cannot be read is left out."""
    written = pod.plugin_data.get(names.INTERFERENCE)
    found = (
        reading.either(None, msgspec.convert, one, Entry)
        for one in (written if isinstance(written, list | tuple) else ())
    )
    return [one for one in found if one is not None and _finite(one)]


def _finite(one: Entry) -> bool:
    figures = (one.value, one.baseline, one.deviations, *(held.rise for held in one.suspects))
    return all(map(math.isfinite, figures))


def _said(one: Entry) -> str:
    since = f" since {_word(one.since)}" if one.since else ""
    return f"{_figure(one)}{since}; {_blame(one)}."


def _figure(one: Entry) -> str:
    resource, _, kind = one.signal.partition("-")
    if resource == "cpi":
        text = f"{one.value:.2f} cycles per instruction, usually {one.baseline:.2f}"
    else:
        who = "all its tasks wait" if kind == "full" else "some of its tasks wait"
        text = (
            f"{who} for {_word(resource)} {one.value:.0f} % of the time, usually "
            f"{one.baseline:.0f} %"
        )
    text = f"{text} ({one.deviations:.1f} deviations above)"
    return f"container {_word(one.container)}: {text}" if one.container else text


def _blame(one: Entry) -> str:
    named = "; ".join(_suspects(one))
    if not named:
        return "no neighbour is suspected"
    return f"suspected with {_word(one.confidence)} confidence: {named}"


def _suspects(one: Entry) -> Iterator[str]:
    resource = one.signal.partition("-")[0]
    for held in one.suspects[:_MOST]:
        key = f"{held.namespace}/{held.name}" if held.namespace else held.name
        quality = f" ({_word(held.qos)})" if held.qos else ""
        yield f"{_word(key)}{quality}, which added {_rise(resource, held.rise)}"


def _rise(resource: str, rise: float) -> str:
    if resource == "memory":
        return wording.named(names.MEMORY, int(rise))
    if resource == "io":
        return f"{wording.amount(names.MEMORY, int(rise))} of disk traffic per second"
    return wording.named(names.CPU, int(rise * 1000))


def _word(text: str) -> str:
    """Keep what a report names to one printable line."""
    return "".join(letter for letter in text[: 2 * _LONGEST] if letter.isprintable())
