"""What of a node changes seldom: how its machine is built, and who has which cpus alone."""

from collections.abc import Sequence

import msgspec

from agent.host import files
from agent.model import state
from agent.model.cpus import cpu_bindings, kubelet_cpu_manager, reserved_cpus
from agent.observe.node import cpu_topology
from api import names
from api.kubernetes import core


class Told(msgspec.Struct, frozen=True):
    """What watches and the kubelet say."""

    node: core.Node | None
    pods: Sequence[core.Pod] | None
    kubelet: kubelet_cpu_manager.Told


class Standing(msgspec.Struct, frozen=True):
    """The machine, and what of its cpus is not for everybody."""

    machine: state.Machine
    kubelet: state.KubeletCpus | None
    reserved: state.Reserved
    bindings: cpu_bindings.Bindings = cpu_bindings.Bindings()
    """Pods that have cpus to themselves, and those whose claim does not hold."""

    @property
    def problems(self) -> dict[str, str]:
        """Return what cannot be honoured, by source, with the reason."""
        refused = {f"cpus of pod {one.key}": one.reason for one in self.bindings.refused}
        return {**self.reserved.problems, **refused}


class Site:
    """Puts both together again only when something that they come from has changed."""

    def __init__(self, sys: str, proc: str, kept: files.Kept, *, huge_pages: bool = False) -> None:
        self._machine = cpu_topology.Machine(sys, proc, huge_pages=huge_pages)
        self._kept = kept
        self._from: tuple[object, ...] = ()
        self._standing = Standing(state.Machine(), None, state.Reserved())
        self._claims: dict[str, str] = {}
        """What each pod claimed when it was last seen, by uid."""
        self._changed: dict[str, int] = {}
        self._changes = 0

    @property
    def problem(self) -> str:
        """Why a part of the machine is not known."""
        return self._machine.problem

    def look(self, told: Told, at: float) -> Standing:
        """Return how things stand; the same object while nothing changes."""
        machine = self._machine.look(at, self._kept)
        whence = (machine, told.node, told.pods, told.kubelet)
        known = self._from
        if not known or any(one is not other for one, other in zip(whence, known, strict=True)):
            self._notice(told.pods or ())
            self._from, self._standing = whence, _standing(machine, told, self._changed)
        return self._standing

    def _notice(self, pods: Sequence[core.Pod]) -> None:
        """Remember which pods changed their claim while they ran here, and in which order."""
        before, self._claims = self._claims, {}
        for pod in pods:
            uid = pod.metadata.uid
            claim = pod.metadata.annotations.get(names.ANNOTATION_RESOURCE_STATUS, "")
            self._claims[uid] = claim
            if before.get(uid, claim) != claim:
                self._changes += 1
                self._changed[uid] = self._changes
        self._changed = {uid: n for uid, n in self._changed.items() if uid in self._claims}


def _standing(machine: state.Machine, told: Told, changed: cpu_bindings.Changes) -> Standing:
    cpus, pods = machine.processors, told.pods or ()
    own = reserved_cpus.read(told.node, processors=cpus) if told.node else state.Reserved()
    kubelet = kubelet_cpu_manager.known(told.kubelet, pods, cpus)
    bindings = cpu_bindings.granted(pods, cpu_bindings.Site(told.node, cpus, own, kubelet), changed)
    # What the kubelet gave to a pod that the scheduler has bound is not what it runs on.
    kubelet = kubelet_cpu_manager.known(told.kubelet, pods, cpus, bindings.cpus)
    return Standing(machine, kubelet, reserved_cpus.beside(own, kubelet), bindings)
