"""From one look to what is to be done: which strategies decide now, and what of it is new. Pure.

What a strategy wants stands until it decides otherwise: what it no longer wants is put back,
unless another strategy wants it. Edits that did not change are only repeated now and then, so that
a file that somebody else wrote is found without reading every file in every tick.
"""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping

from agent import catalogue, edits

REPEAT_SECONDS = 30.0


class Mode(enum.StrEnum):
    """How far a strategy may go."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    OFF = "off"


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
    ) -> None:
        self._strategies = tuple(strategies)
        self._gates = frozenset(gates)
        self._modes, self._default = modes, default
        self._standing: dict[str, _Standing] = {}
        self._passed: dict[edits.Key, str | None] = {}
        self._shown: dict[edits.Key, str | None] = {}
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
        by_mode = {
            mode: [
                self._standing[strategy.name].decision
                for strategy in self._strategies
                if self.mode(strategy.name) is mode
            ]
            for mode in (Mode.ENFORCE, Mode.OBSERVE)
        }
        enforced = edits.by_key(e for d in by_mode[Mode.ENFORCE] for e in d.wanted)
        observed = edits.by_key(e for d in by_mode[Mode.OBSERVE] for e in d.wanted)
        return Round(
            wanted=self._changes(enforced, look.now),
            observed=self._news(observed, enforced),
            evictions=_evictions(by_mode[Mode.ENFORCE]),
            observed_evictions=_evictions(by_mode[Mode.OBSERVE]),
            decisions={name: one.decision for name, one in self._standing.items()},
        )

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
        due = self._repeated is None or now - self._repeated >= REPEAT_SECONDS
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


def _evictions(decisions: Iterable[edits.Decision]) -> tuple[edits.Eviction, ...]:
    found: dict[str, edits.Eviction] = {}
    for decision in decisions:
        for one in decision.evictions:
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
