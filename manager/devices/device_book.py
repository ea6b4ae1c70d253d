"""The devices of all nodes with who holds them; what has not changed is not counted again."""

from collections.abc import Callable, Iterable, Iterator

from domain.devices import device_report
from kube.informers import store
from manager.devices import device_objects, node_holdings
from manager.model import projections


class NodeDevices:
    """The rows and problems of one node."""

    __slots__ = ("problems", "rows")

    def __init__(
        self,
        rows: tuple[device_report.Row, ...],
        problems: tuple[device_report.Problem, ...],
    ) -> None:
        self.rows = rows
        self.problems = problems


class DeviceBook:
    """Follows Devices and pods."""

    def __init__(
        self,
        devices: store.Store[device_objects.DeviceObject],
        pods: store.Store[projections.Pod],
    ) -> None:
        self.devices = devices
        self.holdings = node_holdings.NodeHoldings()
        self._listeners: list[Callable[[Iterable[str]], None]] = []
        self._nodes: dict[str, NodeDevices] = {}
        self._stale: dict[str, None] = {}
        devices.listen(self._device_changed)
        pods.listen(self._pod_changed)

    def listen(self, listener: Callable[[Iterable[str]], None]) -> Callable[[], None]:
        """Report the nodes whose devices are held otherwise from now on; return how to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _device_changed(self, change: store.Change[device_objects.DeviceObject]) -> None:
        if change.old is None or change.new is None or change.old.listed != change.new.listed:
            self._stale[change.key] = None

    def _pod_changed(self, change: store.Change[projections.Pod]) -> None:
        touched = self.holdings.change(change.key, change.old, change.new)
        for node in touched:
            self._stale[node] = None
        if touched:
            for listener in self._listeners:
                listener(touched)

    def refresh(self) -> Iterator[str]:
        """Count the nodes that have changed again, one per step; yield their names."""
        while self._stale:
            node = next(iter(self._stale))
            del self._stale[node]
            found, holdings = self.devices.get(node), self.holdings.of(node)
            if found is None and not holdings:
                self._nodes.pop(node, None)
            else:
                rows = device_report.rows((found.listed if found else None) or (), holdings)
                problems = device_report.problems(node, rows, holdings)
                if found is not None and found.listed is None:
                    problems = ()  # What the node has is not known.
                self._nodes[node] = NodeDevices(rows, problems)
            yield node

    @property
    def nodes(self) -> dict[str, NodeDevices]:
        """Return the nodes as they were when they were counted last."""
        return self._nodes
