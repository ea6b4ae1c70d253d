"""Pods that a plug-in may suggest: where they are, which rule covers them, who may leave. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from descheduler.configuration.arguments import parts
from descheduler.framework import protocols
from descheduler.model import nodeinfo, podinfo


class Rule(Protocol):
    """Arguments that say which pods a plug-in looks at."""

    @property
    def namespaces(self) -> parts.Namespaces | None:
        """Namespaces that are looked at; all when missing."""

    @property
    def label_selector(self) -> parts.LabelSelector | None:
        """Pods that are looked at; all when missing."""


def present(view: protocols.View, rule: Rule) -> Iterator[tuple[nodeinfo.Node, podinfo.Pod]]:
    """Yield the pods of the profile's nodes that are not terminating, those that ended included."""
    all_of_them = rule.namespaces is None and rule.label_selector is None
    for node in view.nodes:
        for pod in view.picture.on_node.get(node.name, ()):
            if pod.leaves_at < 0 and (all_of_them or covers(rule, pod)):
                yield node, pod


def covers(rule: Rule, pod: podinfo.Pod) -> bool:
    """Whether a rule looks at the namespace and the labels of a pod."""
    namespaces, selector = rule.namespaces, rule.label_selector
    if namespaces is not None and not namespaces.hold(pod.namespace):
        return False
    return selector is None or selector.selects(pod.labels)


def active(view: protocols.View, rule: Rule) -> Iterator[tuple[nodeinfo.Node, podinfo.Pod]]:
    """Yield the pods of the profile's nodes that have neither ended nor are terminating."""
    return ((node, pod) for node, pod in present(view, rule) if not pod.has_ended)


def is_limited(view: protocols.View, pod: podinfo.Pod) -> bool:
    """Whether a limit of the round refuses a pod; suggested without targets, it is counted there.

    It costs less than filters and targets, so it is asked first.
    """
    return bool(view.limits.refusal(pod))


def landing(answer: protocols.Answer, targets: Sequence[str]) -> str:
    """Return where a pod goes that leaves: the first of its targets where that is not said.

    Empty where neither is known, as of a pod that left with its gang before.
    """
    return answer.node if isinstance(answer, protocols.Target) else next(iter(targets), "")


def stopped(view: protocols.View) -> protocols.Memory:
    """Return what a plug-in leaves that has stopped because no pod may leave any more."""
    return protocols.noted(f"{view.limits.exhausted()}; what is left was not looked at")


def may_leave(view: protocols.View, pod: podinfo.Pod) -> bool:
    """Whether the filter chain lets a pod go, its check before evictions included."""
    return not view.evictable.refusal(pod) and not view.evictable.late_refusal(pod)


def in_turn(
    view: protocols.View, suggestions: Iterable[protocols.Suggestion]
) -> protocols.Suggestions:
    """Yield suggestions one by one, as far as the filter chain lets their pods go.

    Once no pod may leave any more, nothing else is looked at.
    """
    for suggestion in suggestions:
        if view.limits.exhausted():
            return stopped(view)
        if is_limited(view, suggestion.pod) or may_leave(view, suggestion.pod):
            yield suggestion
    return protocols.NO_MEMORY
