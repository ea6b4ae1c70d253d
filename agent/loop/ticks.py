"""The loop of the agent: observe, decide, apply, once per tick."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from agent.apply import audit, enforcer, executor
from agent.decide import catalogue, planner, spec_enforcement, windows
from agent.loop import births, tick_metrics
from agent.model import cgroup_layout as layouts
from agent.model import edits, live_switches, state, strategy_settings
from agent.observe import observation
from agent.observe.node import boot
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
SUPPRESS = tick_metrics.SUPPRESS
Figures = tick_metrics.Figures


class Evictor(Protocol):
    """Who carries out evictions."""

    @property
    def leaving(self) -> Collection[str]:
        """The pods that were evicted and will have left soon, by uid."""

    @property
    def refused(self) -> Collection[str]:
        """The pods that could not be evicted a moment ago, or take long to stop, by uid."""

    def want(
        self,
        evictions: Sequence[edits.Eviction],
        present: Collection[str] | None,
        observed: Sequence[edits.Eviction] = (),
    ) -> None:
        """Take what one tick wants, and what it would want if it were let."""

    def cease(self) -> None:
        """Send nothing more of what was asked for."""


class Habits(msgspec.Struct, frozen=True):
    """Which strategies decide, how far they may go and how often everything is looked at."""

    state_folder: Path
    """Where the journal is kept."""
    writing: bool = False
    """Whether anything may be written at all; otherwise every strategy only observes."""
    gates: frozenset[str] = frozenset({"BECPUSuppress"})
    """The feature gates that are on."""
    modes: Mapping[str, planner.Mode] = msgspec.field(
        default_factory=lambda: {SUPPRESS: planner.Mode.ENFORCE}
    )
    """How far single strategies may go; the others only observe."""
    default: planner.Mode = planner.Mode.OBSERVE
    scope: planner.Scope = msgspec.field(default_factory=planner.Scope)
    pressure: strategy_settings.Pressure = msgspec.field(default_factory=strategy_settings.Pressure)
    tick_seconds: float = 1.0


class Ticks:
    """Looks at the node again and again and lets decisions follow."""

    def __init__(
        self,
        observer: observation.Observer,
        known: Callable[[], observation.Known],
        clock: clocks.Clock,
        figures: Figures,
        habits: Habits,
    ) -> None:
        self.audit = audit.Audit()
        self.picture: state.NodeState | None = None
        self.decisions: Mapping[str, edits.Decision] = {}
        """The latest decision of each strategy, by name."""
        self.problem: str | None = "no tick has run yet"
        self._halted = False
        self.evictor: Evictor | None = None
        self.births: births.Births | None = None
        """What container runtimes are answered; None where none asks."""
        self.switches: Callable[[], live_switches.Here | None] = live_switches.Here
        """Says what the live switches say here; None while that is not known."""
        self._observer = observer
        self._known = known
        self._clock = clock
        self._figures = figures
        self._writing = habits.writing
        self.enforcer = enforcer.Enforcer(
            habits.state_folder, writing=habits.writing, read=observer.reread
        )
        self._seen = windows.Windows(habits.tick_seconds)
        self._looked: catalogue.Look | None = None
        observer.watching_pressure = habits.pressure.enable
        observer.watching_network = "TCNetworkQoS" in habits.gates
        self._planner = planner.Planner(
            catalogue.catalogue(self._seen, habits.pressure),
            habits.gates,
            habits.modes,
            habits.default,
            habits.scope,
            # What is never written is reported once, not again and again.
            planner.REPEAT_SECONDS if habits.writing else math.inf,
        )

    @property
    def decided(self) -> edits.Decision:
        """The latest decision about the cpu of best effort."""
        return self.decisions.get(SUPPRESS, _NOTHING_YET)

    @property
    def failing(self) -> Mapping[str, str]:
        """What strategies could not decide in the last tick, by strategy and pod."""
        return self._figures.failing

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all strategies."""
        return self._planner.names

    @property
    def layout(self) -> layouts.Layout | None:
        """Where the groups lie, None while that is unknown."""
        return self._observer.layout

    @property
    def standing(self) -> spec_enforcement.Standing:
        """What the latest tick left behind."""
        return spec_enforcement.Standing(
            self.mode,
            self._planner.gates,
            self.decisions,
            None if self._halted or self._looked is None else self._looked.strategies,
            writing=self._writing and self.enforcer.started and not self._halted,
            problem=self.problem or "",
            unwritten=self.enforcer.unwritten,
            unreleased=self.enforcer.unreleased,
            spared=self._planner.scope.spared(self._planner.live),
        )

    def reach(self, name: str, pod: state.PodState) -> planner.Mode:
        """Return how far a strategy goes in what concerns a pod."""
        return live_switches.least(self.mode(name), self._planner.reach(name, pod))

    def owners(self, keys: Collection[edits.Key]) -> Mapping[edits.Key, str]:
        """Return which strategy wants each of these properties, where one does."""
        return self._planner.owners(keys)

    def strategy_of(self, feature: str) -> str:
        """Return the strategy that a feature belongs to."""
        return self._planner.of_feature(feature)

    def mode(self, name: str) -> planner.Mode:
        """Return how far a strategy goes: never further than the agent as a whole."""
        mode = self._planner.mode(name)
        held = mode is planner.Mode.ENFORCE and not self._writing
        return planner.Mode.OBSERVE if held else mode

    async def run(self, seconds: float, after: Callable[[], None]) -> None:
        """Tick for ever, at even distances; `after` is called after every good tick."""
        due = self._clock.monotonic()
        while True:
            try:
                self.tick()
                after()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                # The root of an eternal task: one bad tick must not leave the node unattended.
                self.problem = f"tick failed: {type(error).__name__}: {error}"
                self._figures.failures.inc()
                _logger.exception("tick failed")
            now = self._clock.monotonic()
            due = max(due + seconds, now)
            await self._clock.sleep(due - now)

    def tick(self) -> state.NodeState:
        """Look once, decide and apply."""
        begin = self._clock.monotonic()
        here, look = self.switched(), None
        moment = observation.Moment(self._clock.now(), begin)
        known = self._known()
        picture = self._observer.observe(known, moment)
        self._figures.log_problems(self.picture, picture)
        self.picture = picture
        self._seen.add(picture, begin)
        halt = _halt(known, here)
        if halt is None:
            round_ = self._decide(picture, known.enforced, begin)
            look = self._looked
        else:
            if halt.ends:
                self._planner.forget()
            names = self.names if halt.off else ()
            round_ = planner.Round(decisions=dict.fromkeys(names, edits.switched_off(halt.reason)))
        self.decisions, self._halted = round_.decisions, halt is not None
        self._figures.show(picture, round_)
        self.problem = self._apply(round_, halt)
        if self.births is not None:
            may = self._writing and self.enforcer.started
            self.births.freeze(self._planner, look, self._observer.layout, may_write=may)
        self._evict(picture, round_)
        self._figures.seconds.observe(self._clock.monotonic() - begin)
        return picture

    def switched(self) -> live_switches.Here | None:
        """Let the live switches take effect, whatever becomes of the rest of a tick."""
        here = self.switches()
        self._planner.live = here or live_switches.Here()
        enforce = planner.Mode.ENFORCE
        if self.evictor and (here is None or not here.agent is here.evictions is enforce):
            self.evictor.cease()
        if self.births is not None and (here is None or here.agent is not enforce):
            self.births.stop()
        if here is not None and here.agent is planner.Mode.OFF and self.enforcer.started:
            self._settle()
            self._take(self.enforcer.put_back(_switched_off(here), self._clock.monotonic()))
        return here

    def write_now(self, wanted: Sequence[edits.Edit]) -> None:
        """Write for a pod that is about to start, as the strategies of the latest tick would."""
        now = self._clock.monotonic()
        if self.births is not None and self.enforcer.started and self._writing and wanted:
            self._take(self.enforcer.apply(wanted, now))
            self.births.watch((edit.key for edit in wanted), now)

    def put_back(self, reason: str) -> None:
        """Put the node back; what fails stays in the journal for the next start."""
        started = self._started()
        if isinstance(started, str):
            _logger.error("the node cannot be put back reason=%s", started)
        self._settle()
        self._take(self.enforcer.put_back(reason))

    def stop(self) -> None:
        """Hand the journal over to the next agent; what was set stands until it comes."""
        if self.births is not None:
            self.births.close()
        self.enforcer.close()
        self._observer.close()

    def _decide(
        self, picture: state.NodeState, wanted: strategy_settings.Strategies | None, now: float
    ) -> planner.Round:
        evictor = self.evictor
        self._looked = catalogue.Look(
            picture,
            wanted or strategy_settings.Strategies(),
            self._observer.samples,
            now,
            leaving=evictor.leaving if evictor else (),
            refused=evictor.refused if evictor else (),
        )
        return self._planner.step(self._looked)

    def _settle(self) -> None:
        if self.births is not None:
            self.births.settle(self.enforcer, self._planner, self._clock.monotonic())

    def _apply(self, round_: planner.Round, halt: "_Halt | None") -> str | None:
        started = self._started()
        if started is not True:
            # Nothing to write to: what was read still makes a report.
            self._planner.forget()
            return started or None
        now = self._clock.monotonic()
        self._settle()
        if self.picture is not None and self._observer.layout is not None:
            self.enforcer.follow(self.picture, self._observer.layout)
        if halt is not None:
            return self._take(self.enforcer.put_back(halt.reason, now)) if halt.ends else None
        outcome = self.enforcer.apply(round_.wanted, now)
        if round_.observed:
            outcome.records += self.enforcer.observe(round_.observed, now).records
        return self._take(outcome)

    def _evict(self, picture: state.NodeState, round_: planner.Round) -> None:
        """Hand the evictions on, those that are only observed apart from the others."""
        if self.evictor is None:
            return
        present = {pod.pod.metadata.uid for pod in picture.pods} if picture.settled else None
        enforced, observed = round_.evictions, round_.observed_evictions
        if not self._writing:
            enforced, observed = (), (*enforced, *observed)
        self.evictor.want(enforced, present, observed)

    def _started(self) -> bool | str:
        """Take over what an earlier agent left as soon as groups exist; say why it cannot be."""
        arranged = self._observer.layout
        if arranged is None:
            return self.enforcer.started
        if self.enforcer.started:
            moved = self.enforcer.move(arranged)
            if moved is None:
                return True
            self._planner.forget()
            return self._take(moved) or True
        boot_id = boot.boot_id(self._observer.roots.proc)
        problem = self._take(self.enforcer.start(arranged, boot_id))
        self._planner.adopt(self.enforcer.adopted)
        return problem or True

    def _take(self, outcome: executor.Outcome) -> str | None:
        for what, write, _ in outcome.records:
            self._figures.edits.labels(write.role.value, what.replace(" ", "-")).inc()
        self.audit.add(outcome.summary(self._clock.now()))
        self._figures.journal.set(self.enforcer.entries)
        return outcome.problem or None


class _Halt(msgspec.Struct, frozen=True):
    """Why nothing may be set at present."""

    reason: str
    ends: bool = True
    """Whether what was set is put back; otherwise it stands until a source of pods has answered."""
    off: bool = False


def _halt(known: observation.Known, here: live_switches.Here | None) -> _Halt | None:
    """Say why nothing at all may be set, None where it may."""
    if here is None:
        return _Halt("the live switches have not been seen", ends=False)
    if here.agent is planner.Mode.OFF:
        return _Halt(_switched_off(here), off=True)
    if known.thresholds is None:
        return _Halt("no NodeSLO of this node has been seen", ends=known.heard)
    return None


def _switched_off(here: live_switches.Here) -> str:
    return f"switched off by the live switch {here.key}"


_NOTHING_YET = edits.Decision("no NodeSLO of this node has been seen", decided=False)
