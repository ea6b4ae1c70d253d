"""What pods and the node send and receive, as their kubelet counts it.

For agents that see no processes of pods. It is asked for as often as the figures are wanted, and
answers with bytes only.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from agent.host import files
from agent.informers import kubelet_client as kubelets
from agent.model import pod_lists
from agent.observe import collectors
from agent.observe.network import traffic
from process.runtime import clock as clocks
from process.runtime import metrics

Ask = Callable[[str], Awaitable[bytes]]


class _Interface(msgspec.Struct, frozen=True):
    name: str = ""
    received: int | None = msgspec.field(name="rxBytes", default=None)
    sent: int | None = msgspec.field(name="txBytes", default=None)


class _Network(_Interface, frozen=True):
    interfaces: tuple[_Interface, ...] | None = None


class _Reference(msgspec.Struct, frozen=True):
    uid: str = ""


class _Pod(msgspec.Struct, frozen=True):
    reference: _Reference = msgspec.field(name="podRef", default_factory=_Reference)
    network: _Network | None = None


class _Node(msgspec.Struct, frozen=True):
    network: _Network | None = None


class _Answer(msgspec.Struct, frozen=True):
    node: _Node = msgspec.field(default_factory=_Node)
    pods: tuple[_Pod, ...] | None = None


class Summary:
    """Asks in a task of its own, and tells in a tick what the last answer was; a collector."""

    name = "network"

    def __init__(
        self, ask: Ask, clock: clocks.Clock, figures: metrics.Registry, seconds: float
    ) -> None:
        self.seconds = 0.0
        self._ask, self._clock, self._pause = ask, clock, seconds
        self._shown = traffic.Shown(figures, seconds)
        self._answer: _Answer | None = None
        self._problem = "the kubelet has not been asked yet"

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            await self.step()
            await self._clock.sleep(self._pause)

    async def step(self) -> None:
        """Ask once."""
        try:
            body = await self._ask(kubelets.SUMMARY)
            self._answer, self._problem = msgspec.json.decode(body, type=_Answer), ""
        except (kubelets.KubeletError, *pod_lists.UNREADABLE) as error:
            self._answer = None
            self._problem = (
                f"{error}; let the agent get nodes/stats (agent.measure.network of the chart)"
            )

    def collect(self, sight: collectors.Sight) -> None:
        """Tell what a new answer says, once."""
        answer, self._answer = self._answer, None
        if self._problem:
            self._shown.clear()
            raise files.ReadingError(self._problem)
        if answer is None:
            return
        found = {pod.reference.uid: _counts(pod.network) for pod in answer.pods or ()}
        pods: dict[traffic.Pod, traffic.Counts] = {}
        for pod in sight.pods:
            metadata = pod.pod.metadata
            counts = found.get(metadata.uid)
            if counts and not pod.pod.spec.host_network:
                pods[traffic.Pod(metadata.uid, metadata.namespace, metadata.name)] = counts
        self._shown.show(sight, _interfaces(answer.node.network), pods)

    def close(self) -> None:
        """Tell nothing any more."""
        self._shown.clear()


def _interfaces(network: _Network | None) -> Mapping[str, traffic.Counts]:
    if network is None:
        return {}
    return {one.name: _of(one) for one in network.interfaces or (network,)}


def _counts(network: _Network | None) -> traffic.Counts:
    return traffic.total(_interfaces(network).values())


def _of(one: _Interface) -> traffic.Counts:
    pairs = (("received", one.received), ("sent", one.sent))
    return {(direction, "bytes"): count for direction, count in pairs if count is not None}
