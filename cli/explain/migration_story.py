"""The story of a PodMigrationJob: why a pod moves, how far that is, what it has brought."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator import migration
from api.kubernetes import meta
from api.wire import durations, untrusted
from cli import reading
from cli.explain import stories
from cli.explain.pod import pod_facts

Raw = Mapping[str, Any]

_MOST_NEAR: Final = 5
_LONGEST: Final = 300
"""Characters of a text of another author that are repeated."""
_STEPS: Final = (
    ("ReservationCreated", "a Reservation for its new place exists"),
    ("ReservationScheduled", "the Reservation has a node"),
    ("Eviction", "the pod has left its node"),
    ("PodScheduled", "the pod has been scheduled"),
    ("PodBoundReservation", "its replacement uses the Reservation"),
    ("ReservationBound", "the Reservation is used up by its replacement"),
    ("BoundPodReady", "its replacement is ready"),
)
"""Types of conditions in the order in which they come about, and what they say when true."""


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about migrations."""

    name: str
    """Of a job, or namespace/name of a pod: the one that moves, or the one that replaced it."""
    jobs: Sequence[Raw]
    now: float
    events: Sequence[Raw] = ()
    """Events about the job, the oldest first."""


def told(facts: Facts) -> stories.Story:
    """Return the story of the job, of a pod the latest of its jobs."""
    about = jobs_of(facts)
    if not about:
        return stories.Story(f"migration {facts.name}", _absent(facts), found=False)
    one = about[0]
    tell = stories.guarded
    chapters = (
        tell("why", _why, one),
        tell("progress", _progress, one, facts.now),
        tell("events", _events, facts.events),
        tell("receipt", _receipt, one),
        tell("earlier moves", _earlier, about[1:]),
    )
    return stories.Story(
        subject=f"migration {_name(one)}",
        verdict=reading.either(f"PodMigrationJob {_name(one)} exists.", _verdict, one),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=reading.either((), lambda: tuple(_helps(one))),
    )


def jobs_of(facts: Facts) -> list[Raw]:
    """Return the jobs that the name is about, the latest first."""
    found = [raw for raw in facts.jobs if facts.name in _known_as(raw)]
    return sorted(found, key=lambda raw: _text(_metadata(raw), "creationTimestamp"), reverse=True)


def _known_as(raw: Raw) -> set[str]:
    """Return the names under which people look for a job."""
    keys = (_key(_section(_section(raw, part), "podRef")) for part in ("spec", "status"))
    return {_name(raw), *(key for key in keys if key)}


def _absent(facts: Facts) -> str:
    known = sorted(name for raw in facts.jobs for name in _known_as(raw))
    near = [name for name in known if facts.name in name][:_MOST_NEAR]
    there = f"; there are {', '.join(near)}" if near else ""
    if "/" in facts.name:
        return f"No PodMigrationJob moves pod {facts.name} or has moved it here{there}."
    return f"There is no PodMigrationJob {facts.name} among {len(facts.jobs)}{there}."


def _verdict(raw: Raw) -> str:
    job = migration.read_pod_migration_job(raw)
    status, pod = job.status, _key(_section(_section(raw, "spec"), "podRef"))
    node = f" to node {status.node_name}" if status.node_name else ""
    why = stories.ended(_cut(status.message or status.reason or "no reason given"))
    match status.phase:
        case "" | "Pending":
            return f"Pod {pod} is to move: the job waits for its turn."
        case "Running":
            now = f": {why}" if status.message or status.reason else "."
            return f"Pod {pod} is being moved{node}{now}"
        case "Succeeded":
            return f"Pod {pod} has been moved{node or ' off its node'}."
        case "Aborted":
            return f"The move of pod {pod} was aborted."
        case _:
            return f"Pod {pod} was not moved ({status.reason or status.phase}): {why}"


def _why(raw: Raw) -> stories.Chapter:
    """Say which plug-in moves the pod, for what, and what it is expected to gain."""
    notes = _section(_metadata(raw), "annotations")
    trigger = _cut(_text(notes, names.ANNOTATION_EVICT_TRIGGER))
    reason = _cut(_text(notes, names.ANNOTATION_EVICT_REASON))
    profile = _cut(_text(notes, names.ANNOTATION_MIGRATION_PROFILE))
    target = _cut(_text(notes, names.ANNOTATION_MIGRATION_TARGET))
    gain = _cut(_text(notes, names.ANNOTATION_MIGRATION_GAIN))
    group = _cut(_text(notes, names.ANNOTATION_MIGRATION_GROUP))
    sentences = []
    if trigger and reason:
        sentences.append(f"{trigger} moves it: {stories.ended(reason)}")
    elif trigger or reason:
        sentences.append(stories.ended(f"It is moved for: {trigger or reason}"))
    else:
        sentences.append(
            "It names no plug-in of the descheduler: a person or a program created the job."
        )
    if profile:
        sentences.append(f"It names profile {profile} of the descheduler.")
    if target:
        sentences.append(f"The round chose node {target}, on which the scheduler would place it.")
    if gain:
        sentences.append(stories.ended(f"Expected gain: {gain}"))
    if group:
        sentences.append(f"It moves together with the other pods of {group}, or not at all.")
    figures = {"trigger": trigger, "reason": reason, "target": target, "gain": gain}
    more = {"group": group, "profile": profile}
    return stories.Chapter("why", tuple(sentences), figures | more)


