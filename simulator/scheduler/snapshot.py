"""The scheduler's picture of nodes and pods, with what it promised already counted; pure."""

from collections.abc import Iterator, Mapping

from simulator.scheduler import intree


class Snapshot:
    """Nodes in the order they joined, with the pods on them."""

    def __init__(self) -> None:
        self._nodes: dict[str, intree.NodeInfo] = {}
        self._placed: dict[str, dict[str, intree.PodInfo]] = {}
        self._where: dict[str, str] = {}
        self._assumed: dict[str, str] = {}
        self._nominated: dict[str, tuple[str, intree.PodInfo]] = {}
        self._repelling: dict[str, intree.PodInfo] = {}
        """Pods on nodes that keep others away, by uid."""

    @property
    def nodes(self) -> Mapping[str, intree.NodeInfo]:
        """All nodes by name."""
        return self._nodes

    @property
    def assumed(self) -> Mapping[str, str]:
        """Node by pod uid of what was promised and not seen yet."""
        return self._assumed

    def repelling(self) -> Iterator[tuple[intree.PodInfo, intree.NodeInfo]]:
        """Yield the pods that keep others away from their domain, each with its node."""
        for uid, pod in self._repelling.items():
            node = self._nodes.get(self._where[uid])
            if node is not None:
                yield pod, node

    def set_node(self, raw: intree.Object) -> None:
        """Take in a node or its newest version."""
        name = raw["metadata"]["name"]
        self._nodes[name] = intree.read_node(raw, dict(self._placed.get(name, {})))

    def remove_node(self, name: str) -> None:
        """Forget a node; the pods on it stay known for when it comes back."""
        self._nodes.pop(name, None)

    def set_pod(self, pod: intree.PodInfo) -> None:
        """Take in a pod that has a node; it replaces what was promised for it."""
        self._assumed.pop(pod.uid, None)
        self._nominated.pop(pod.uid, None)
        self._place(pod, pod.node)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod and what was promised for it."""
        self._assumed.pop(uid, None)
        self._nominated.pop(uid, None)
        self._unplace(uid)

    def assume(self, pod: intree.PodInfo, node: str) -> None:
        """Count a pod on a node before anybody else can see it there."""
        self._assumed[pod.uid] = node
        self._place(pod, node)

    def forget(self, uid: str) -> bool:
        """Take back a promise; tells whether there was one."""
        if self._assumed.pop(uid, None) is None:
            return False
        self._unplace(uid)
        return True

    def nominate(self, pod: intree.PodInfo, node: str) -> None:
        """Keep room on a node for a pod that waits for others to leave; no node ends that."""
        if node:
            self._nominated[pod.uid] = (node, pod)
        else:
            self._nominated.pop(pod.uid, None)

    def nominated(self, node: str, priority: int) -> list[intree.PodInfo]:
        """Who was promised room on a node and may not be overtaken at this priority."""
        return [
            pod
            for where, pod in self._nominated.values()
            if where == node and pod.priority >= priority
        ]

    def overtaken(self, node: str, priority: int) -> list[intree.PodInfo]:
        """Who was promised room on a node and is less important than this."""
        return [
            pod
            for where, pod in self._nominated.values()
            if where == node and pod.priority < priority
        ]

    def _place(self, pod: intree.PodInfo, node: str) -> None:
        if self._where.get(pod.uid, node) != node:
            self._unplace(pod.uid)
        self._where[pod.uid] = node
        self._placed.setdefault(node, {})[pod.uid] = pod
        if (pod.raw["spec"].get("affinity") or {}).get("podAntiAffinity"):
            self._repelling[pod.uid] = pod
        self._refresh(node)

    def _unplace(self, uid: str) -> None:
        node = self._where.pop(uid, None)
        if node is not None:
            self._repelling.pop(uid, None)
            del self._placed[node][uid]
            self._refresh(node)

    def _refresh(self, node: str) -> None:
        if node in self._nodes:
            self._nodes[node] = self._nodes[node].with_pods(dict(self._placed.get(node, {})))
