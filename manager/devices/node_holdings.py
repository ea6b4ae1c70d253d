"""Who holds devices of which node: one index over all pods, kept in step with the watch. Pure."""

from collections.abc import Mapping, Sequence

from domain.devices import pod_holdings
from manager.model import projections

_NONE: Mapping[str, pod_holdings.Holding] = {}


class NodeHoldings:
    """Holdings by node and pod."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, pod_holdings.Holding]] = {}

    def change(
        self, key: str, old: projections.Pod | None, new: projections.Pod | None
    ) -> tuple[str, ...]:
        """Take in a change of a pod; return the nodes on which other devices are held now."""
        before = (old.node, old.devices) if old is not None and old.devices else None
        after = (new.node, new.devices) if new is not None and new.devices else None
        if before == after:
            return ()
        if before is not None:
            there = self._by_node.get(before[0], {})
            there.pop(key, None)
            if not there:
                self._by_node.pop(before[0], None)
        if after is not None and after[1] is not None:
            self._by_node.setdefault(after[0], {})[key] = after[1]
        return tuple(dict.fromkeys(one[0] for one in (before, after) if one is not None))

    def of(self, node: str) -> Sequence[pod_holdings.Holding]:
        """Return what pods hold on a node."""
        return tuple(self._by_node.get(node, _NONE).values())

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes on which pods hold devices."""
        return frozenset(self._by_node)
