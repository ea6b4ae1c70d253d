"""What of a node changes seldom: how its machine is built, and who has which cpus alone."""

from collections.abc import Sequence

import msgspec

from agent import files, kubelet_cpus, reserved, state
from agent.observe import topology
from api import core


class Told(msgspec.Struct, frozen=True):
    """What watches and the kubelet say."""

    node: core.Node | None
    pods: Sequence[core.Pod] | None
    kubelet: kubelet_cpus.Told


class Standing(msgspec.Struct, frozen=True):
    """The machine, and what of its cpus is not for everybody."""

    machine: state.Machine
    kubelet: state.KubeletCpus | None
    reserved: state.Reserved


class Site:
    """Puts both together again only when something that they come from has changed."""

    def __init__(self, sys: str, proc: str, kept: files.Kept, *, huge_pages: bool = False) -> None:
        self._machine = topology.Machine(sys, proc, huge_pages=huge_pages)
        self._kept = kept
        self._from: tuple[object, ...] = ()
        self._standing = Standing(state.Machine(), None, state.Reserved())

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
            self._from, self._standing = whence, _standing(machine, told)
        return self._standing


def _standing(machine: state.Machine, told: Told) -> Standing:
    cpus = machine.processors
    kubelet = kubelet_cpus.known(told.kubelet, told.pods, cpus)
    own = reserved.read(told.node, processors=cpus) if told.node else state.Reserved()
    return Standing(machine, kubelet, reserved.beside(own, kubelet))
