"""Nodes for development: simulated ones on generated hosts, and this machine, an agent on each."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent import app as agents
from agent import settings as agent_settings
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core
from cli.dev import all_in_one, pod_load
from domain.pods import resources
from kube.client import access as accesses
from process.runtime import clock as clocks
from process.runtime import supervise
from simulator.kubelet import kubelet, nodefs, pod_states

STEP_SECONDS = 1.0
OBSERVED_TAINT = {"key": "dev.koord.sh/observed", "value": "true", "effect": "NoSchedule"}
"""Nothing can really run on the machine that is only observed."""

Online = Callable[[str, int, int, float], pod_load.Use]
"""Returns what an online pod uses: by uid, requested milli-cores and bytes, at a moment."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What all agents of the fleet share."""

    folder: Path
    """Where generated hosts and journals lie."""
    tick_seconds: float = 1.0
    step_seconds: float = STEP_SECONDS
    """How much time passes on generated hosts at once; agents that tick as often as that may on a
    busy machine look twice between two steps, and see a host then that uses nothing."""
    report: agent_settings.ReportSettings = dataclasses.field(
        default_factory=agent_settings.ReportSettings
    )
    feature_gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)


class Fleet:
    """The nodes; kubelets tell it what starts and stops."""

    def __init__(
        self, options: Options, clock: clocks.Clock, online: Online = pod_load.online
    ) -> None:
        self._options = options
        self._clock = clock
        self._online = online
        self._hosts: dict[str, nodefs.HostTree] = {}
        self._pods: dict[str, tuple[str, core.Pod]] = {}
        self._fixed: dict[str, pod_load.Use] = {}
        self._stack = contextlib.AsyncExitStack()
        self.agents: dict[str, agents.App] = {}
        options.folder.mkdir(parents=True, exist_ok=True)
        self._token_file = options.folder / "kubelet-token"

    @property
    def hooks(self) -> kubelet.Hooks:
        """What the kubelets call."""
        return kubelet.Hooks(on_pod_started=self._started, on_pod_stopped=self._stopped)

    @property
    def hosts(self) -> Mapping[str, nodefs.HostTree]:
        """The generated hosts by node name."""
        return self._hosts

    def admit(self, token: str) -> None:
        """Let the agents ask kubelets with this bearer token."""
        self._token_file.touch(mode=0o600)
        self._token_file.write_text(token, encoding="ascii")

    def fix(self, uid: str, use: pod_load.Use | None) -> None:
        """Let a pod use exactly this from now on, None for its usual wave."""
        if use is None:
            self._fixed.pop(uid, None)
        else:
            self._fixed[uid] = use

    async def add(
        self, kubelets: kubelet.Kubelets, machine: kubelet.Machine, access: accesses.Access
    ) -> None:
        """Register a simulated node and start its agent on a generated host."""
        folder = self._options.folder / machine.name
        tree = nodefs.HostTree(folder, machine.cpu, machine.memory_gib << 30)
        self._hosts[machine.name] = tree
        tree.set_load(nodefs.SYSTEM, 200, 1 << 30)
        await kubelets.add(machine)
        host = agent_settings.HostSettings(
            proc=tree.proc, sys=tree.sys, cgroup=tree.cgroup, state=folder / "state"
        )
        await self._agent(kubelets, machine.name, host, access)

    async def add_this_machine(
        self, kubelets: kubelet.Kubelets, machine: kubelet.Machine, access: accesses.Access
    ) -> None:
        """Register this machine and start an agent that only looks."""
        await kubelets.add(dataclasses.replace(machine, taints=(OBSERVED_TAINT,)))
        host = agent_settings.HostSettings(state=self._options.folder / machine.name)
        await self._agent(kubelets, machine.name, host, access)

    async def _agent(
        self,
        kubelets: kubelet.Kubelets,
        name: str,
        host: agent_settings.HostSettings,
        access: accesses.Access,
    ) -> None:
        settings = agent_settings.Settings.model_validate(
            {
                "node_name": name,
                "mode": "observe",
                "tick_seconds": self._options.tick_seconds,
                "host": host,
                "kubelet": {
                    "url": kubelets.url(name).removesuffix("/pods"),
                    "token_file": self._token_file,
                    "verify": "off",
                    "interval_seconds": 2.0,
                },
                "report": self._options.report,
                "feature_gates": dict(self._options.feature_gates),
                "health": all_in_one.local(),
            }
        )
        self.agents[name] = await self._stack.enter_async_context(
            agents.running(settings, access=access, clock=self._clock)
        )

    async def live(self) -> None:
        """Let time pass on the generated hosts, for ever.

        At even distances, as agents tick: a drift between the two would one day let a tick see
        the use of two steps, and the next one that of none.
        """
        before = due = self._clock.monotonic()
        while True:
            due = max(due + self._options.step_seconds, before)
            await self._clock.sleep(due - before)
            now = self._clock.monotonic()
            self.step(now - before)
            before = now

    def step(self, seconds: float) -> None:
        """Let some time pass: every pod uses what it wants, as far as its host can give it."""
        for uid, (node, pod) in self._pods.items():
            use = self._fixed.get(uid) or self._use(uid, pod)
            self._hosts[node].set_load(uid, use.cpu_milli, use.memory_bytes)
        for tree in self._hosts.values():
            tree.advance(seconds)

    def _use(self, uid: str, pod: core.Pod) -> pod_load.Use:
        asked = resources.pod_requests(pod)
        if qos.band_of_pod(pod) is qos.Band.BATCH:
            return pod_load.batch(asked.get(names.BATCH_CPU, 0), asked.get(names.BATCH_MEMORY, 0))
        cpu, memory = asked.get(names.CPU, 0), asked.get(names.MEMORY, 0)
        return self._online(uid, cpu, memory, self._clock.now())

    def _started(self, node: str, raw: dict[str, Any]) -> None:
        tree = self._hosts.get(node)
        if tree is None:
            return
        pod = msgspec.convert(raw, core.Pod)
        ids = [
            pod_states.container_id(raw, container.name).partition("://")[2]
            for container in pod.spec.containers
        ]
        tree.add_pod(pod.metadata.uid, qos.kubernetes_qos(pod), ids)
        self._pods[pod.metadata.uid] = (node, pod)

    def _stopped(self, node: str, raw: dict[str, Any]) -> None:
        uid = raw["metadata"]["uid"]
        if self._pods.pop(uid, None) is not None:
            self._hosts[node].remove_pod(uid)

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Let the generated hosts live; on exit the agents stop."""
        async with supervise.Supervisor("fleet") as supervisor:
            supervisor.start("hosts", self.live)
            async with self._stack:
                yield
