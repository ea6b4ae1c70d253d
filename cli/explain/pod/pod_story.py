"""The story of a pod: who changed it, what holds it, which nodes refused it, what would help."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import untrusted
from cli import reading
from cli.explain import interference_chapter, stories
from cli.explain.pod import (
    placement_layer,
    pod_facts,
    preemption_layer,
    quota_layer,
    reservation_layer,
    scheduling_layer,
)
from domain import wording
from domain.pods import pod_consistency, profile_effects, resources

Raw = Mapping[str, Any]

_MISSED = ("AdmissionMissed", "AdmissionWouldRefuse")
_PROD_TOP = 9999
"""Above this lie only system pods and mistakes."""


def told(facts: pod_facts.Facts) -> stories.Story:
    """Return the story."""
    if facts.pod is None:
        return _absent(facts)
    try:
        pod = pod_facts.read(facts)
    except reading.UNREADABLE as error:
        verdict = f"Pod {facts.key} cannot be read: {reading.why(error)}."
        return stories.Story(f"pod {facts.key}", verdict)
    tell = stories.guarded
    chapters = [
        tell("admission", _admission, facts, pod),
        tell("quota", quota_layer.told, facts.quotas, pod, facts.planned),
    ]
    if facts.trial is not None:
        return stories.Story(
            f"pod {facts.key}",
            f"Pod {facts.key} would be accepted; it was only tried.",
            tuple(chapters),
        )
    chapters += [
        tell("reservation", reservation_layer.told, facts.reservations, pod),
        tell("scheduling", scheduling_layer.told, facts, pod),
        tell("preemption", preemption_layer.told, facts.page, facts.planned is not None),
        tell("topology", placement_layer.topology, pod),
        tell("devices", placement_layer.devices, pod),
        tell("node", _node, facts),
        tell("interference", interference_chapter.of_pod, facts.metric, facts.key),
    ]
    return stories.Story(
        subject=f"pod {facts.key}",
        verdict=reading.either(f"Pod {facts.key} exists.", _verdict, facts, pod),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=(
            *reading.either((), quota_layer.helps, facts.quotas, pod),
            *reading.either((), reservation_layer.helps, facts.reservations, pod),
            *reading.either((), scheduling_layer.helps, facts, pod),
        ),
    )


# -- there is no such pod --------------------------------------------------------------------


def _absent(facts: pod_facts.Facts) -> stories.Story:
    subject = f"pod {facts.key}"
    if facts.trial is not None:
        sentences = tuple(_refusal(facts.trial))
        return stories.Story(
            subject,
            f"Pod {facts.key} would be refused at admission.",
            (stories.Chapter("admission", sentences),),
            ("the change that the message names; the pod was only tried, nothing was created",),
        )
    refused = [
        event for event in facts.creations if reading.either(False, _concerns, event, facts.key)
    ]
    sentences = stories.guarded("admission", _refusals, facts.reviews or {}, refused).sentences
    helps = "the change that the message names, in the pod or in its owner's template"
    verdict = f"There is no pod {facts.key}."
    if sentences:
        verdict = f"There is no pod {facts.key}: it could not be created."
    return stories.Story(
        subject,
        verdict,
        (stories.Chapter("admission", sentences),) if sentences else (),
        (
            helps
            if sentences
            else "its file: `koord explain pod -f FILE` tries it and says what admission answers",
        ),
        found=False,
    )


def _refusals(reviews: Raw, refused: Sequence[Raw]) -> stories.Chapter:
    return stories.Chapter("admission", (*_answered(reviews), *_creations(refused)))


def _answered(reviews: Raw) -> Iterator[str]:
    """Yield the refusals among the answers of admission."""
    for answer in reviews.get("answers") or ():
        if answer.get("result") == "refused":
            reasons = stories.ended("; ".join(map(str, answer.get("reasons") or ())))
            tried = "when it was tried" if answer.get("dryRun") else "when it was to be created"
            yield f"Admission refused it at {answer.get('at')} {tried}: {reasons}"


def _concerns(event: Raw, key: str) -> bool:
    """Whether an event about an owner may be about this pod: pods are named after their owner."""
    name, about = key.partition("/")[2], str((event.get("involvedObject") or {}).get("name", ""))
    return bool(about) and (
        name == about or name.startswith(f"{about}-") or f'"{name}"' in pod_facts.note(event)
    )


def _creations(refused: Sequence[Raw]) -> Iterator[str]:
    for event in refused[-3:]:
        about = event.get("involvedObject") or {}
        yield f"{about.get('kind')} {about.get('name')} could not create it:"
        yield from _refusal(pod_facts.note(event))


def _refusal(message: str) -> Iterator[str]:
    """Yield who refused and why, a sentence each."""
    head, found, reason = message.partition(" denied the request: ")
    if not found:
        yield stories.ended(message)
        return
    webhook = head.rpartition("admission webhook ")[2].strip('"')
    yield f"Webhook {webhook} refused it: {stories.ended(reason)}"


# -- what becomes of it ----------------------------------------------------------------------


def _verdict(facts: pod_facts.Facts, pod: core.Pod) -> str:
    name = f"Pod {facts.key}"
    if pod.finished:
        return f"{name} has ended ({pod.status.phase})."
    if pod.spec.node_name:
        return f"{name} is on node {pod.spec.node_name}."
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return f"{name} waits behind {gates}."
    if _asked(facts):
        return f"{name} waits: {_asked(facts)}."
    return f"{name} waits for a node."


def _asked(facts: pod_facts.Facts) -> str:
    present = (facts.page or {}).get("present") or {}
    if present.get("groups") and not present.get("passed"):
        if present["asked"] == 1:
            return "the only node that was asked refuses it"
        return f"all {present['asked']} nodes that were asked refuse it"
    if pod_facts.condition(facts):
        return "no node takes it"
    return ""


# -- admission -------------------------------------------------------------------------------


def _admission(facts: pod_facts.Facts, pod: core.Pod) -> stories.Chapter:
    notes = pod.metadata.annotations
    record = _record(notes)
    effects = tuple(profile_effects.effects_in(record.get("profiles")))
    sentences = [*_profiles(notes, effects), *_rewritten(record), *_classes(pod)]
    sentences += [
        f"Admission has not seen it as it should have: {pod_facts.said(event)}"
        for event in facts.events
        if event.get("reason") in _MISSED
    ]
    requests = resources.pod_requests(pod)
    band, quality = qos.band_of_pod(pod), qos.qos_of(pod.metadata.labels)
    sentences += [
        f"It contradicts itself: {stories.ended(fault)}"
        for fault in pod_consistency.of_pod(quality, band, requests)
    ]
    figures = {
        "profiles": [name for name in notes.get(names.ANNOTATION_PROFILES, "").split(",") if name],
        "effects": [
            {"by": one.by, "path": one.path, "before": one.before, "after": one.after}
            for one in effects
        ],
        "qos": str(qos.of_pod(pod)),
        "band": band.value,
        "priority": pod.spec.priority,
        "requests": requests,
    }
    return stories.Chapter("admission", tuple(sentences), figures)


def _record(notes: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        return untrusted.decode(
            notes.get(names.ANNOTATION_CHANGES, "{}"), dict[str, Any], names.ANNOTATION_CHANGES
        )
    except untrusted.ReadError:
        return {}


def _profiles(notes: Mapping[str, str], effects: Sequence[profile_effects.Effect]) -> Iterator[str]:
    signed = notes.get(names.ANNOTATION_PROFILES)
    if signed is None:
        yield "No ClusterColocationProfile changed it."
        return
    for name in filter(None, signed.split(",")):
        changes = [
            f"{one.path} from {_value(one.before)} to {_value(one.after)}"
            for one in effects
            if one.by == name
        ]
        told = f": {'; '.join(changes)}." if changes else "."
        yield f"ClusterColocationProfile {name} matched it and changed it{told}"


def _value(written: Any) -> str:
    return "nothing" if written is None else str(written)


def _rewritten(record: Mapping[str, Any]) -> Iterator[str]:
    instead = record.get("resources")
    if isinstance(instead, list) and instead:
        into = ", ".join(map(str, instead))
        yield f"What it asked of cpu and memory was turned into {into}, which nodes lend."
    renamed = record.get("renamed")
    if isinstance(renamed, Mapping) and renamed:
        pairs = ", ".join(f"{old} by {new}" for old, new in renamed.items())
        yield f"Retired names of resources were replaced: {pairs}."
    if record.get("tree"):
        yield f"It was pinned to the nodes of quota tree {record['tree']}."


def _classes(pod: core.Pod) -> Iterator[str]:
    band, asks = qos.band_of_pod(pod), resources.pod_requests(pod)
    shown = ", ".join(wording.named(name, value) for name, value in sorted(asks.items()))
    yield (
        f"It counts as {qos.of_pod(pod)} in band {band.value or 'none'} and asks for "
        f"{shown or 'nothing'}."
    )
    priority = pod.spec.priority
    if priority is not None and priority > _PROD_TOP and not asks:
        yield (
            f"Its priority of {priority} makes it the last to be evicted; without requests it gets "
            "no protection of cpu or memory on the node."
        )


# -- quota -----------------------------------------------------------------------------------


# -- node ------------------------------------------------------------------------------------


def _node(facts: pod_facts.Facts) -> stories.Chapter:
    if not facts.lending or not facts.lending.get("sentence"):
        return stories.Chapter("node", ())
    text = f"Node {facts.lending['node']} {stories.ended(facts.lending['sentence'])}"
    return stories.Chapter("node", (text,), {"lending": dict(facts.lending)})
