"""The story of a pod: who changed it, what holds it, which nodes refused it, what would help."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from api import core, names, qos
from cli import explain_capacity, explain_story
from domain import contradictions, profile_effects, resources, wording

Raw = Mapping[str, Any]

_TOLD = ("NodesRefused", "NodesWouldBeRefused")
_MISSED = ("AdmissionMissed", "AdmissionWouldRefuse")
_CLAIMS = " no new claims to deallocate,"
"""What the scheduler appends about preemption, cut off."""
_PROD_TOP = 9999
"""Above this lie only system pods and mistakes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a pod; None or empty where nothing was there or could be read."""

    key: str
    pod: Raw | None = None
    events: Sequence[Raw] = ()
    """Events about the pod."""
    creations: Sequence[Raw] = ()
    """Events about pods of its namespace that could not be created."""
    reviews: Raw | None = None
    """What admission answered about it."""
    explanation: Raw | None = None
    """The ScheduleExplanation about it."""
    page: Raw | None = None
    """What the extender knows of it."""
    offers: Sequence[explain_capacity.Offer] | None = None
    """What nodes have left for batch work; None unless that was looked at."""
    trial: str | None = None
    """The API server's refusal of a pod that was only tried, empty if it was accepted; None for a
    pod that was not tried."""
    lending: Raw | None = None
    """Why the node in question lends what it lends."""


def told(facts: Facts) -> explain_story.Story:
    """Return the story."""
    if facts.pod is None:
        return _absent(facts)
    pod = msgspec.convert(facts.pod, core.Pod)
    if facts.trial is not None:
        return explain_story.Story(
            f"pod {facts.key}",
            f"Pod {facts.key} would be accepted; it was only tried.",
            (_admission(facts, pod), _quota(pod)),
        )
    scheduling, helps = _scheduling(facts, pod)
    chapters = (_admission(facts, pod), _quota(pod), scheduling, _node(facts))
    return explain_story.Story(
        subject=f"pod {facts.key}",
        verdict=_verdict(facts, pod),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=helps,
    )


def nearest(facts: Facts) -> str:
    """Return the node that a story should explain: where the pod is, or where it nearly was."""
    placed = ((facts.pod or {}).get("spec") or {}).get("nodeName")
    if placed:
        return str(placed)
    groups = ((facts.page or {}).get("present") or {}).get("groups") or ()
    if groups:
        return str(groups[0]["nearest"]["node"])
    if facts.pod is not None and facts.offers is not None:
        wanted = explain_capacity.asked(msgspec.convert(facts.pod, core.Pod))
        return explain_capacity.outlook(wanted, facts.offers).nearest
    return ""


# -- there is no such pod --------------------------------------------------------------------


def _absent(facts: Facts) -> explain_story.Story:
    subject = f"pod {facts.key}"
    if facts.trial is not None:
        sentences = tuple(_refusal(facts.trial))
        return explain_story.Story(
            subject,
            f"Pod {facts.key} would be refused at admission.",
            (explain_story.Chapter("admission", sentences),),
            ("the change that the message names; the pod was only tried, nothing was created",),
        )
    refused = [event for event in facts.creations if _concerns(event, facts.key)]
    sentences = (*_answered(facts.reviews or {}), *_creations(refused))
    helps = "the change that the message names, in the pod or in its owner's template"
    verdict = f"There is no pod {facts.key}."
    if sentences:
        verdict = f"There is no pod {facts.key}: it could not be created."
    return explain_story.Story(
        subject,
        verdict,
        (explain_story.Chapter("admission", sentences),) if sentences else (),
        (
            helps
            if sentences
            else "its file: `koord explain pod -f FILE` tries it and says what admission answers",
        ),
        found=False,
    )


def _answered(reviews: Raw) -> Iterator[str]:
    """Yield the refusals among the answers of admission."""
    for answer in reviews.get("answers") or ():
        if answer.get("result") == "refused":
            reasons = explain_story.ended("; ".join(map(str, answer.get("reasons") or ())))
            tried = "when it was tried" if answer.get("dryRun") else "when it was to be created"
            yield f"Admission refused it at {answer.get('at')} {tried}: {reasons}"


def _concerns(event: Raw, key: str) -> bool:
    """Whether an event about an owner may be about this pod: pods are named after their owner."""
    name, about = key.partition("/")[2], str((event.get("involvedObject") or {}).get("name", ""))
    return bool(about) and (
        name == about or name.startswith(f"{about}-") or f'"{name}"' in _note(event)
    )


def _creations(refused: Sequence[Raw]) -> Iterator[str]:
    for event in refused[-3:]:
        about = event.get("involvedObject") or {}
        yield f"{about.get('kind')} {about.get('name')} could not create it:"
        yield from _refusal(_note(event))


def _refusal(message: str) -> Iterator[str]:
    """Yield who refused and why, a sentence each."""
    head, found, reason = message.partition(" denied the request: ")
    if not found:
        yield explain_story.ended(message)
        return
    webhook = head.rpartition("admission webhook ")[2].strip('"')
    yield f"Webhook {webhook} refused it: {explain_story.ended(reason)}"


# -- what becomes of it ----------------------------------------------------------------------


def _verdict(facts: Facts, pod: core.Pod) -> str:
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


def _asked(facts: Facts) -> str:
    present = (facts.page or {}).get("present") or {}
    if present.get("groups") and not present.get("passed"):
        if present["asked"] == 1:
            return "the only node that was asked refuses it"
        return f"all {present['asked']} nodes that were asked refuse it"
    if _condition(facts):
        return "no node takes it"
    return ""


def _condition(facts: Facts) -> str:
    for condition in ((facts.pod or {}).get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or "")
    return ""


# -- admission -------------------------------------------------------------------------------


def _admission(facts: Facts, pod: core.Pod) -> explain_story.Chapter:
    notes = pod.metadata.annotations
    record = _record(notes)
    effects = tuple(profile_effects.effects_in(record.get("profiles")))
    sentences = [*_profiles(notes, effects), *_rewritten(record), *_classes(pod)]
    sentences += [
        f"Admission has not seen it as it should have: {explain_story.ended(_note(event))}"
        for event in facts.events
        if event.get("reason") in _MISSED
    ]
    requests = resources.pod_requests(pod)
    band, quality = qos.band_of_pod(pod), qos.qos_of(pod.metadata.labels)
    sentences += [
        f"It contradicts itself: {explain_story.ended(fault)}"
        for fault in contradictions.of_pod(quality, band, requests)
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
    return explain_story.Chapter("admission", tuple(sentences), figures)


def _record(notes: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(notes.get(names.ANNOTATION_CHANGES, "{}"))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


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


def _quota(pod: core.Pod) -> explain_story.Chapter:
    named = pod.metadata.labels.get(names.LABEL_QUOTA_NAME, "")
    known = f"It names quota {named}; quotas" if named else "Quotas"
    sentences = [f"{known} are not enforced by this version: nothing is held back or promised."]
    if any(gate.name == names.GATE_QUOTA for gate in pod.spec.scheduling_gates):
        sentences.append(f"It waits behind the gate {names.GATE_QUOTA}.")
    return explain_story.Chapter("quota", tuple(sentences), {"quota": named})


# -- scheduling ------------------------------------------------------------------------------


def _scheduling(facts: Facts, pod: core.Pod) -> tuple[explain_story.Chapter, tuple[str, ...]]:
    if pod.spec.node_name:
        return _placed(pod), ()
    sentences: list[str] = []
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        sentences.append(f"Its gates keep every scheduler from trying it: {gates}.")
    message = _condition(facts).partition(" preemption: ")[0].removesuffix(_CLAIMS)
    if message:
        sentences.append(
            f"Scheduler {pod.spec.scheduler_name} says: {explain_story.ended(message)}"
        )
    elif not pod.spec.scheduling_gates:
        sentences.append(f"Scheduler {pod.spec.scheduler_name} has not said anything about it yet.")
    groups, helps = _refusals(facts)
    sentences += groups
    figures: dict[str, Any] = {"scheduler": pod.spec.scheduler_name, "message": message}
    if facts.page:
        figures["extender"] = dict(facts.page)
    wanted = explain_capacity.asked(pod)
    if wanted and facts.offers is not None:
        outlook = explain_capacity.outlook(wanted, facts.offers)
        sentences += outlook.sentences
        helps = (*helps, *outlook.helps)
        figures["batch"] = [dataclasses.asdict(offer) for offer in facts.offers]
    return explain_story.Chapter("scheduling", tuple(sentences), figures), tuple(
        dict.fromkeys(helps)
    )


def _placed(pod: core.Pod) -> explain_story.Chapter:
    try:
        placement = msgspec.json.decode(pod.metadata.annotations.get(names.PLACEMENT, "{}"))
    except msgspec.DecodeError:
        placement = {}
    if not placement:
        text = f"{pod.spec.scheduler_name} or somebody else placed it; the extender did not."
        return explain_story.Chapter("scheduling", (text,))
    reasons = "; ".join(map(str, placement.get("reasons") or ())) or "no plug-in had a say"
    granted = [
        f"{plugin} granted {', '.join(f'{value} {name}' for name, value in amounts.items())}."
        for plugin, amounts in (placement.get("granted") or {}).items()
    ]
    text = f"The extender bound it at {placement.get('at')}: {reasons}."
    return explain_story.Chapter("scheduling", (text, *granted), {"placement": placement})


def _refusals(facts: Facts) -> tuple[list[str], tuple[str, ...]]:
    """Return what refused it, from the freshest that is known, and what would help."""
    present = (facts.page or {}).get("present") or {}
    if present.get("groups"):
        first, *_ = present["groups"]
        return list(_grouped(present)), tuple(first["nearest"]["wouldHelp"])
    status = (facts.explanation or {}).get("status") or {}
    if status.get("failedMessage") and not status.get("schedulable"):
        message, _, helps = str(status["failedMessage"]).partition(" What would help: ")
        sentences = [f"As of {status.get('lastUpdateTime')}: {explain_story.ended(message)}"]
        return sentences, tuple(filter(None, helps.removesuffix(".").split("; or ")))
    told = [event for event in facts.events if event.get("reason") in _TOLD]
    return [f"The extender said: {explain_story.ended(_note(event))}" for event in told[-1:]], ()


def _grouped(present: Raw) -> Iterator[str]:
    for group in present["groups"]:
        nearest = group["nearest"]
        shown = ", ".join(group["nodes"][:5])
        more = f" and {group['count'] - 5} more" if group["count"] > 5 else ""
        yield f"{group['count']} refused: {group['reason']} ({shown}{more})."
        if nearest["figures"]:
            why = explain_story.ended(nearest["figures"])
            yield f"The nearest miss is {nearest['node']}: {why}"
    if present.get("passed"):
        yield f"{present['passed']} of {present['asked']} would take it now; it is woken soon."


# -- node ------------------------------------------------------------------------------------


def _node(facts: Facts) -> explain_story.Chapter:
    if not facts.lending or not facts.lending.get("sentence"):
        return explain_story.Chapter("node", ())
    text = f"Node {facts.lending['node']} {explain_story.ended(facts.lending['sentence'])}"
    return explain_story.Chapter("node", (text,), {"lending": dict(facts.lending)})


def _note(event: Raw) -> str:
    return str(event.get("message") or event.get("note") or "")
