"""The part of a pod's story that is about Reservations: which it uses, may use, or may not."""

from collections.abc import Iterator
from typing import Any, Final

from api.koordinator import scheduling
from api.kubernetes import core
from api.wire import untrusted
from cli import reading
from cli.explain import stories
from cli.reservations import cluster as clusters
from domain import wording
from domain.reservations import matching, usage

_MOST: Final = 5


def told(found: clusters.Cluster | None, pod: core.Pod) -> stories.Chapter:
    """Tell which Reservation a pod uses, or which ones name it as an owner and why not these."""
    if found is None:
        return stories.Chapter("reservation", ())
    if pod.spec.node_name:
        return _placed(found, pod)
    try:
        wishes = matching.wishes(pod.metadata.labels, pod.metadata.annotations)
    except untrusted.ReadError as error:
        return stories.Chapter("reservation", (f"No Reservation takes it: {error}.",))
    sentences = list(_wishes(wishes))
    named = list(_named(found, pod))
    for one, suits in named[:_MOST]:
        sentences.append(_sentence(one, suits))
    if more := len(named[_MOST:]):
        others = wording.count(more, "more Reservation names", "more Reservations name")
        sentences.append(f"{others} it as an owner.")
    if wishes.affinity is not None and not any(suits.usable for _, suits in named):
        sentences.append("No Reservation can take it now, and it uses no other capacity.")
    figures: dict[str, Any] = {
        "reservations": {one.usage.name: suits.usable for one, suits in named}
    }
    return stories.Chapter("reservation", tuple(sentences), figures if sentences else {})


def _placed(found: clusters.Cluster, pod: core.Pod) -> stories.Chapter:
    owner = usage.owner_pod(pod)
    if owner is None:
        return stories.Chapter("reservation", ())
    figures = {"uid": owner.reservation}
    one = next((one for one in found.found.values() if one.usage.uid == owner.reservation), None)
    if one is None:
        text = "The Reservation that it was bound to is gone; what the pod requests stays its own."
    elif one.usage.node != pod.spec.node_name:
        text = f"It names Reservation {one.usage.name} of another node: it uses nothing of it."
    elif one.usage.phase == scheduling.FAILED:
        text = f"Reservation {one.usage.name}, which it was bound to, has ended; the pod runs on."
    else:
        text = f"It uses Reservation {one.usage.name}: {_state(one)}."
    return stories.Chapter("reservation", (text,), figures)


def _state(one: clusters.Reserved) -> str:
    left = {key: value for key, value in one.usage.left.items() if value}
    listed = ", ".join(wording.named(key, left[key]) for key in sorted(left))
    return f"it has {listed} left" if listed else "nothing of it is left"


def _wishes(wishes: matching.Wishes) -> Iterator[str]:
    if wishes.ignores:
        yield "It may use what Reservations keep, without becoming an owner of one."
    affinity = wishes.affinity
    if affinity is not None and affinity.name:
        yield f"It may use Reservation {affinity.name} and no other capacity."
    elif affinity is not None:
        yield "Its reservation affinity lets it use Reservations only, no other capacity."


def _named(
    found: clusters.Cluster, pod: core.Pod
) -> Iterator[tuple[clusters.Reserved, clusters.Suitability]]:
    """Yield live Reservations that name a pod as an owner, those that it could take first."""
    named = []
    for one in found.found.values():
        if one.usage.phase in (scheduling.SUCCEEDED, scheduling.FAILED):
            continue
        node = found.nodes.get(one.usage.node)
        labels = node.metadata.labels if node is not None else {}
        suits = reading.either(None, clusters.suitability, one, pod, labels)
        if suits is not None and suits.owner:
            named.append((one, suits))
    named.sort(key=lambda found: (not found[1].usable, found[0].usage.name))
    yield from named


def _sentence(one: clusters.Reserved, suits: clusters.Suitability) -> str:
    name = f"Reservation {one.usage.name}"
    if suits.match is None:
        return f"{name} names it as an owner and is {one.usage.phase}: it has no room for it yet."
    where = f"{name} on node {one.usage.node} names it as an owner"
    if suits.match is not matching.Match.MATCHED:
        return f"{where}, but: {suits.match.value}."
    if suits.short:
        return f"{where}, but has too little {', '.join(suits.short)}: {_state(one)}."
    return f"{where}: {_state(one)}."


def helps(found: clusters.Cluster | None, pod: core.Pod) -> tuple[str, ...]:
    """Return what would let a pod use a Reservation that names it as an owner."""
    if found is None or pod.spec.node_name:
        return ()
    named = list(_named(found, pod))
    if not named or any(suits.usable for _, suits in named):
        return ()
    one = named[0][0]
    return (f"room in Reservation {one.usage.name}: koord explain reservation {one.usage.name}",)
