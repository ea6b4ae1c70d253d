"""Draining a node: which of its pods move and where, which must stay and why. Pure.

The filters of the descheduler say which pods may move, the plug-ins of the extender where each
would go once those before it have gone. Pods with the largest requests are placed first.
"""

import dataclasses
import enum
from collections.abc import Iterator, Sequence
from typing import Final

from cli.rebalancing import departures
from descheduler.configuration.arguments import migration
from descheduler.framework import protocols
from descheduler.framework.filtering import lasting_checks, open_jobs, pod_traits, safeguards
from descheduler.model import picture, podinfo

PLUGIN: Final = "Drain"
"""What jobs name as their trigger."""
GANG_ELSEWHERE: Final = "its gang has members on other nodes; --gangs moves all of them"
_MOST_KEYS: Final = ("cpu", "memory")


class Fate(enum.StrEnum):
    """What becomes of a pod of the node."""

    MOVES = "moves"
    """It gets a PodMigrationJob."""
    IS_MOVING = "is moving"
    """It has one."""
    IS_LEAVING = "is leaving already"
    """It terminates, whatever made it; it is waited for."""
    NO_TARGET = "has no target"
    """No other node takes it as things are."""
    MUST_STAY = "must stay"
    """The filters of the descheduler refuse it."""
    BELONGS = "belongs to the node"
    """A DaemonSet or the kubelet itself keeps it there; it hinders nobody."""


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One pod."""

    pod: podinfo.Pod
    fate: Fate
    target: str = ""
    """The node that the scheduler would choose as things are."""
    reason: str = ""
    """Why it does not move; of a pod that is leaving, how long it has left."""
    group: str = ""
    """Its gang, where that moves as a whole."""
    group_size: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What a drain would do."""

    node: str
    lines: tuple[Line, ...]

    def of(self, fate: Fate) -> Sequence[Line]:
        """Return the pods of one fate."""
        return [line for line in self.lines if line.fate is fate]

    @property
    def empties(self) -> bool:
        """Whether no pod is left that could run elsewhere."""
        return not self.of(Fate.NO_TARGET) and not self.of(Fate.MUST_STAY)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How pods may move."""

    arguments: migration.MigrationControllerArgs
    gangs: bool = False
    """Whether gangs with members on other nodes move as a whole."""


def plan(seen: picture.Picture, node: str, targets: protocols.Targets, options: Options) -> Plan:
    """Return what becomes of each pod of a node; `targets` is changed by the moves."""
    jobs = open_jobs.of(seen)
    drain = _Drain(seen, node, jobs, options)
    lines = [line for unit in drain.units() for line in drain.placed(unit, targets)]
    return Plan(node, tuple(sorted(lines, key=lambda line: (line.fate, line.pod.key))))


class _Drain:
    """One drain in the making."""

    def __init__(
        self, seen: picture.Picture, node: str, jobs: open_jobs.OpenJobs, options: Options
    ) -> None:
        self._seen, self._node, self._jobs, self._options = seen, node, jobs, options
        self._lasting = lasting_checks.LastingChecks(options.arguments, seen)
        self._safe = safeguards.Safeguards(seen, jobs)
        self._gangs = safeguards.Gangs(seen)

    def units(self) -> Iterator[tuple[podinfo.Pod, ...]]:
        """Yield pods that move together: a gang that can move as a whole, else each pod alone."""
        done: set[str] = set()
        for pod in sorted(self._seen.running_on(self._node), key=_size):
            if pod.uid in done:
                continue
            unit: tuple[podinfo.Pod, ...] = (pod,)
            members = self._gangs.members(pod.gang) if pod.gang else ()
            if any(one.uid == pod.uid for one in members) and (
                self._options.gangs or all(one.node == self._node for one in members)
            ):
                unit = tuple(sorted(members, key=_size))
            done |= {one.uid for one in unit}
            yield unit

    def placed(self, unit: Sequence[podinfo.Pod], targets: protocols.Targets) -> Iterator[Line]:
        """Yield what becomes of pods that move together: all of them, or none."""
        whole = len(unit) > 1
        if whole and not any(map(self._jobs.holds, unit)):
            # A gang that leaves as a whole leaves no rest without quorum behind.
            for pod in unit:
                self._jobs.add(pod)
            found = [self._line(pod, targets, is_counted=True) for pod in unit]
        else:
            found = [self._line(pod, targets) for pod in unit]
        stuck = next((line for line in found if line.fate is not Fate.MOVES), None)
        for line in found:
            if whole and stuck is not None and line.fate is Fate.MOVES:
                reason = f"its gang moves as a whole, and {stuck.pod.key} {stuck.fate}"
                yield Line(line.pod, Fate.MUST_STAY, reason=reason)
            elif whole and line.fate is Fate.MOVES:
                yield dataclasses.replace(line, group=line.pod.gang, group_size=len(unit))
            else:
                yield line

    def _line(
        self, pod: podinfo.Pod, targets: protocols.Targets, *, is_counted: bool = False
    ) -> Line:
        if pod.is_mirror or pod_traits.is_daemon(pod):
            return Line(pod, Fate.BELONGS)
        if not is_counted and self._jobs.holds(pod):
            return Line(pod, Fate.IS_MOVING)
        if pod.leaves_at >= 0:
            reason = departures.rest(pod, self._seen.now)
            return Line(pod, Fate.IS_LEAVING, reason=reason)
        reason = self._lasting.refusal(pod) or self._safe.refusal(pod)
        if reason == safeguards.GANG:
            reason = GANG_ELSEWHERE
        if reason:
            return Line(pod, Fate.MUST_STAY, reason=reason)
        found = targets.target(pod, None, {self._node})
        if isinstance(found, protocols.NoTarget):
            return Line(pod, Fate.NO_TARGET, reason=found.reason)
        targets.move(pod, found.node)
        if not is_counted:
            self._jobs.add(pod)
        return Line(pod, Fate.MOVES, target=found.node)


def _size(pod: podinfo.Pod) -> tuple[int | str, ...]:
    return (*(-pod.requests.get(key, 0) for key in _MOST_KEYS), pod.key)
