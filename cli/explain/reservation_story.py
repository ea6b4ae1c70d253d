"""The story of a Reservation: why it has no node, who may use it, who does, what is left."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from api.koordinator import scheduling
from api.kubernetes import core
from api.wire import durations, quantity
from cli import reading
from cli.explain import stories
from cli.explain.pod import pod_facts, scheduling_layer
from cli.reservations import cluster as clusters
from cli.reservations import table
from domain import wording
from domain.reservations import matching

Raw = Mapping[str, Any]

_MOST_PODS: Final = 10
_ALIGNED: Final = "Aligned: an owner may take what it lacks from the free capacity of the node."
_RESTRICTED: Final = "Restricted: an owner gets the resources that it reserves from it alone."


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a Reservation."""

    cluster: clusters.Cluster
    name: str
    events: Sequence[Raw] = ()
    """Events about it, the oldest first."""
    stand_in: pod_facts.Facts | None = None
    """The pod by which kube-scheduler is asked for a node, as the API server has it."""


def told(facts: Facts) -> stories.Story:
    """Return the story of a Reservation, or which names are near one that does not exist."""
    one = facts.cluster.found.get(facts.name)
    subject = f"reservation {facts.name}"
    if one is None:
        return stories.Story(subject, _absent(facts), found=False)
    tell = stories.guarded
    chapters = (
        tell("what it reserves", _shape, one),
        tell("placement", _placement, facts, one),
        tell("who may use it", _permitted, facts.cluster, one),
        tell("who uses it", _users, one),
        tell("what is left", _left, one),
        tell("when it ends", _end, one, facts.cluster.now),
        tell("problems", _problems, facts),
    )
    return stories.Story(
        subject=subject,
        verdict=reading.either(f"Reservation {facts.name} exists.", _verdict, one),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=reading.either((), lambda: tuple(dict.fromkeys(_helps(facts, one)))),
    )


def _absent(facts: Facts) -> str:
    known = list(facts.cluster.found)
    near = [name for name in known if facts.name in name or name in facts.name][:5]
    there = f"; there are {', '.join(near)}" if near else ""
    return f"There is no Reservation {facts.name} among {len(known)}{there}."


def _verdict(one: clusters.Reserved) -> str:
    used = one.usage
    name = f"Reservation {used.name}"
    if used.phase == scheduling.AVAILABLE:
        owners = wording.count(len(used.owners), "owner uses", "owners use")
        left = f"{_listed(used.left)} left" if used.left else "nothing is left for other owners"
        return (
            f"{name} holds {_listed(used.reserved)} on node {used.node}: {owners} "
            f"{_listed(used.allocated)}, {left}."
        )
    if used.phase == scheduling.SUCCEEDED:
        return f"{name} has served its only owner and reserves nothing any more."
    if used.phase == scheduling.FAILED:
        return stories.ended(f"{name} has failed ({one.why or 'no reason given'})")
    if used.phase == scheduling.WAITING:
        pods = ", ".join(f"{p.namespace}/{p.name}" for p in one.written.status.current_owners)
        running = f", which these pods hold: {pods}" if pods else ""
        wanted = _listed(used.reserved)
        return f"{name} has node {used.node} and waits there for {wanted} to be free{running}."
    wait = f": {stories.ended(one.why)}" if one.why else " for a node."
    return f"{name} is Pending and waits{wait}"


# -- what it reserves ------------------------------------------------------------------------


def _shape(one: clusters.Reserved) -> stories.Chapter:
    spec = one.written.spec
    sentences = [f"It reserves {_listed(one.usage.reserved)} on one node."]
    pinned = one.written.pod.spec.node_name
    if pinned:
        sentences.append(f"Its template names node {pinned}: no other node is considered.")
    restricted = one.written.policy == "Restricted"
    sentences.append(f"allocatePolicy {_RESTRICTED if restricted else _ALIGNED}")
    if spec.allocate_once:
        sentences.append("allocateOnce: the first owner uses it up.")
    else:
        sentences.append("Several owners share it, as long as something is left.")
    if spec.pre_allocation:
        sentences.append(
            "preAllocation: where no room is free it is placed over running pods that its owners "
            "select, and waits until they have ended."
        )
    if spec.unschedulable:
        sentences.append("unschedulable: it takes no new owners.")
    sentences += [f"Taint {one.key}={one.value}:{one.effect}." for one in spec.taints]
    return stories.Chapter("what it reserves", tuple(sentences), table.item(one))


