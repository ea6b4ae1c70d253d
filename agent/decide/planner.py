"""From one look to what is to be done: which strategies decide now, and what of it is new. Pure.

What a strategy wants stands until it decides otherwise: what it no longer wants is put back,
unless another strategy wants it. Edits that did not change are only repeated now and then, each at
a time of its own, so that a file that another program wrote is found without reading every file in
every tick, nor all of them in one.
"""

import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

import msgspec

from agent.decide import catalogue, isolation, turns
from agent.model import edits, live_switches, state

REPEAT_SECONDS = 30.0
ADOPTED_SECONDS = 15.0
"""What an earlier agent set stands so long after everything is known: the first looks after a start
have figures of a moment only."""
UNDECIDED_SECONDS = 300.0
"""... and so long where a strategy does not come to a decision, but for what limits best effort:
that stands until its strategy has decided."""


Mode = live_switches.Mode


def enforces(node_name: str, percent: int) -> bool:
    """Tell whether a node is among the share of all nodes that enforce: its name decides."""
    return zlib.crc32(node_name.encode()) % 100 < percent


class Scope(msgspec.Struct, frozen=True):
    """Pods for which strategies that enforce only observe; suppression is of a class as a whole."""

    namespaces: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """QoS classes by name, those without a label by the one that they stand for."""
    ceiling: Mode = Mode.ENFORCE
    """How far every strategy goes at most on this node."""

    def of_pod(self, pod: state.PodState, live: live_switches.Here) -> Mode:
        """Return how far strategies go at most in what concerns a pod."""
        namespace, class_ = pod.pod.metadata.namespace, pod.effective_qos.value
        held = namespace in self.namespaces or class_ in self.classes
        return live_switches.least(
            Mode.OBSERVE if held else Mode.ENFORCE,
            live_switches.least(
                live.namespaces.get(namespace, Mode.ENFORCE),
                live.classes.get(class_, Mode.ENFORCE),
            ),
        )

    def spared(self, live: live_switches.Here) -> tuple[str, ...]:
        """Return the namespaces and classes of pods for which strategies do not enforce."""
        return tuple(
            f"{kind} {name}"
            for kind, held, switched in (
                ("namespace", self.namespaces, live.namespaces),
                ("class", self.classes, live.classes),
            )
            for name in sorted({*held, *(n for n, m in switched.items() if m is not Mode.ENFORCE)})
        )


