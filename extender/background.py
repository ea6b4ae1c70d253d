"""What the extender does beside its calls: explain waiting pods and wake them.

Its watch of ScheduleExplanations is apart from all others: placing pods never waits for it.
"""

import asyncio

from api import resources
from extender.explain import explanation_controller, explanation_status
from extender.requeue import earlier_refusals, requeue
from extender.settings import ExplanationSettings, NudgeSettings
from extender.state import records
from kube.controllers import recorder
from kube.informers import informer_set, reflector, store
from process.configuration import switches
from process.runtime import metrics, supervise


class Background:
    """The tasks that no caller waits for."""

    def __init__(
        self,
        parts: requeue.Parts,
        explanations: ExplanationSettings,
        waking: NudgeSettings,
        live: switches.Switches,
        told: tuple[recorder.EventRecorder, metrics.Registry],
    ) -> None:
        events, registry = told
        self._members = informer_set.InformerSet(parts.client, parts.clock)
        questions = self._members.add(
            reflector.Projection(resources.SCHEDULE_EXPLANATIONS, dict, explanation_status.question)
        )
        self.answers = explanation_controller.ExplanationController(
            explanation_controller.Parts(
                client=parts.client,
                clock=parts.clock,
                books=parts.books,
                plugins=parts.plugins,
                waiting=parts.waiting,
                pods=parts.pods,
                questions=questions,
                events=events,
            ),
            explanations,
            registry,
        )
        self.nudges = requeue.Requeuer(parts, waking, registry)
        self._earlier = earlier_refusals.EarlierRefusals(parts, live, waking, self.nudges.woken)
        self._watches = explanations.write
        self._waiting = parts.waiting
        parts.pods.listen(self._follow)

    def health(self) -> str | None:
        """Return why explanations cannot be written, None while nothing is wrong."""
        return self._members.health() if self._watches else None

    def start(self, supervisor: supervise.Supervisor, loaded: asyncio.Event) -> None:
        """Start everything; `loaded` is set once the cluster has been listed."""
        if self._watches:
            self._members.start(supervisor)
            supervisor.start("explain", self.answers.run)
        supervisor.start("nudge", self.nudges.run)
        supervisor.spawn("nudge after start", self._earlier.after_start(loaded))
        supervisor.start("nudge while off", self._earlier.while_off)

    def _follow(self, change: store.Change[records.PodRecord]) -> None:
        """Forget pods that found a node or are gone."""
        if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
            self._waiting.settled(change.key, change.old.uid)
        if change.new is not None and change.new.node:
            self._waiting.settled(change.key, change.new.uid)