def _progress(raw: Raw, now: float) -> stories.Chapter:
    """Say which steps are done, and since when the next one is awaited."""
    job = migration.read_pod_migration_job(raw)
    spec, status = job.spec, job.status
    sentences = [_mode(spec)]
    if spec.paused:
        sentences.append("It is paused: nothing is done until spec.paused is removed.")
    for kind, done in _STEPS:
        found = meta.condition(status.conditions, kind)
        if found is None:
            continue
        if found.status == "True":
            sentences.append(f"Done: {done}.")
        else:
            note = f": {_cut(found.message)}" if found.message else ""
            sentences.append(stories.ended(f"Not yet: {done} ({found.reason}{note})"))
    left = None
    if status.phase in {"", "Pending", "Running"}:
        left, said = _time_left(raw, job, now)
        sentences += said
    if status.pod_ref is not None and status.pod_ref.name:
        pod = f"{status.pod_ref.namespace}/{status.pod_ref.name}"
        sentences.append(f"Pod {pod} replaces it.")
    figures = {
        "phase": status.phase or "Pending",
        "reason": status.reason,
        "conditions": {one.type: one.status for one in status.conditions},
        "node": status.node_name,
        "secondsLeft": left,
    }
    return stories.Chapter("progress", tuple(sentences), figures)


def _time_left(
    raw: Raw, job: migration.PodMigrationJob, now: float
) -> tuple[float | None, Sequence[str]]:
    """Return in how many seconds an open job fails, None where it does not, and say so."""
    begins = durations.timestamp(_text(_metadata(raw), "creationTimestamp"))
    found = meta.condition(job.status.conditions, "Suspended")
    if found is not None and found.status == "True":
        why = f"It stands still ({found.reason}): the live switch of the descheduler is not enforce"
        return None, (f"{why}. Its ttl counts anew once it is.",)
    if not job.spec.ttl:
        return None, ()
    if found is not None and found.last_transition_time is not None:
        begins = max(begins, found.last_transition_time)
    left = begins + job.spec.ttl - now
    return left, (f"It fails in {durations.text(max(left, 0.0))} unless it is done before (ttl).",)


def _mode(spec: migration.Spec) -> str:
    if spec.mode == migration.EVICT_DIRECTLY:
        return "The pod is evicted directly: no place is reserved for its replacement."
    if spec.mode == migration.RESERVATION_FIRST:
        return "Its new place is reserved before the pod is evicted."
    return "How it moves is up to the descheduler's defaultJobMode."


def _events(events: Sequence[Raw]) -> stories.Chapter:
    warned = [event for event in events if event.get("type") == "Warning"]
    said = tuple(f"Event {event.get('reason')}: {pod_facts.said(event)}" for event in warned[-3:])
    return stories.Chapter("events", said)


def _receipt(raw: Raw) -> stories.Chapter:
    """Say what the move has brought, as the descheduler measured it afterwards."""
    notes = _section(_metadata(raw), "annotations")
    text = _text(notes, names.ANNOTATION_MIGRATION_RECEIPT)
    if not text:
        return stories.Chapter("receipt", ())
    found = receipt(text)
    if not found:
        return stories.Chapter("receipt", ("The receipt on it cannot be read.",))
    sentence = _cut(_text(found, "sentence"))
    sentences = (stories.ended(sentence),) if sentence else ()
    return stories.Chapter("receipt", sentences, {"receipt": found})


def receipt(text: str) -> Raw:
    """Read a receipt; empty where it cannot be read."""
    found = reading.either(None, untrusted.parsed, text, names.ANNOTATION_MIGRATION_RECEIPT)
    return found if isinstance(found, dict) else {}


def _earlier(jobs: Sequence[Raw]) -> stories.Chapter:
    said = []
    for raw in jobs[:_MOST_NEAR]:
        status = _section(raw, "status")
        phase = _cut(_text(status, "phase")) or "Pending"
        moment = _cut(_text(_metadata(raw), "creationTimestamp"))
        said.append(f"{moment}: PodMigrationJob {_name(raw)}, {phase}.")
    return stories.Chapter("earlier moves", tuple(said))


def _helps(raw: Raw) -> Iterator[str]:
    job = migration.read_pod_migration_job(raw)
    if job.spec.paused:
        yield f'kubectl patch pmj {_name(raw)} --type=merge -p \'{{"spec":{{"paused":false}}}}\''
    match job.status.reason:
        case "Timeout":
            yield "a longer ttl, or defaultJobTTL of the descheduler"
        case "Unschedulable":
            yield "room on another node that the pod may use"
        case "FailedEvict":
            yield "a disruption budget that allows the eviction (kubectl get pdb)"
        case "ForbiddenMigratePod":
            yield "what the message names: the filters of the descheduler keep the pod where it is"


# -- reading ---------------------------------------------------------------------------------


def _section(raw: Raw, name: str) -> Raw:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _metadata(raw: Raw) -> Raw:
    return _section(raw, "metadata")


def _name(raw: Raw) -> str:
    return _text(_metadata(raw), "name")


def _text(raw: Raw, name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


def _key(reference: Raw) -> str:
    namespace, name = _text(reference, "namespace"), _text(reference, "name")
    return f"{namespace}/{name}" if name else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
