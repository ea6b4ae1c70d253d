"""What a workload should request, judged by what its containers used."""

import dataclasses
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from api import names, resources
from api.koordinator import event_reasons
from api.koordinator.metrics import analysis
from api.kubernetes import selectors
from api.wire import base, durations, quantity
from domain import conditions, wording
from manager.model import origins
from manager.recommendation import learned as recommended
from manager.reconcile import actions, outcomes

LOW_CONFIDENCE: Final = "LowConfidence"
NO_OBJECTS: Final = "NoObjectsMatched"
FETCHING: Final = "FetchingHistory"
UNSUPPORTED: Final = "ConfigUnsupported"
READY: Final = "Ready"
_TYPES: Final = (LOW_CONFIDENCE, NO_OBJECTS, FETCHING, UNSUPPORTED, READY)
_LONGEST_CHAIN: Final = 4
_SURE_DAYS: Final = 1.0
_MOST_NAMED: Final = 5
_KIB: Final = 1024
_LONGEST_NOTE: Final = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """Which figure becomes a request."""

    cpu_percentile: float = 0.9
    memory_percentile: float = 0.9
    target_margin: float = 0.0
    """Share that is added to the recommended requests."""
    lower_percentile: float = 0.5
    upper_percentile: float = 0.95
    bound_margin: float = 0.15
    """Share that is added to both bounds."""
    least_cpu_milli: int = 0
    least_memory: int = 0
    period_seconds: float = 30.0
    """How often it is looked at what is new; twice per interval of the reports misses none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A recommendation and what is known of its pods."""

    raw: Mapping[str, Any]
    matched: int
    """Pods that it is about."""
    reports: Mapping[str, recommended.Report]
    """What those of them used that were measured, by name."""
    now: float


Judged = conditions.Condition[str]
"""One condition of a Recommendation, some of whose types are bad news when they hold."""


def target(raw: Mapping[str, Any]) -> analysis.Target:
    """Return the workload or pods of a Recommendation; raises ValueError where it names none."""
    found = base.read(analysis.Recommendation, {**raw, "status": {}}).spec.target
    if found.pod_selector is not None and found.type == "podSelector":
        selectors.matches(found.pod_selector, {})
    elif found.workload is None or not (found.workload.kind and found.workload.name):
        raise ValueError("spec.target.workload: name both kind and name")
    return found


def chain(
    origin: origins.Origin, owner_of: Callable[[origins.Owner], origins.Owner | None]
) -> list[origins.Owner]:
    """Return the owners of a pod, from its own up to the one without an owner."""
    found: list[origins.Owner] = []
    owner = origin.owner
    while owner is not None and owner not in found and len(found) < _LONGEST_CHAIN:
        found.append(owner)
        owner = owner_of(owner)
    return found


def choice(wanted: analysis.Target) -> Callable[[origins.Origin, Iterable[origins.Owner]], bool]:
    """Return what tells of a pod whether it is one of those that a recommendation is about."""
    if wanted.type == "podSelector":
        written = wanted.pod_selector
        selector = written and selectors.prepared(written.model_dump(mode="json", by_alias=True))
        return lambda origin, _: selectors.matches(selector, origin.labels)
    named = wanted.workload
    return lambda _, owners: (
        named is not None
        and any(
            (owner.kind, owner.name) == (named.kind, named.name)
            and named.api_version in ("", owner.api_version)
            for owner in owners
        )
    )


def planned(seen: Seen, rules: Rules) -> actions.Plan:
    """Plan the status of a recommendation."""
    try:
        wanted = target(seen.raw)
    except ValueError as error:
        why = str(error).partition("\n")[0][:_LONGEST_NOTE]
        judged = [Judged(UNSUPPORTED, True, "Unreadable", why)]
        return _written(seen, judged, {}, f"not supported: {why}", None)
    status = base.section(seen.raw, "status")
    learned, told = _learned(seen, wanted, status)
    taken = learned.learn(seen.reports, seen.now)
    judged = _judged(seen, learned)
    message = (
        f"{wording.count(seen.matched, 'pod', 'pods')}, {len(seen.reports)} measured, "
        f"{wording.count(taken, 'new figure', 'new figures')}"
    )
    if not taken:
        return _written(seen, judged, {}, message, rules, told)
    figures = {
        "podStatus": {
            "containerStatuses": [
                _answer(name, part, rules) for name, part in sorted(learned.containers.items())
            ]
        },
        "updateTime": durations.moment(seen.now),
        "checkpoint": learned.written(),
    }
    return _written(seen, judged, figures, message, rules, told)


def _learned(
    seen: Seen, wanted: analysis.Target, status: Mapping[str, Any]
) -> tuple[recommended.Learned, tuple[actions.Tell, ...]]:
    text = json.dumps(wanted.model_dump(mode="json"), sort_keys=True)
    fingerprint = f"{zlib.crc32(text.encode()):08x}"
    try:
        return recommended.read(str(status.get("checkpoint") or ""), fingerprint), ()
    except recommended.StateError as error:
        note = f"status.checkpoint cannot be read, the history begins afresh: {error}"
        return recommended.Learned(fingerprint), (_tell(seen, "CheckpointUnreadable", note),)


