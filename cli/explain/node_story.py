"""The story of a node: what it lends, each term of the formula, what is taken, how busy it is."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from api import names
from api.koordinator.metrics import nodemetric
from api.kubernetes import core
from api.wire import quantity
from cli import reading
from cli.explain import interference_chapter, stories
from cli.explain.pod import batch_capacity
from domain import wording
from domain.pods import resources

Raw = Mapping[str, Any]
_NATIVE = {
    names.BATCH_CPU: names.CPU,
    names.BATCH_MEMORY: names.MEMORY,
    names.MID_CPU: names.CPU,
    names.MID_MEMORY: names.MEMORY,
}
_UNITS = {names.CPU: " cores", names.MEMORY: ""}


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a node; None where nothing was there or could be read."""

    name: str
    now: float
    node: core.Node | None = None
    raw: Raw | None = None
    """The node as it was read, also where it has an unexpected shape."""
    lending: Raw | None = None
    """Why it lends what it lends, as the manager calculates it."""
    offer: batch_capacity.Offer | None = None
    """What it has left for batch work."""
    metric: nodemetric.NodeMetric | None = None
    load: Raw | None = None
    """What the extender expects on top of what was measured."""
    events: Sequence[Raw] = ()


def told(facts: Facts) -> stories.Story:
    """Return the story."""
    subject = f"node {facts.name}"
    if facts.node is None and facts.raw is None:
        return stories.Story(subject, f"There is no node {facts.name}.", found=False)
    tell = stories.guarded
    chapters = (
        tell("lending", _lending, facts),
        tell("lent", _taken, facts),
        tell("load", _load, facts),
        tell("interference", interference_chapter.of_node, facts.metric),
        tell("events", _events, facts),
    )
    return stories.Story(
        subject=subject,
        verdict=reading.either(f"Node {facts.name} exists and cannot be read.", _verdict, facts),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=reading.either((), lambda: tuple(_helps(facts.lending or {}))),
    )


def _verdict(facts: Facts) -> str:
    lending = facts.lending or {}
    if lending.get("sentence"):
        return f"Node {facts.name} {stories.ended(str(lending['sentence']))}"
    if facts.node is None:
        return f"Node {facts.name} exists and cannot be read."
    published = resources.node_allocatable(facts.node)
    cpu = published.get(names.BATCH_CPU, 0)
    cores = wording.count(f"{cpu / 1000:g}", "core", "cores")
    return f"Node {facts.name} publishes {cores} for batch work."


# -- the formula -----------------------------------------------------------------------------


def _lending(facts: Facts) -> stories.Chapter:
    lending = facts.lending or {}
    sentences = []
    for resource in lending.get("resources") or ():
        sentences += list(formula(resource))
    age = lending.get("report_age")
    if age is not None:
        sentences.append(f"The figures are from the agent's report of {age:.0f} s ago.")
    for said in ("normalization", "amplification"):
        part = lending.get(said) or {}
        if part.get("text") and "off" not in str(part.get("why")):
            sentences.append(f"Its cpu {said} is {part['text']}: {part.get('why')}.")
        if part.get("problem"):
            sentences.append(f"Its cpu {said} cannot be said: {part['problem']}.")
    written = lending.get("written") or {}
    sentences += [f"Written now: {text}." for text in written.get("news") or ()]
    if written.get("kept"):
        sentences.append(f"What stands on the node differs: {written['kept']}.")
    return stories.Chapter("lending", tuple(sentences), dict(lending))


def formula(resource: Raw) -> Iterator[str]:
    """Yield how one lent resource came about, each term with its amount."""
    name = str(resource["resource"])
    native = _NATIVE.get(name, name)

    def show(value: int) -> str:
        return wording.amount(native, value)

    terms = resource.get("terms") or ()
    calculated, offered = int(resource["calculated"]), int(resource["offered"])
    if not offered and not any(int(term["value"]) for term in terms):
        return
    total = max(sum(int(term["value"]) for term in terms), 0)
    text = " ".join(_term(term, first=not at, show=show) for at, term in enumerate(terms))
    parts = [f"{text} = {show(total)}" if len(terms) > 1 else text]
    if resource.get("percent") is not None:
        parts.append(f"{resource['percent']} % of that")
    if resource.get("capped"):
        parts.append(f"no more than {show(resource['cap'])} by its threshold")
    unit = _UNITS.get(native, "")
    result = f", that is {show(calculated)}{unit}" if len(parts) > 1 else unit
    yield f"{name} by policy {resource.get('policy')}: {'; '.join(parts)}{result}."
    if (normalized := float(resource.get("normalized") or 1.0)) != 1.0:
        yield f"This is multiplied by {normalized:g}, because its cpu is that much faster."
    if resource.get("third_party"):
        yield f"{show(resource['third_party'])} of it are handed out by others already."
    if offered != calculated:
        yield f"It offers {show(offered)}{unit}."


