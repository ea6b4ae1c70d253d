"""What an agent does outside of its node's files: evictions, events, and the audit on disk."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent.apply import audit, audit_log
from agent.apply.evictions import evictor
from agent.decide.interference import findings
from agent.decide.strategies import memory_evict
from agent.loop import ticks
from agent.model import edits
from agent.report import scorekeeper
from agent.report.events import binding_events, drift_events, interference_events
from agent.store import heartbeat
from api.wire import durations
from kube.client import client
from kube.controllers import recorder
from process.http import health
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

if TYPE_CHECKING:
    from agent.report.events import cache_events

FOREIGN_WRITER: Final = "ForeignWriter"
UNATTENDED: Final = "Unattended"


class Place(msgspec.Struct, frozen=True):
    """Which node this is and how far the agent may go outside of it."""

    node: str
    folder: Path
    """Where the agent keeps its notes."""
    limits: evictor.Limits
    audit: Path | None = None
    """Folder of the audit; below the notes when absent."""
    audit_files: int = 10
    """Files of the audit, at most."""
    kill_at_memory_percent: int | None = None
    """From how much memory in use to kill containers while the API server is away; None never."""


class Outward:
    """Carries what the loop decided and did to where people look."""

    def __init__(
        self,
        kube: client.Client,
        clock: clocks.Clock,
        place: Place,
        figures: metrics.Registry,
        loop: ticks.Ticks,
    ) -> None:
        node = place.node
        self.log = audit_log.AuditLog(
            place.audit or place.folder / "audit", most_files=place.audit_files
        )
        self.scores = scorekeeper.Scorekeeper(
            place.folder / scorekeeper.FOLDER, clock, loop, figures
        )
        self._clock = clock
        self._node = recorder.Regarding("v1", "Node", node, uid=node)
        self._events = recorder.Recorder(kube, "koord-agent", clock, instance=node)
        self._loop = loop
        self._pods: cache_events.PodEvents | None = None
        self._bindings = binding_events.BindingEvents(self._events, self.tell, figures)
        begin = clock.monotonic() + drift_events.FIRST_SECONDS
        self._drift = drift_events.DriftEvents(self._events, self.tell, figures, begin)
        self._interference = interference_events.InterferenceEvents(self._events, self.tell)
        self._foreign = figures.counter(
            "koord_agent_foreign_writers_total",
            "Properties that other programs keep writing, by property.",
            ["role"],
        )
        self._evictor = evictor.Evictor(
            kube,
            clock,
            self._events,
            figures,
            tell=self._answered,
            limits=place.limits,
        )
        if place.kill_at_memory_percent is not None:
            from agent.apply.evictions import killer  # noqa: PLC0415 - 68 KiB

            rules = killer.Rules(place.kill_at_memory_percent, memory_evict.FOR_USE)
            self._evictor.killer = killer.Killer(lambda: loop.picture, lambda: loop.layout, rules)
        loop.audit.sink = self._news
        loop.evictor = self._evictor

    def add_checks(self, checks: health.Health) -> None:
        """Warn of events that were lost and of evictions that fail."""
        checks.warn("audit", lambda: self.log.problem)
        checks.warn("evictions", lambda: self._evictor.problem)
        checks.warn("scorecard", lambda: self.scores.problem)
        checks.warn("cpu drift", lambda: self._drift.problem)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to evict and to post events."""
        self._events.start(supervisor)
        supervisor.start("evict", self._evictor.run)
        supervisor.start("scorecard", self.scores.run)

    def looked(self, interference: Sequence[findings.Finding] = ()) -> None:
        """Take what a good look at the node has found."""
        self.scores.tick()
        picture = self._loop.picture
        if picture is not None:
            self._bindings.look(picture.refused_cpus, picture.at)
            self._drift.look(self._loop, self._clock.monotonic())
            self._interference.look(interference, picture.at)

    def tell(self, event: Mapping[str, Any]) -> None:
        """Put a line into the audit on disk."""
        self.log.append([event])

    def tell_gap(self, gap: heartbeat.Gap) -> None:
        """Say on the Node that an agent did not hand over, and how long no agent ran."""
        said = (
            f"the agent ended without handing over; limits stood, and for {gap.seconds:.0f} s "
            "nothing restored what others wrote"
        )
        self._events.event(self._node, "Warning", UNATTENDED, said, action="TakingOver")
        moment = durations.moment(self._clock.now())
        self.log.append(
            [{"createdAt": moment, "type": "agent", "reason": UNATTENDED, "message": said}]
        )

    def close(self) -> None:
        """Keep what is not on disk yet."""
        self.scores.stop()
        self.log.close()

    def _news(self, records: Sequence[audit.Record]) -> None:
        self.log.append(record.as_event() for record in records)
        self.scores.records(records)
        if any(record.role is edits.Role.RESCTRL_GROUP for record in records):
            self._tell_pods(records)
        for record in records:
            if record.outcome != "given up":
                continue
            self._foreign.labels(record.role.value).inc(len(record.groups))
            self._events.event(
                self._node,
                "Warning",
                FOREIGN_WRITER,
                f"{record.role.value} of {', '.join(record.groups)}: {record.reason}; "
                f"it stays, and {record.value!r} is not set any more",
                action="GivingUp",
            )

    def _tell_pods(self, records: Sequence[audit.Record]) -> None:
        from agent.report.events import cache_events  # noqa: PLC0415 - 74 KiB

        if self._pods is None:
            self._pods = cache_events.PodEvents(self._events, lambda: self._loop.picture)
        self._pods.take(records)

    def _answered(self, answer: evictor.Answer) -> None:
        self.log.append([answer.as_event(self._clock.now())])
        self.scores.answered(answer)
