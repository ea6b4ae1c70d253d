"""From one look to what is to be done: which strategies decide now, and what of it is new. Pure.

What a strategy wants stands until it decides otherwise: what it no longer wants is put back,
unless another strategy wants it. Edits that did not change are only repeated now and then, so that
a file that somebody else wrote is found without reading every file in every tick.
"""

import dataclasses
import enum
import zlib
from collections.abc import Collection, Iterable, Mapping

from agent import catalogue, edits, state

REPEAT_SECONDS = 30.0


class Mode(enum.StrEnum):
    """How far a strategy may go."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    OFF = "off"


def held(mode: Mode) -> Mode:
    """Return how far a strategy goes on a node that only observes."""
    return Mode.OBSERVE if mode is Mode.ENFORCE else mode


def enforces(node_name: str, percent: int) -> bool:
    """Tell whether a node is among the share of all nodes that enforce: its name decides."""
    return zlib.crc32(node_name.encode()) % 100 < percent


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """Pods for which strategies that enforce only observe; suppression is of a class as a whole."""

    namespaces: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """QoS classes by name, those without a label by the one that they stand for."""

    def holds(self, pod: state.PodState) -> bool:
        """Tell whether what concerns a pod is only observed."""
        return pod.pod.metadata.namespace in self.namespaces or pod.effective_qos in self.classes


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """What one tick asks for."""

    wanted: tuple[edits.Edit, ...] = ()
    """What is to be written, releases included."""
    observed: tuple[edits.Edit, ...] = ()
    """What would be written."""
    evictions: tuple[edits.Eviction, ...] = ()
    observed_evictions: tuple[edits.Eviction, ...] = ()
    decisions: Mapping[str, edits.Decision] = dataclasses.field(default_factory=dict)
    """The latest decision of each strategy, by name."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Standing:
    """What one strategy wants at present."""

    decision: edits.Decision
    at: float
    seen: object


