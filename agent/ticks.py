"""The loop of the agent: observe, decide, apply, once per tick."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from agent import observation, state
from agent.apply import audit, executor, journal, knobs
from agent.decide import cpu_suppress
from agent.observe import machine
from process import clock as clocks
from process import metrics

_logger = logging.getLogger(__name__)


class Figures:
    """What a tick shows to whoever watches the agent."""

    def __init__(self, registry: metrics.Registry) -> None:
        self.seconds = registry.histogram(
            "koord_agent_tick_seconds", "Time that one look with its decisions took."
        )
        self.failures = registry.counter(
            "koord_agent_tick_failures_total", "Ticks that ended in an unexpected error."
        )
        self.edits = registry.counter(
            "koord_agent_edits_total", "Files by what became of them.", ["role", "outcome"]
        )
        self.allowed = registry.gauge(
            "koord_agent_best_effort_allowed_cores", "Cores that best-effort work may use."
        )
        self.used = registry.gauge(
            "koord_agent_node_cpu_cores", "Cores used on the node, by whom.", ["by"]
        )
        self.journal = registry.gauge(
            "koord_agent_journal_entries", "Files that will be put back when the agent stops."
        )

    def show(self, picture: state.NodeState, decided: cpu_suppress.Decision) -> None:
        """Take the figures of one tick."""
        if decided.allowed_milli is not None:
            self.allowed.set(decided.allowed_milli / 1000)
        best_effort = sum(pod.usage.cpu or 0.0 for pod in picture.pods if pod.best_effort)
        for by, cores in (("node", picture.usage.cpu), ("best-effort", best_effort)):
            if cores is not None:
                self.used.labels(by).set(cores)


class Ticks:
    """Looks at the node again and again and lets decisions follow."""

    def __init__(
        self,
        observer: observation.Observer,
        known: Callable[[], observation.Known],
        clock: clocks.Clock,
        figures: Figures,
        *,
        writing: bool,
        state_folder: Path,
    ) -> None:
        self.audit = audit.Audit()
        self.picture: state.NodeState | None = None
        self.decided = cpu_suppress.Decision(None, "no tick has run yet")
        self.problem: str | None = "no tick has run yet"
        self.suppressing = True
        self.enforced = False
        """Whether the last tick carried out everything that was decided."""
        self._observer = observer
        self._known = known
        self._clock = clock
        self._figures = figures
        self._writing = writing
        self._state_folder = state_folder
        self._journal: journal.Journal | None = None
        self._executor: executor.Executor | None = None

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
        moment = observation.Moment(self._clock.now(), begin)
        picture = self._observer.observe(self._known(), moment)
        self._log_problems(picture)
        self.picture = picture
        self.decided = cpu_suppress.decide(picture) if self.suppressing else _OFF
        self._figures.show(picture, self.decided)
        self.problem = self._apply(picture)
        self._figures.seconds.observe(self._clock.monotonic() - begin)
        return picture

    def yielded(self) -> str | None:
        """Name the files that somebody else keeps writing, None when there are none."""
        lost = self._executor.given_up if self._executor is not None else {}
        return (
            "; ".join(f"{role} of {group}: {text!r}" for (role, group), text in lost.items())
            or None
        )

    def stop(self) -> None:
        """Put the node back; what fails stays in the journal for the next start."""
        if self._executor is not None:
            self._take(self._executor.put_back("the agent stops"))
        self._observer.close()

    def _apply(self, picture: state.NodeState) -> str | None:
        acting, self.enforced = self._start(), False
        if acting is None:
            # Nothing to write to: what was read still makes a report.
            return None
        if isinstance(acting, str):
            return acting
        gone = picture.thresholds is None or not self.suppressing
        if gone and self._journal:
            return self._take(acting.put_back(self.decided.reason))
        outcome = acting.apply(self.decided.wanted, self._clock.monotonic())
        self.enforced = self._writing and not gone and not outcome.problem and not outcome.failures
        return self._take(outcome)

    def _start(self) -> executor.Executor | str | None:
        """Make the executor as soon as groups exist; first of all undo what a crash left."""
        if self._executor is not None:
            return self._executor
        if self._observer.layout is None:
            return None
        kept = journal.Journal(self._state_folder, machine.boot_id(self._observer.roots.proc))
        try:
            kept.load()
        except journal.JournalError as error:
            return str(error)
        acting = executor.Executor(knobs.Knobs(self._observer.layout), kept, writing=self._writing)
        if kept:
            _logger.warning("an earlier run left changes behind files=%d", len(kept))
        problem = self._take(acting.put_back("an earlier run left it behind"))
        if problem is not None:
            return problem
        self._journal, self._executor = kept, acting
        return acting

    def _take(self, outcome: executor.Outcome) -> str | None:
        for what, write, _ in outcome.records:
            self._figures.edits.labels(write.role.value, what.replace(" ", "-")).inc()
        self.audit.add(outcome.summary(self._clock.now()))
        self._figures.journal.set(len(self._journal) if self._journal is not None else 0)
        return outcome.problem or None

    def _log_problems(self, picture: state.NodeState) -> None:
        before = self.picture.problems if self.picture is not None else {}
        for source, reason in picture.problems.items():
            if before.get(source) != reason:
                _logger.warning("reading failed source=%r reason=%r", source, reason)


_OFF = cpu_suppress.Decision(None, "the feature gate BECPUSuppress is off")
