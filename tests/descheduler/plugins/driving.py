"""Plug-ins of the descheduler driven without a process: what they suggest, and what they hear."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from descheduler.framework import protocols
from descheduler.framework.nodes import node_fit
from descheduler.model import picture, podinfo

Answers = Callable[[protocols.Suggestion], protocols.Answer]


@dataclasses.dataclass(frozen=True, slots=True)
class Chain:
    """A filter chain that keeps the pods that it is given."""

    kept: Collection[str] = ()
    """Names of pods."""
    kept_late: Collection[str] = ()

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay."""
        return "protected" if pod.name in self.kept else ""

    def refusals(self, pods: Sequence[podinfo.Pod]) -> Sequence[str]:
        """Return why each of the pods must stay."""
        return [self.refusal(pod) for pod in pods]

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return what the check before an eviction says."""
        return "fits nowhere" if pod.name in self.kept_late else ""


def view(
    seen: picture.Picture,
    *,
    kept: Collection[str] = (),
    kept_late: Collection[str] = (),
    nodes: Iterable[str] | None = None,
) -> protocols.View:
    """Return what a plug-in is asked about; `nodes` are those of the profile."""
    names = sorted(seen.nodes if nodes is None else nodes)
    return protocols.View(
        seen,
        [seen.nodes[name] for name in names if seen.nodes[name].is_ready],
        Chain(kept, kept_late),
        node_fit.Table(seen),
    )


def leaves(suggestion: protocols.Suggestion) -> protocols.Answer:
    """Let every pod leave, to the first of its targets where it names some."""
    if suggestion.targets is None:
        return True
    first = min(suggestion.targets, default="")
    return protocols.Target(first) if first else False


def stays(suggestion: protocols.Suggestion) -> protocols.Answer:
    """Let no pod leave."""
    del suggestion
    return False


def drive(suggestions: protocols.Suggestions, answer: Answers = leaves) -> list[Any]:
    """Return everything that was suggested."""
    found: list[protocols.Suggestion] = []
    try:
        one = next(suggestions)
        while True:
            found.append(one)
            one = suggestions.send(answer(one))
    except StopIteration:
        return found


def run(
    plugin: protocols.DeschedulePlugin | protocols.BalancePlugin,
    seen: protocols.View,
    answer: Answers = leaves,
) -> list[protocols.Suggestion]:
    """Return everything that a plug-in suggests, and check what holds of all of them."""
    asks = plugin.deschedule if isinstance(plugin, protocols.DeschedulePlugin) else plugin.balance
    found = drive(asks(seen, protocols.NO_MEMORY), answer)
    check(found, seen)
    return found


def check(found: Iterable[protocols.Suggestion], seen: protocols.View) -> None:
    """Check that each pod is there once, may leave, and is never sent to its own node."""
    uids = [one.pod.uid for one in found]
    assert len(uids) == len(set(uids))
    looked_at = {node.name for node in seen.nodes}
    for one in found:
        assert seen.evictable.refusal(one.pod) == ""
        assert seen.evictable.late_refusal(one.pod) == ""
        assert one.pod.node in looked_at
        assert one.pod.leaves_at < 0
        assert one.targets is None or (one.targets and one.pod.node not in one.targets)
        assert one.reason
        assert one.plugin


def names(found: Iterable[protocols.Suggestion]) -> list[str]:
    """Return the names of the pods that should leave."""
    return [one.pod.name for one in found]


def after(seen: picture.Picture, moved: Mapping[str, str]) -> Mapping[str, list[podinfo.Pod]]:
    """Return the pods of each node once some, by uid, are on other nodes."""
    there: dict[str, list[podinfo.Pod]] = {name: [] for name in seen.nodes}
    for pods in seen.on_node.values():
        for pod in pods:
            there[moved.get(pod.uid, pod.node)].append(pod)
    return there


def notes(plugin: protocols.BalancePlugin, seen: protocols.View) -> tuple[str, ...]:
    """Return what a plug-in says that suggests nothing."""
    suggestions = plugin.balance(seen, protocols.NO_MEMORY)
    try:
        next(suggestions)
    except StopIteration as end:
        return tuple(end.value.get(protocols.NOTES, ()))
    raise AssertionError("it suggests a pod")
