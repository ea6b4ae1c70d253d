"""The pods of this node by a watch of the API server, where the kubelet is not asked for them.

Kubelets before 1.33 show their pods only to accounts with `nodes/proxy`, which also allows to run
commands in every pod of the node. A watch of the pods that are bound to this node needs no such
permission. Static pods are known by their mirror pods.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from agent.informers import kubelet_client as kubelets
from agent.informers import pod_list_client
from agent.informers import pod_source as agent_pods
from api import resources
from api.kubernetes import core
from kube.informers import informer_set, reflector
from process.runtime import metrics, supervise

_NOT_ASKED: Final = "kubelet.podsFrom is apiServer, so the agent does not ask the kubelet"


class WatchedPods:
    """The pods that are bound to one node, as the API server's watch has told them."""

    def __init__(
        self,
        watched: informer_set.InformerSet,
        node: str,
        ask: Callable[[str], Awaitable[bytes]],
        paths: Collection[str],
    ) -> None:
        self.listed: Callable[[], None] = lambda: None
        """Called after every change."""
        fields = f"spec.nodeName={node}"
        self._ask, self._paths = ask, paths
        self._store = watched.add(reflector.whole(resources.PODS, core.Pod, fields=fields))
        self._reflector = watched.members[-1]
        self._pods: tuple[core.Pod, ...] | None = None
        self._store.listen(lambda _change: self._forget())

    @property
    def pods(self) -> tuple[core.Pod, ...]:
        """The present list, the same object until something changes."""
        if self._pods is None:
            self._pods = pod_list_client.by_cgroup(tuple(self._store.values()))
        return self._pods

    @property
    def age(self) -> float | None:
        """Seconds since the list was true, 0 while the watch is open, None before the first."""
        if not self._store.synced:
            return None
        contact = self._reflector.contact
        return 0.0 if contact.connected else contact.age

    @property
    def source(self) -> str:
        """Who gave the present list."""
        return agent_pods.API_SERVER if self._store.synced else agent_pods.NOBODY

    @property
    def problem(self) -> str:
        """Why the list is not current, empty while it is."""
        error = self._reflector.contact.error
        if self._store.synced:
            return f"{error}; the last list stands" if error else ""
        return error or "the pods of this node have not been listed yet"

    async def get(self, path: str) -> bytes:
        """Ask the kubelet for one of the given paths; for others KubeletError names the setting."""
        if path not in self._paths:
            raise kubelets.KubeletError(f"/{path}: {_NOT_ASKED}")
        return await self._ask(path)

    def show(self, figures: metrics.Registry) -> None:
        """Export who tells the pods, and the age of the list."""
        agent_pods.show_source(figures, lambda name: self.source == name, lambda: self.age)

    def start(self, _supervisor: supervise.Supervisor) -> None:
        """Start nothing: the reflector runs with those of the other objects."""

    def hurry(self) -> None:
        """Ask no server: the watch reports changes by itself."""

    def look_now(self) -> None:
        """Ask no server: the watch reports changes by itself."""

    def _forget(self) -> None:
        self._pods = None
        self.listed()
