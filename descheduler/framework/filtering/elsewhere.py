"""Whether another node takes a pod, looked at just before it leaves (PreEvictionFilter). Pure."""

from typing import Final

from descheduler.configuration.arguments import node_labels
from descheduler.framework import protocols
from descheduler.model import picture, podinfo

NO_OTHER: Final = "no other node takes it (nodeFit)"


class Elsewhere:
    """The ready nodes that a selector such as `pool=a` selects; they are looked up once."""

    def __init__(self, seen: picture.Picture, fit: protocols.NodeFit, selector: str = "") -> None:
        self._seen, self._fit = seen, fit
        self._selector = node_labels.parse(selector)
        self._rows: protocols.NodeRows | None = None
        self._at: dict[str, int] = {}

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why a pod must stay, empty where another node takes it."""
        if self._rows is None:
            named = [
                name
                for name, node in self._seen.nodes.items()
                if node.is_ready and self._selector.matches(node.labels)
            ]
            self._at = {name: row for row, name in enumerate(named)}
            self._rows = self._fit.rows(named)
        takers = self._rows.fitting(pod)
        own = self._at.get(pod.node)
        count = int(takers.sum()) - (own is not None and bool(takers[own]))
        return "" if count else NO_OTHER