class Round(msgspec.Struct, frozen=True):
    """What one tick asks for."""

    wanted: tuple[edits.Edit, ...] = ()
    """What is to be written, releases included."""
    observed: tuple[edits.Edit, ...] = ()
    """What would be written."""
    evictions: tuple[edits.Eviction, ...] = ()
    observed_evictions: tuple[edits.Eviction, ...] = ()
    decisions: Mapping[str, edits.Decision] = msgspec.field(default_factory=dict)
    """The latest decision of each strategy, by name."""
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Why strategies could not decide in this tick, by name."""
    skipped: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)
    """Pods that a strategy leaves out, with the reason, by its name."""


class _Standing(msgspec.Struct, frozen=True):
    """What one strategy wants at present."""

    decision: edits.Decision
    at: float
    seen: object
    """What it depended on; what compares equal is one object, since it names every pod."""


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
        self.strategies = tuple(strategies)
        self.gates = frozenset(gates)
        self.scope = scope or Scope()
        self.seen: object = None
        """What the latest decisions that only follow pods and settings depend on."""
        self._modes, self._default = modes, default
        self._standing: dict[str, _Standing] = {}
        self._skipped: dict[str, Mapping[str, isolation.Skipped]] = {}
        self._failed: dict[str, str] = {}
        self._passed: Mapping[edits.Key, edits.Edit] = {}
        self._shown: dict[edits.Key, str | None] = {}
        self._turns = turns.Turns(repeat_seconds)
        self._adopted: set[edits.Key] = set()
        self._known_since: float | None = None
        self.live = live_switches.Here()
        """What the live switches say."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all strategies."""
        return tuple(strategy.name for strategy in self.strategies)

    def mode(self, name: str) -> Mode:
        """Return how far a strategy may go: its live switch counts before its setting."""
        chosen = self.live.strategies.get(name) or self._modes.get(name, self._default)
        reach = live_switches.least(
            chosen, live_switches.least(self.scope.ceiling, self.live.agent)
        )
        return (
            live_switches.least(reach, self.live.evictions) if name in catalogue.EVICTING else reach
        )

    def reach(self, name: str, pod: state.PodState) -> Mode:
        """Return how far a strategy may go in what concerns a pod."""
        return live_switches.least(self.mode(name), self.scope.of_pod(pod, self.live))

    def of_feature(self, feature: str) -> str:
        """Return the strategy that a feature belongs to, empty where it is none's."""
        named = (one.name for one in self.strategies if feature in one.gates)
        return next(named, "")

    def owners(self, keys: Collection[edits.Key]) -> dict[edits.Key, str]:
        """Return which strategy wants each of these properties at present, the first one first."""
        found: dict[edits.Key, str] = {}
        for strategy in self.strategies:
            standing = self._standing.get(strategy.name)
            for edit in standing.decision.wanted if standing else ():
                if edit.key in keys:
                    found.setdefault(edit.key, strategy.name)
            if len(found) == len(keys):
                # What was written last is most often all of one strategy, the first of them.
                break
        return found

    def forget(self) -> None:
        """Start anew: everything was put back."""
        self._standing.clear()
        self._skipped.clear()
        self._passed = {}
        self._shown.clear()
        self._turns.clear()
        self._adopted.clear()

    def adopt(self, keys: Iterable[edits.Key]) -> None:
        """Take over what an earlier agent set; what no strategy wants of it is put back later."""
        self._adopted |= set(keys)

    def step(self, look: catalogue.Look) -> Round:
        """Let the strategies decide that are due, and return what has to be done."""
        pods = self._spared(look.picture)
        look = msgspec.structs.replace(look, enabled=self.gates, spared=pods)
        if (seen := _fingerprint(look)) != self.seen:
            self.seen = seen
        self._failed = {}
        for number, strategy in enumerate(self.strategies):
            self._decide(strategy, look, number / len(self.strategies))
        parts: dict[Mode, list[edits.Edit]] = {mode: [] for mode in Mode}
        leaving: dict[Mode, list[edits.Eviction]] = {mode: [] for mode in Mode}
        for strategy in self.strategies:
            decision, reach = self._standing[strategy.name].decision, self.mode(strategy.name)
            if strategy.defended or not pods:
                parts[reach].extend(decision.wanted)
            else:
                for edit in decision.wanted:
                    held = pods.get(edit.pod or edit.group, reach)
                    parts[live_switches.least(reach, held)].append(edit)
            reach = live_switches.least(reach, self.live.evictions)
            for eviction in decision.evictions:
                leaving[live_switches.least(reach, pods.get(eviction.uid, reach))].append(eviction)
        enforced = edits.by_key(parts[Mode.ENFORCE])
        let_go = self._let_go(look, enforced)
        return Round(
            wanted=(*self._changes(enforced, look.now), *map(_release, let_go)),
            observed=self._news(edits.by_key(parts[Mode.OBSERVE]), enforced),
            evictions=_once(leaving[Mode.ENFORCE], lambda one: one.uid),
            observed_evictions=_once(leaving[Mode.OBSERVE], lambda one: (one.uid, one.feature)),
            decisions={name: one.decision for name, one in self._standing.items()},
            failed=self._failed,
            skipped={
                name: {one.pod.pod.metadata.key: one.reason for one in left_out.values()}
                for name, left_out in self._skipped.items()
                if left_out
            },
        )

    def _spared(self, picture: state.NodeState) -> dict[str, Mode]:
        """Return how far strategies go for the pods that are spared, by their uids and groups."""
        live, scope = self.live, self.scope
        if not (live.namespaces or live.classes or scope.namespaces or scope.classes):
            return {}
        found: dict[str, Mode] = {}
        for pod in picture.pods:
            mode = scope.of_pod(pod, live)
            if mode is not Mode.ENFORCE:
                inner = (container.group for container in pod.containers)
                for name in (pod.pod.metadata.uid, pod.group, pod.sandbox, *inner):
                    found[name] = mode
        found.pop("", None)
        return found

    def _decide(self, strategy: catalogue.Strategy, look: catalogue.Look, phase: float) -> None:
        """Let a strategy decide if it is due; those that look seldom do so at different times."""
        before = self._standing.get(strategy.name)
        if self.mode(strategy.name) is Mode.OFF:
            decision = edits.switched_off(self._why_off(strategy.name))
            self._skipped.pop(strategy.name, None)
        elif strategy.gates and not self.gates & set(strategy.gates):
            decision = edits.switched_off(f"the feature gate {' or '.join(strategy.gates)} is off")
        elif (
            before is not None
            and before.decision.decided
            and before.seen is self.seen
            and not turns.has(phase, before.at, look.now, strategy.seconds)
        ):
            return
        else:
            decision = self._asked(strategy, look, before)
        if not decision.decided and before is not None:
            # Nothing is known at the moment: what was wanted stands.
            decision = msgspec.structs.replace(decision, wanted=before.decision.wanted)
        self._standing[strategy.name] = _Standing(decision, look.now, self.seen)

    def _asked(
        self, strategy: catalogue.Strategy, look: catalogue.Look, before: _Standing | None
    ) -> edits.Decision:
        """Let a strategy decide; what makes it fail stays with it, and with the pod at fault."""
        stood = before.decision if before is not None else None
        known = self._skipped.get(strategy.name)
        outcome = isolation.decide(strategy, look, stood, known)
        self._skipped[strategy.name] = outcome.skipped
        if outcome.failure:
            self._failed[strategy.name] = outcome.failure
        return outcome.decision

    def _why_off(self, name: str) -> str:
        if self.live.agent is Mode.OFF:
            return f"switched off by the live switch {self.live.key}"
        if self.live.strategies.get(name) is Mode.OFF:
            return f"switched off by the live switch {live_switches.KEY}.{name}"
        if self.live.evictions is Mode.OFF and name in catalogue.EVICTING:
            return f"switched off by the live switch {live_switches.KEY}.{live_switches.EVICTIONS}"
        return "switched off in the settings"

    def _changes(
        self, enforced: Mapping[edits.Key, edits.Edit], now: float
    ) -> tuple[edits.Edit, ...]:
        """Return what differs from what was passed on before, and what has its turn again."""
        due = self._turns.due(now)
        again = None if due is None else due | self._defended()
        passed, found, known = self._passed, [], 0
        for key, edit in enforced.items():
            before = passed.get(key)
            if before is None:
                self._turns.add(key, edit)
            else:
                known += 1
                # Most decisions stand, and so do their edits.
                same = before is edit or before.value == edit.value
                if same and again is not None and key not in again:
                    continue
            found.append(edit)
        gone = [key for key in passed if key not in enforced] if known < len(passed) else []
        for key in gone:
            self._turns.drop(key)
        self._passed = enforced
        return (*found, *(_release(key) for key in gone))

    def _let_go(
        self, look: catalogue.Look, enforced: Mapping[edits.Key, edits.Edit]
    ) -> tuple[edits.Key, ...]:
        """Return what an earlier agent set and no strategy wants, once that is certain."""
        self._adopted -= enforced.keys()
        if not self._adopted or not look.picture.pods_known:
            return ()
        if self._known_since is None:
            self._known_since = look.now
        undecided = [
            strategy
            for strategy in self.strategies
            if not self._standing[strategy.name].decision.decided
        ]
        if look.now - self._known_since < (UNDECIDED_SECONDS if undecided else ADOPTED_SECONDS):
            return ()
        waiting = [one for one in undecided if self.mode(one.name) is Mode.ENFORCE]
        found = {key for key in self._adopted if not any(one.may_hold(*key) for one in waiting)}
        self._adopted -= found
        return tuple(sorted(found))

    def _defended(self) -> set[edits.Key]:
        return {
            edit.key
            for strategy in self.strategies
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
    return edits.Edit(key[0], key[1], None, "no strategy wants it any more")


def _once(
    evictions: Iterable[edits.Eviction], what: Callable[[edits.Eviction], Hashable]
) -> tuple[edits.Eviction, ...]:
    """Return one eviction for each of something: that of the first strategy that asked for it."""
    found: dict[Hashable, edits.Eviction] = {}
    for one in evictions:
        found.setdefault(what(one), one)
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
        look.picture.reserved,
        look.picture.disks,
        look.picture.caches,
        look.picture.network,
        look.picture.pod_groups,
    )