def _term(term: Raw, *, first: bool, show: Any) -> str:
    value = int(term["value"])
    sign = ("-" if value < 0 else "") if first else ("- " if value <= 0 else "+ ")
    return f"{sign}{show(abs(value))} {term['name']}"


def _helps(lending: Raw) -> Iterator[str]:
    if not lending or lending.get("state") == "lends":
        return
    reason = str(lending.get("reason") or "")
    if "report" in reason:
        yield "a report from the agent of this node: look whether it runs there"
    elif "off" in reason:
        yield "colocation switched on, for the cluster and for this node, in slo-controller-config"


# -- what is taken and how busy it is ----------------------------------------------------------


def _taken(facts: Facts) -> stories.Chapter:
    offer = facts.offer
    if offer is None or not any(offer.published.values()):
        return stories.Chapter("lent", ())
    sentences = []
    for native, published in offer.published.items():
        taken, left = offer.lent.get(native, 0), offer.left(native)
        text = (
            f"Of {wording.amount(native, published)}{_UNITS[native] or ' of memory'} that it "
            f"publishes, batch pods hold {wording.amount(native, taken)}; "
        )
        if left >= 0:
            rest = wording.count(wording.amount(native, left), "is", "are")
            sentences.append(f"{text}{rest} left.")
        else:
            sentences.append(
                f"{text}that is {wording.amount(native, -left)} more than it lends now."
            )
    return stories.Chapter("lent", tuple(sentences), dataclasses.asdict(offer))


def _load(facts: Facts) -> stories.Chapter:
    metric, node = facts.metric, facts.node
    if metric is None or metric.status.node_metric is None or node is None:
        return stories.Chapter("load", ("Its agent has not reported what it uses.",))
    offered = resources.node_allocatable(node)
    usage = metric.status.node_metric.node_usage.resources
    expected = (facts.load or {}).get("nodeDelta") or {}
    sentences, figures = [], {}
    for name in (names.CPU, names.MEMORY):
        total = offered.get(name, 0)
        try:
            used = quantity.amount(name, usage.get(name, 0))
        except quantity.QuantityError:
            continue  # The agent wrote no amount; the story of load goes without it.
        share = f" ({100 * used / total:.0f} %)" if total else ""
        amount = wording.amount(name, used)
        are = wording.form(amount, "is", "are")
        text = f"{amount} of {wording.named(name, total)} {are} in use{share}"
        more = int(expected.get(name, 0))
        if more:
            later = wording.count(wording.amount(name, more), "more is", "more are")
            text += f", {later} expected of pods that came lately"
        sentences.append(f"{text}.")
        figures[name] = {"used": used, "allocatable": total, "expectedInAddition": more}
    if metric.status.update_time is not None:
        age = facts.now - metric.status.update_time
        sentences.append(f"That was measured {age:.0f} s ago.")
    own = node.metadata.annotations.get(names.ANNOTATION_USAGE_THRESHOLDS)
    if own:
        sentences.append(f"It has load thresholds of its own: {own}.")
    return stories.Chapter("load", tuple(sentences), figures)


def _events(facts: Facts) -> stories.Chapter:
    told = [event for event in facts.events if "koord" in _reporter(event)]
    sentences = [
        f"{event.get('reason')}: {stories.ended(str(event.get('message') or ''))}"
        for event in told[-3:]
    ]
    return stories.Chapter("events", tuple(sentences))


def _reporter(event: Raw) -> str:
    source = event.get("source") or {}
    return str(event.get("reportingComponent") or source.get("component") or "")


def read_metric(raw: Raw) -> nodemetric.NodeMetric | None:
    """Read a report; None for one that cannot be read."""
    return reading.either(None, nodemetric.read_node_metric, raw)


def read_node(raw: Raw) -> core.Node | None:
    """Read a node; None for one that cannot be read."""
    return reading.either(None, msgspec.convert, raw, core.Node)