# -- placement -------------------------------------------------------------------------------


def _placement(facts: Facts, one: clusters.Reserved) -> stories.Chapter:
    used, sentences = one.usage, []
    if used.node:
        sentences.append(f"It is placed on node {used.node}.")
    elif one.why:
        sentences.append(f"The manager says: {stories.ended(one.why)}")
    figures: dict[str, Any] = {"node": used.node}
    if not used.node:
        stand_in = facts.stand_in
        if stand_in is not None and stand_in.pod is not None:
            pod = pod_facts.read(stand_in)
            chapter = scheduling_layer.told(stand_in, pod)
            sentences.append(f"Pod {stand_in.key} stands in for it at the scheduler.")
            sentences += chapter.sentences
            figures |= chapter.figures
        elif used.phase == scheduling.PENDING:
            sentences.append("No pod stands in for it at the scheduler now.")
    warned = [event for event in facts.events if event.get("type") == "Warning"]
    sentences += [f"Event {event.get('reason')}: {pod_facts.said(event)}" for event in warned[-1:]]
    return stories.Chapter("placement", tuple(dict.fromkeys(sentences)), figures)


# -- who may use it, who does ----------------------------------------------------------------


def _permitted(cluster: clusters.Cluster, one: clusters.Reserved) -> stories.Chapter:
    sentences = [f"{_owner(owner)}." for owner in one.written.spec.owners]
    if len(sentences) > 1:
        sentences = [f"Either: {sentence}" for sentence in sentences]
    waiting = list(_waiting(cluster, one))
    for pod, suits in waiting[:_MOST_PODS]:
        sentences.append(f"Pod {pod.metadata.key} waits and {_suits(suits, one)}.")
    if more := len(waiting[_MOST_PODS:]):
        others = wording.count(more, "more pod that matches waits", "more pods that match wait")
        sentences.append(f"{others}.")
    figures = {"waiting": [pod.metadata.key for pod, _ in waiting]}
    return stories.Chapter("who may use it", tuple(sentences), figures)


def _owner(owner: scheduling.Owner) -> str:
    parts = []
    if owner.object is not None:
        this = owner.object
        parts.append(f"pod {_key(this.namespace, this.name or this.uid)}")
    if owner.controller is not None:
        this_one = owner.controller
        name = _key(this_one.namespace, this_one.name or this_one.uid)
        parts.append(f"pods of {this_one.kind or 'controller'} {name}")
    if owner.label_selector is not None:
        parts.append(f"pods with labels {_selector(owner.label_selector)}")
    return " that are also ".join(parts)


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else f"{name or '(any name)'} of any namespace"


def _selector(selector: Any) -> str:
    pairs = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    pairs += [
        f"{one.key} {one.operator} ({', '.join(one.values)})" if one.values
        else f"{one.key} {one.operator}"
        for one in selector.match_expressions
    ]  # fmt: skip
    return " and ".join(pairs) or "of any kind"


def _waiting(
    cluster: clusters.Cluster, one: clusters.Reserved
) -> Iterator[tuple[core.Pod, clusters.Suitability]]:
    node = cluster.nodes.get(one.usage.node)
    labels = node.metadata.labels if node is not None else {}
    for pod in cluster.waiting():
        suits = reading.either(None, clusters.suitability, one, pod, labels)
        if suits is not None and suits.owner:
            yield pod, suits


def _suits(suits: clusters.Suitability, one: clusters.Reserved) -> str:
    if suits.match is None:
        return "matches its owners"
    if suits.match is not matching.Match.MATCHED:
        return f"cannot use it: {suits.match.value}"
    if suits.short:
        left = ", ".join(wording.named(key, one.usage.left.get(key, 0)) for key in suits.short)
        return f"does not fit into what is left: {left}"
    return "may use it"