def _answer(name: str, part: recommended.Container, rules: Rules) -> dict[str, Any]:
    shares = (rules.cpu_percentile, rules.lower_percentile, rules.upper_percentile)
    cpu = part.cpu.percentiles(shares)
    memory = part.memory.percentiles((rules.memory_percentile, *shares[1:]))
    found = {
        "containerName": name,
        "resources": _request(cpu[0], memory[0], 1 + rules.target_margin, rules),
    }
    if part.days > 0:
        # The less is known, the further the bounds lie apart.
        lower = (1 + 0.001 / part.days) ** -2
        upper = 1 + 1 / part.days
        margin = 1 + rules.bound_margin
        found["lowerBound"] = _request(cpu[1], memory[1], margin * lower, rules)
        found["upperBound"] = _request(cpu[2], memory[2], margin * upper, rules)
    return found


def _request(cores: float, size: float, factor: float, rules: Rules) -> dict[str, str]:
    milli = max(1, rules.least_cpu_milli, math.ceil(cores * 1000 * factor - 1e-6))
    whole = max(_KIB, rules.least_memory, math.ceil(size * factor / _KIB) * _KIB)
    return quantity.texts({names.CPU: milli, names.MEMORY: whole})


def _judged(seen: Seen, learned: recommended.Learned) -> list[Judged]:
    fetching = bool(seen.matched) and not learned.containers
    return [
        _confidence(learned),
        Judged(NO_OBJECTS, False, "PodsFound", "running pods belong to the target")
        if seen.matched
        else Judged(NO_OBJECTS, True, "NoPods", "no running pod belongs to the target"),
        Judged(FETCHING, True, "NoFiguresYet", "no agent has reported what the pods use")
        if fetching
        else Judged(FETCHING, False, "FiguresFound", "nothing is waited for"),
        Judged(UNSUPPORTED, False, "Readable", "the target is understood"),
    ]


def _confidence(learned: recommended.Learned) -> Judged:
    if not learned.containers:
        return Judged(LOW_CONFIDENCE, True, "NoHistory", "nothing is known yet")
    unsure = [
        f"{name} ({wording.count(f'{part.days:.2g}', 'day', 'days')})"
        for name, part in sorted(learned.containers.items())
        if part.days < _SURE_DAYS
    ]
    if not unsure:
        note = "at least a day is known of every container"
        return Judged(LOW_CONFIDENCE, False, "EnoughHistory", note)
    more = f" and {len(unsure) - _MOST_NAMED} more" if len(unsure) > _MOST_NAMED else ""
    note = f"less than a day is known of {', '.join(unsure[:_MOST_NAMED])}{more}"
    return Judged(LOW_CONFIDENCE, True, "ShortHistory", note)


def _written(
    seen: Seen,
    judged: list[Judged],
    figures: dict[str, Any],
    message: str,
    rules: Rules | None,
    told: tuple[actions.Tell, ...] = (),
) -> actions.Plan:
    metadata, status = base.section(seen.raw, "metadata"), base.section(seen.raw, "status")
    generation = metadata.get("generation")
    present, ready = status.get("conditions"), _ready(judged)
    facts = conditions.merged(
        present, [*judged, ready], seen.now, types=_TYPES, generation=generation
    )
    about = (
        resources.RECOMMENDATIONS,
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        metadata.get("uid", ""),
    )
    told = (*told, *outcomes.told(about, present, (ready,)))
    again = None if rules is None else rules.period_seconds
    if not figures and facts is None:
        return actions.Plan(message, told, again)
    changed = figures if facts is None else {**figures, "conditions": facts}
    body = {
        # Another writer in between has counted as well; then everything is looked at anew.
        "metadata": {"resourceVersion": metadata.get("resourceVersion", "")},
        "status": changed,
    }
    step = actions.PatchStatus(
        resources.RECOMMENDATIONS, metadata.get("name", ""), body, metadata.get("namespace", "")
    )
    return actions.Plan(message, (step, *told), again)


def _ready(judged: list[Judged]) -> outcomes.Condition:
    """Return whether workloads are advised, and what keeps them from it first."""
    facts = {one.type: one for one in judged if one.holds}
    if one := facts.get(UNSUPPORTED):
        return outcomes.Condition(READY, False, "TargetUnreadable", one.message)
    if one := facts.get(NO_OBJECTS):
        return outcomes.Condition(READY, False, "NoPodsMatched", one.message)
    if one := facts.get(FETCHING):
        return outcomes.Condition(READY, False, "NoFiguresYet", one.message)
    note = "requests are recommended by what the pods use"
    return outcomes.Condition(READY, True, "FiguresReported", note)


def _tell(seen: Seen, reason: event_reasons.Reason, note: str) -> actions.Tell:
    metadata = base.section(seen.raw, "metadata")
    return actions.Tell(
        resources.RECOMMENDATIONS,
        metadata.get("name", ""),
        metadata.get("uid", ""),
        reason,
        note,
        warning=True,
        namespace=metadata.get("namespace", ""),
    )