class Planner:
    """Runs the strategies of one node and remembers what each of them wants."""

    def __init__(
        self,
        strategies: Iterable[catalogue.Strategy],
        gates: Collection[str],
        modes: Mapping[str, Mode],
        default: Mode = Mode.OBSERVE,
        scope: Scope | None = None,
        repeat_seconds: float = REPEAT_SECONDS,
    ) -> None:
        self._strategies = tuple(strategies)
        self._gates = frozenset(gates)
        self._modes, self._default = modes, default
        self._scope = scope or Scope()
        self._standing: dict[str, _Standing] = {}
        self._passed: dict[edits.Key, str | None] = {}
        self._shown: dict[edits.Key, str | None] = {}
        self._repeat_seconds = repeat_seconds
        self._repeated: float | None = None

    def mode(self, name: str) -> Mode:
        """Return how far a strategy may go."""
        return self._modes.get(name, self._default)

    def forget(self) -> None:
        """Start anew: everything was put back."""
        self._standing.clear()
        self._passed.clear()
        self._shown.clear()
        self._repeated = None

    def step(self, look: catalogue.Look) -> Round:
        """Let the strategies decide that are due, and return what has to be done."""
        look = dataclasses.replace(look, enabled=self._gates)
        seen = _fingerprint(look)
        for strategy in self._strategies:
            self._decide(strategy, look, seen)
        pods = self._observed_pods(look.picture)
        parts: dict[bool, list[edits.Edit]] = {True: [], False: []}
        leaving: dict[bool, list[edits.Eviction]] = {True: [], False: []}
        for strategy in self._strategies:
            decision = self._standing[strategy.name].decision
            held = self.mode(strategy.name) is Mode.OBSERVE
            for edit in decision.wanted:
                parts[held or (not strategy.defended and edit.group in pods)].append(edit)
            for eviction in decision.evictions:
                leaving[held or eviction.uid in pods].append(eviction)
        enforced, observed = edits.by_key(parts[False]), edits.by_key(parts[True])
        return Round(
            wanted=self._changes(enforced, look.now),
            observed=self._news(observed, enforced),
            evictions=_once(leaving[False]),
            observed_evictions=_once(leaving[True]),
            decisions={name: one.decision for name, one in self._standing.items()},
        )

    def _observed_pods(self, picture: state.NodeState) -> frozenset[str]:
        """Return the uids and groups of the pods for which strategies only observe."""
        if not self._scope.namespaces and not self._scope.classes:
            return frozenset()
        held = [pod for pod in picture.pods if self._scope.holds(pod)]
        groups = [group for pod in held for group in (pod.group, pod.sandbox)]
        inner = [container.group for pod in held for container in pod.containers]
        names = [pod.pod.metadata.uid for pod in held]
        return frozenset(one for one in (*names, *groups, *inner) if one)

    def _decide(self, strategy: catalogue.Strategy, look: catalogue.Look, seen: object) -> None:
        before = self._standing.get(strategy.name)
        if self.mode(strategy.name) is Mode.OFF:
            decision = edits.switched_off("switched off in the settings")
        elif strategy.gates and not self._gates & set(strategy.gates):
            decision = edits.switched_off(f"the feature gate {' or '.join(strategy.gates)} is off")
        elif (
            before is not None
            and before.decision.decided
            and before.seen == seen
            and look.now - before.at < strategy.seconds
        ):
            return
        else:
            decision = strategy.decide(look)
        if not decision.decided and before is not None:
            # Nothing is known at the moment: what was wanted stands.
            decision = dataclasses.replace(decision, wanted=before.decision.wanted)
        self._standing[strategy.name] = _Standing(decision, look.now, seen)

    def _changes(
        self, enforced: Mapping[edits.Key, edits.Edit], now: float
    ) -> tuple[edits.Edit, ...]:
        """Return what differs from what was passed on before; now and then everything."""
        due = self._repeated is None or now - self._repeated >= self._repeat_seconds
        always = self._defended()
        found = [
            edit
            for key, edit in enforced.items()
            if due or key in always or self._passed.get(key, _NEVER) != edit.value
        ]
        gone = [key for key in self._passed if key not in enforced]
        if due:
            self._repeated = now
        self._passed = {key: edit.value for key, edit in enforced.items()}
        return (*found, *(_release(key) for key in gone))

    def _defended(self) -> set[edits.Key]:
        return {
            edit.key
            for strategy in self._strategies
            if strategy.defended
            for edit in self._standing[strategy.name].decision.wanted
        }

    def _news(
        self, observed: Mapping[edits.Key, edits.Edit], enforced: Mapping[edits.Key, edits.Edit]
    ) -> tuple[edits.Edit, ...]:
        """Return what would be written now and was not said before."""
        found = tuple(
            edit
            for key, edit in observed.items()
            if edit.value is not None
            and key not in enforced
            and self._shown.get(key, _NEVER) != edit.value
        )
        self._shown = {key: edit.value for key, edit in observed.items()}
        return found


_NEVER = object()


def _release(key: edits.Key) -> edits.Edit:
    return edits.Edit(key[0], key[1], None, "nobody wants it any more")


def _once(evictions: Iterable[edits.Eviction]) -> tuple[edits.Eviction, ...]:
    """Return one eviction for each pod: the first strategy that asked for it."""
    found: dict[str, edits.Eviction] = {}
    for one in evictions:
        found.setdefault(one.uid, one)
    return tuple(found.values())


def _fingerprint(look: catalogue.Look) -> object:
    """Return what a decision that only follows pods and settings depends on."""
    return (
        look.strategies,
        look.picture.thresholds,
        look.picture.kernel,
        None if look.picture.node is None else look.picture.node.metadata.annotations,
        # A pod that did not change is the same object, so that this compares quickly.
        tuple((pod.pod, pod.group, pod.sandbox) for pod in look.picture.pods),
        look.picture.processors,
        look.picture.disks,
        look.picture.caches,
    )
        look.picture.network,
        look.picture.pod_groups,
