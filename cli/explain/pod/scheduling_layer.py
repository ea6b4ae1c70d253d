"""The part of a pod's story that is about its scheduling."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from api import names
from api.kubernetes import core
from api.wire import untrusted
from cli.explain import stories
from cli.explain.pod import batch_capacity, placement_layer, pod_facts
from domain import wording
from domain.gangs import declaration

Raw = Mapping[str, Any]

_TOLD = ("NodesRefused", "NodesWouldBeRefused")
_CLAIMS = " no new claims to deallocate,"
"""What the scheduler appends about preemption, cut off."""


def helps(facts: pod_facts.Facts, pod: core.Pod) -> tuple[str, ...]:
    """Return what would help a pod that waits, each once."""
    if pod.spec.node_name:
        return ()
    _, refused = _refusals(facts)
    asked = pod_facts.wanted(facts)
    more: Sequence[str] = ()
    if asked and facts.offers is not None:
        more = batch_capacity.outlook(asked, facts.offers).helps
    return tuple(dict.fromkeys((*refused, *more)))


def told(facts: pod_facts.Facts, pod: core.Pod) -> stories.Chapter:
    """Tell where a pod is and by whom, or what refuses it."""
    if pod.spec.node_name:
        return _placed(facts, pod)
    sentences: list[str] = []
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        sentences.append(f"Its gates keep every scheduler from trying it: {gates}.")
    sentences += _gang(pod)
    message = pod_facts.condition(facts).partition(" preemption: ")[0].removesuffix(_CLAIMS)
    if message:
        sentences.append(f"Scheduler {pod.spec.scheduler_name} says: {stories.ended(message)}")
    elif not pod.spec.scheduling_gates:
        sentences.append(f"Scheduler {pod.spec.scheduler_name} has not said anything about it yet.")
    sentences += _refusals(facts)[0]
    figures: dict[str, Any] = {"scheduler": pod.spec.scheduler_name, "message": message}
    if facts.page:
        figures["extender"] = dict(facts.page)
    asked = batch_capacity.asked(pod)
    if asked and facts.offers is not None:
        sentences += batch_capacity.outlook(asked, facts.offers).sentences
        figures["batch"] = [dataclasses.asdict(offer) for offer in facts.offers]
    return stories.Chapter("scheduling", tuple(sentences), figures)


def _gang(pod: core.Pod) -> Iterator[str]:
    """Tell what the gang of a pod waits for."""
    metadata = pod.metadata
    named = declaration.membership(
        metadata.namespace, metadata.labels, metadata.annotations, pod.spec.scheduling_group
    )
    if named is None:
        return
    name = named[0].removesuffix(declaration.NATIVE)
    said = pod.status.condition(names.CONDITION_GANG)
    if said is not None and said.status == "False" and said.message:
        yield f"Its gang {name} says: {stories.ended(said.message)}"
    yield f"koord explain gang {name} tells the story of its gang."


class _Placement(msgspec.Struct, frozen=True):
    """The part of the placement annotation that is shown; any client may have written it."""

    at: str = ""
    reasons: tuple[str, ...] = ()
    granted: dict[str, dict[str, Any]] = {}


def _placed(facts: pod_facts.Facts, pod: core.Pod) -> stories.Chapter:
    written = pod.metadata.annotations.get(names.PLACEMENT)
    other = f"{pod.spec.scheduler_name} or another scheduler placed it; the extender did not."
    if written is None:
        return stories.Chapter("scheduling", (other,))
    try:
        placement = untrusted.decode(written, _Placement, f"annotation {names.PLACEMENT}")
    except untrusted.ReadError as error:
        void = f"What it carries is void: {stories.ended(str(error))}"
        return stories.Chapter("scheduling", (other, void))
    reasons = "; ".join(placement.reasons) or "no plug-in had a say"
    granted = [
        f"{plugin} granted {', '.join(f'{value} {name}' for name, value in amounts.items())}."
        for plugin, amounts in placement.granted.items()
        if plugin not in placement_layer.PLUGINS
    ]
    text = f"The extender bound it at {placement.at}: {reasons}."
    figures: dict[str, Any] = {"placement": untrusted.parsed(written, names.PLACEMENT)}
    decision = (facts.page or {}).get("decision") or {}
    if decision:
        figures["decision"] = decision
    return stories.Chapter("scheduling", (text, *_decided(decision), *granted), figures)


def _decided(decision: Raw) -> Iterator[str]:
    """Tell who chose among the nodes that passed, and by which totals."""
    if decision.get("leftToScheduler"):
        reason = stories.ended(str(decision["leftToScheduler"]))
        yield f"The extender left the choice among nodes to kube-scheduler: {reason}"
    chosen, second = decision.get("chosen"), decision.get("runnerUp")
    if not chosen:
        return
    nodes = wording.count(decision["candidates"], "node", "nodes")
    yield f"Filter chose it among {nodes} by the total of {_total(chosen)}."
    if second and decision["ties"] > 1:
        yield f"{decision['ties']} nodes had it, among them {second['node']}; one was drawn."
    elif second:
        yield f"The runner-up, {second['node']}, had {_total(second)}."


def _total(found: Raw) -> str:
    parts = ", ".join(f"{one['plugin']} {one['points']}" for one in found["plugins"])
    return f"{wording.count(found['total'], 'point', 'points')} ({parts})"


def _refusals(facts: pod_facts.Facts) -> tuple[list[str], tuple[str, ...]]:
    """Return what refused it, from the freshest that is known, and what would help."""
    present = (facts.page or {}).get("present") or {}
    if present.get("groups"):
        first, *_ = present["groups"]
        return list(_grouped(present)), tuple(map(str, first["nearest"]["wouldHelp"]))
    status = (facts.explanation or {}).get("status") or {}
    if status.get("failedMessage") and not status.get("schedulable"):
        message, _, helps = str(status["failedMessage"]).partition(" What would help: ")
        sentences = [f"As of {status.get('lastUpdateTime')}: {stories.ended(message)}"]
        return sentences, tuple(filter(None, helps.removesuffix(".").split("; or ")))
    told = [event for event in facts.events if event.get("reason") in _TOLD]
    return [f"The extender said: {pod_facts.said(event)}" for event in told[-1:]], ()


def _grouped(present: Raw) -> Iterator[str]:
    for group in present["groups"]:
        nearest = group["nearest"]
        shown = ", ".join(map(str, group["nodes"][:5]))
        more = f" and {group['count'] - 5} more" if group["count"] > 5 else ""
        yield f"{group['count']} refused: {group['reason']} ({shown}{more})."
        if nearest["figures"]:
            why = stories.ended(str(nearest["figures"]))
            yield f"The nearest miss is {nearest['node']}: {why}"
    if present.get("passed"):
        yield f"{present['passed']} of {present['asked']} would take it now; it is woken soon."
