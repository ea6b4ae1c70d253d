"""Where batch work would fit: what nodes publish for it, less what they have lent already."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from domain import wording
from domain.lending import colocation, normalization
from domain.pods import resources
from manager.cluster_settings import effective

_LENT = ((names.CPU, names.BATCH_CPU), (names.MEMORY, names.BATCH_MEMORY))
_BATCH = dict(_LENT)


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """What one node has left for batch work, by native name; cpu in milli-cores."""

    node: str
    published: Mapping[str, int]
    lent: Mapping[str, int]
    capacity: Mapping[str, int]
    """What the machine has in all, in the cores that it lends; without what it may lend more of."""

    def left(self, native: str) -> int:
        """Return what is left of a resource."""
        return self.published.get(native, 0) - self.lent.get(native, 0)

    def lacks(self, asked: Mapping[str, int]) -> dict[str, int]:
        """Return how much is missing for a pod, by native name."""
        missing = {name: amount - self.left(name) for name, amount in asked.items()}
        return {name: amount for name, amount in missing.items() if amount > 0}

    def is_too_small(self, name: str, amount: int) -> bool:
        """Whether the machine could not even lend this much if it did nothing else."""
        return amount > self.capacity.get(name, amount)

    def shortage(self, asked: Mapping[str, int]) -> float:
        """Return the largest share of what is asked that is missing."""
        return max((lacking / asked[n] for n, lacking in self.lacks(asked).items()), default=0.0)


def asked(pod: core.Pod) -> dict[str, int]:
    """Return what a pod borrows, by native name; empty unless it asks for batch resources."""
    requests = resources.pod_requests(pod)
    return {native: requests[batch] for native, batch in _LENT if requests.get(batch)}


def held(pod: core.Pod) -> tuple[str, dict[str, int]] | None:
    """Return the node of a placed batch pod and what it borrows there; None for all others."""
    if not pod.spec.node_name or pod.finished or qos.band_of_pod(pod) is not qos.Band.BATCH:
        return None
    return pod.spec.node_name, asked(pod)


def offers(
    nodes: Iterable[core.Node],
    borrowed: Iterable[tuple[str, Mapping[str, int]]],
    settings: effective.ClusterSettings | None,
) -> list[Offer]:
    """Return what every node has left; without settings it is unknown how much they may lend."""
    lent: dict[str, dict[str, int]] = {}
    usable = effective.usable(settings)
    for node, amounts in borrowed:
        lent[node] = resources.add(lent.get(node, {}), amounts)
    return [
        Offer(
            node.metadata.name,
            {native: resources.node_allocatable(node).get(batch, 0) for native, batch in _LENT},
            lent.get(node.metadata.name, {}),
            {} if usable is None else _capacity(node, usable),
        )
        for node in nodes
    ]


def _capacity(node: core.Node, settings: effective.ClusterSettings) -> dict[str, int]:
    notes = node.metadata.annotations
    rules = settings.rules(node.metadata.labels, notes)
    found = resources.amounts(node.status.capacity)
    faster = normalization.ratio_of(notes.get(names.ANNOTATION_CPU_NORMALIZATION, ""))
    return {
        native: math.ceil(found[native] * ratio)
        for native, rule, ratio in (
            (names.CPU, rules.cpu, faster),
            (names.MEMORY, rules.memory, 1.0),
        )
        if native in found and _is_bounded(rule)
    }


def _is_bounded(rule: colocation.Rule) -> bool:
    """Whether a node lends no more than it has."""
    if rule.cap_percent is not None and rule.cap_percent <= 100:
        return True
    is_share = rule.policy is not colocation.Policy.OVERCOMMIT_RATIO
    return is_share and rule.reclaim_percent <= 100


@dataclasses.dataclass(frozen=True, slots=True)
class Outlook:
    """How far a batch pod is from fitting anywhere."""

    sentences: tuple[str, ...]
    helps: tuple[str, ...]
    nearest: str
    """The node that lacks least; empty where some node has enough."""


def outlook(wanted: Mapping[str, int], offered: Sequence[Offer]) -> Outlook:
    """Compare a pod with what nodes have left."""
    enough = sorted(offer.node for offer in offered if not offer.lacks(wanted))
    none = sorted(offer.node for offer in offered if not any(offer.published.values()))
    short = [offer for offer in offered if offer.lacks(wanted)]
    asks = " and ".join(_show(name, amount) for name, amount in wanted.items())
    sentences = [f"It asks for {asks}."]
    if enough:
        have = wording.form(len(enough), "has", "have")
        of = f"{len(enough)} of {wording.count(len(offered), 'node', 'nodes')}"
        text = f"{of} {have} that left: {_some(enough)}."
        return Outlook((*sentences, text), (), "")
    sentences.append(f"None of {len(offered)} nodes has that left to lend.")
    if none:
        lend = wording.count(len(none), "of them lends", "of them lend")
        sentences.append(f"{lend} nothing at all: {_some(none)}.")
    lending = [offer for offer in short if offer.node not in none]
    if not lending:
        one = ("a node that lends: see `koord explain node` for one of them",) if none else ()
        return Outlook(tuple(sentences), one, none[0] if none else "")
    best = min(lending, key=lambda offer: (offer.shortage(wanted), offer.node))
    sentences.extend([*_too_small(offered, wanted), *_nearest(best, wanted)])
    helps = (*_larger(offered, wanted), *_helps(best, wanted))
    return Outlook(tuple(sentences), helps, best.node)


def _nowhere(offered: Sequence[Offer], wanted: Mapping[str, int]) -> dict[str, int]:
    """Return what no machine has as much of, by native name."""
    return {
        name: amount
        for name, amount in wanted.items()
        if all(offer.is_too_small(name, amount) for offer in offered)
    }


def _too_small(offered: Sequence[Offer], wanted: Mapping[str, int]) -> Iterator[str]:
    for name, amount in _nowhere(offered, wanted).items():
        most = max(offer.capacity[name] for offer in offered)
        yield (
            f"No node has {wording.named(name, amount)} at all: "
            f"the largest has {wording.amount(name, most)}."
        )


def _larger(offered: Sequence[Offer], wanted: Mapping[str, int]) -> Iterator[str]:
    missing = [wording.named(name, amount) for name, amount in _nowhere(offered, wanted).items()]
    if missing:
        yield f"a node with more than {' and '.join(missing)}"


def _nearest(best: Offer, wanted: Mapping[str, int]) -> Iterator[str]:
    for name, lacking in best.lacks(wanted).items():
        yield (
            f"The nearest miss is {best.node}: it lends {_show(name, best.published[name])}, "
            f"{_are(name, best.lent.get(name, 0))} taken, "
            f"{_are(name, max(best.left(name), 0))} left, {_are(name, lacking)} missing."
        )


def _helps(best: Offer, wanted: Mapping[str, int]) -> Iterator[str]:
    lacking = best.lacks(wanted)
    missing = " and ".join(_show(name, amount) for name, amount in lacking.items())
    if all(best.lent.get(name, 0) >= amount for name, amount in lacking.items()):
        yield f"{missing} given back by batch pods of {best.node}"
    most = {name: best.published.get(name, 0) + amount for name, amount in lacking.items()}
    if not any(best.is_too_small(name, amount) for name, amount in most.items()):
        less = f"less use or fewer requests by services on {best.node}"
        yield f"{less}, so that it lends {missing} more"
    if all(best.left(name) > 0 for name in lacking):
        fits = " and ".join(_show(name, best.left(name)) for name in lacking)
        yield f"a pod that asks for {fits} or less"


def _are(name: str, value: int) -> str:
    return wording.count(wording.amount(name, value), "is", "are")


def _show(name: str, amount: int) -> str:
    return wording.named(_BATCH[name], amount)


def _some(found: Sequence[str], most: int = 5) -> str:
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{', '.join(found[:most])}{more}"