def _users(one: clusters.Reserved) -> stories.Chapter:
    owners = one.usage.owners
    sentences = [
        f"Pod {pod.key} uses it; it requests {_listed(pod.requests)}."
        for pod in owners[:_MOST_PODS]
    ]
    if more := len(owners[_MOST_PODS:]):
        sentences.append(f"{wording.count(more, 'more pod uses', 'more pods use')} it.")
    if one.usage.phase == scheduling.SUCCEEDED and not owners:
        sentences += [
            f"Pod {_key(gone.namespace, gone.name)} used it; the pod has ended."
            for gone in one.written.status.current_owners[:_MOST_PODS]
        ]
    return stories.Chapter("who uses it", tuple(sentences), {"owners": [one.key for one in owners]})


def _left(one: clusters.Reserved) -> stories.Chapter:
    used = one.usage
    if used.phase != scheduling.AVAILABLE:
        return stories.Chapter("what is left", ())
    sentences = []
    for key in sorted(used.reserved):
        left = used.left.get(key, 0)
        sentences.append(
            f"{key}: {wording.amount(key, used.reserved[key])} reserved, "
            f"{wording.amount(key, used.allocated.get(key, 0))} used by owners, "
            f"{wording.amount(key, left)} left."
        )
    if not used.left:
        sentences.append("Its only owner is there: what it does not use becomes free for all.")
    if used.fault:
        sentences.append(f"No pod can use it: {stories.ended(used.fault)}")
    words = {"reserved": used.reserved, "allocated": used.allocated, "left": used.left}
    figures = {word: quantity.texts(amounts) for word, amounts in words.items()}
    return stories.Chapter("what is left", tuple(sentences), figures)


def _end(one: clusters.Reserved, now: float) -> stories.Chapter:
    used = one.usage
    figures: dict[str, Any] = {"expires": None}
    if used.ends_at is None:
        text = "It does not expire (ttl 0): it ends when it is deleted or used up."
        return stories.Chapter("when it ends", () if table.ended(one) else (text,), figures)
    figures["expires"] = moment = durations.moment(used.ends_at)
    if table.ended(one):
        return stories.Chapter("when it ends", (), figures)
    sentences = [f"It expires at {moment}, in {table.remaining(used.ends_at, now)}."]
    if used.ends_at <= now:
        sentences = [f"It expired at {moment}; the manager marks it Failed."]
    sentences.append("Its owners run on when it expires; what is left becomes free.")
    return stories.Chapter("when it ends", tuple(sentences), figures)


def _problems(facts: Facts) -> stories.Chapter:
    named = [
        f"{stories.ended(text[0].upper() + text[1:])} Remedy: {stories.ended(remedy)}"
        for text, remedy in table.problems(facts.cluster)
        if facts.name in text.split()
    ]
    return stories.Chapter("problems", (*named, *map(stories.ended, facts.cluster.notes)))


# -- what would help -------------------------------------------------------------------------


def _helps(facts: Facts, one: clusters.Reserved) -> Iterator[str]:
    phase = one.usage.phase
    if phase == scheduling.PENDING:
        if facts.stand_in is not None and facts.stand_in.pod is not None:
            pod = msgspec.convert(facts.stand_in.pod, core.Pod)
            yield from reading.either((), scheduling_layer.helps, facts.stand_in, pod)
        yield f"a smaller template than {_listed(one.usage.reserved)}"
    elif phase == scheduling.FAILED:
        yield "a new Reservation, with a longer ttl or a later expires if it expired too early"
    elif phase == scheduling.AVAILABLE and not one.usage.left and _others_wait(facts, one):
        yield "allocateOnce: false for several owners, or one Reservation per pod"


def _others_wait(facts: Facts, one: clusters.Reserved) -> bool:
    return next(_waiting(facts.cluster, one), None) is not None


def _listed(amounts: Mapping[str, int]) -> str:
    return ", ".join(wording.named(key, amounts[key]) for key in sorted(amounts)) or "nothing"
