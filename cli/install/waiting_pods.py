"""What an uninstallation does for pods that wait for us: scheduling gates and conditions. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from cli.doctor.checkup import facts, findings
from domain import wording

GATES: Final = (names.GATE_QUOTA, names.GATE_GANG)
"""Scheduling gates that only our processes open."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpenGates:
    """Remove our scheduling gates from exactly this pod; gates of others stay."""

    namespace: str
    name: str
    uid: str
    gates: tuple[str, ...]

    def sentence(self) -> str:
        """Say what is done."""
        return f"open {', '.join(self.gates)} of Pod {self.namespace}/{self.name}"

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the strategic merge patch of the pod."""
        deleted = [{"$patch": "delete", "name": gate} for gate in self.gates]
        return {"metadata": {"uid": self.uid}, "spec": {"schedulingGates": deleted}}


@dataclasses.dataclass(frozen=True, slots=True)
class DropCondition:
    """Remove the condition that tells why a pod waits for quota."""

    namespace: str
    name: str
    uid: str

    def sentence(self) -> str:
        """Say what is done."""
        return f"remove condition {names.CONDITION_QUOTA} of Pod {self.namespace}/{self.name}"

    @property
    def body(self) -> Mapping[str, Any]:
        """Return the strategic merge patch of the status of the pod."""
        deleted = [{"$patch": "delete", "type": names.CONDITION_QUOTA}]
        return {"metadata": {"uid": self.uid}, "status": {"conditions": deleted}}


Release = OpenGates | DropCondition


def gates(pods: Sequence[facts.Pod]) -> Iterator[OpenGates]:
    """Name the gates that keep pods waiting."""
    for pod in pods:
        ours = tuple(gate for gate in GATES if gate in pod.gates)
        if ours and not pod.ended:
            yield OpenGates(pod.namespace, pod.name, pod.uid, ours)


def conditions(pods: Sequence[facts.Pod]) -> Iterator[DropCondition]:
    """Name the conditions that no controller updates any more.

    A pod that runs keeps the condition that says that its quota had room.
    """
    for pod in pods:
        if pod.quota_condition and not pod.ended and not (pod.node and pod.has_quota):
            yield DropCondition(pod.namespace, pod.name, pod.uid)


def sentences(releases: Sequence[Release]) -> Iterator[str]:
    """Say what is done for all of these pods, in at most two sentences."""
    for kind, what in (
        (OpenGates, "open our scheduling gates"),
        (DropCondition, f"remove the condition {names.CONDITION_QUOTA}"),
    ):
        pods = [f"{one.namespace}/{one.name}" for one in releases if isinstance(one, kind)]
        if pods:
            yield f"{what} of {wording.count(len(pods), 'pod', 'pods')}: {findings.some(pods)}"
