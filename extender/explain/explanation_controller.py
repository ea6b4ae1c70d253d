"""Writes ScheduleExplanations: why pods are unschedulable, at a bounded rate, in the background.

A pod that every node refuses gets an object of its own, up to a limit; an object that a person
made about a waiting pod of its own namespace is answered as well. What is written is judged anew
at that moment, is renewed when the reasons change and at least every minute, and is corrected once
the pod has a place. The manager removes what has expired.
"""

import collections
import dataclasses
import logging
from typing import Final, assert_never

from api import resources
from domain import fairness
from extender.explain import explanation_status, refusals
from extender.framework import pipeline
from extender.requeue import unschedulable_pods
from extender.settings import ExplanationSettings
from extender.state import ledger, records
from kube.client import client as clients
from kube.client import errors
from kube.controllers import backoff, recorder
from kube.informers import store
from process.runtime import clock as clocks
from process.runtime import metrics, token_bucket

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_SLICE = 10
_MOST_QUESTIONS = 4
"""Objects about one pod that are answered."""
_KIND = resources.SCHEDULE_EXPLANATIONS
_Job = explanation_status.Question | unschedulable_pods.UnschedulablePod


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """The dependencies of the ExplanationController."""

    client: clients.Client
    clock: clocks.Clock
    books: ledger.Ledger
    plugins: pipeline.Pipeline
    waiting: unschedulable_pods.UnschedulablePods
    pods: store.Store[records.PodRecord]
    questions: store.Store[explanation_status.Question]
    events: recorder.EventRecorder


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    reasons: frozenset[tuple[str, str]]
    at: float


class ExplanationController:
    """Keeps ScheduleExplanations in step with the pods that wait."""

    def __init__(
        self, parts: Parts, settings: ExplanationSettings, registry: metrics.Registry
    ) -> None:
        self._parts = parts
        self._settings = settings
        self._bucket = token_bucket.Bucket(settings.per_second, settings.burst)
        self._told: dict[str, _Told] = {}
        self._failed = backoff.Failures(parts.clock.monotonic, _FIRST_PAUSE, _LONGEST_PAUSE)
        """Of writes, by the pod or the question that they are about."""
        self._turns: dict[str, int] = {}
        self._served = 0
        self._about = store.Index(parts.questions, lambda question: (question.pod,))
        self._writes = registry.counter(
            "koord_extender_explanations_total",
            "ScheduleExplanations written, by what is said.",
            ("answer",),
        )

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._parts.clock.sleep(_TICK_SECONDS)
            if self._settings.write and self._parts.questions.synced:
                await self.once()

    async def once(self) -> None:
        """Write what is due within the rate, taking namespaces in turn."""
        self._forget()
        now = self._parts.clock.now()
        for number, job in enumerate(fairness.in_turn(self._jobs())):
            if number % _SLICE == _SLICE - 1:
                # What is looked at takes longer than one call may wait.
                await self._parts.clock.sleep(0)
            match job:
                case explanation_status.Question():
                    more = await self._correct(job, now)
                case unschedulable_pods.UnschedulablePod():
                    more = await self._explain(job, now)
                case _:
                    assert_never(job)
            if not more:
                return

    def _jobs(self) -> dict[str, list[_Job]]:
        """Return what may be due by namespace; those that had their turn last come last."""
        jobs: dict[str, list[_Job]] = {}
        for question in self._parts.questions.values():
            if question.place is None or question.place != self._place(question.pod):
                jobs.setdefault(question.namespace, []).append(question)
        for waiter in self._parts.waiting:
            jobs.setdefault(unschedulable_pods.namespace_of(waiter.request.key), []).append(waiter)
        self._turns = {name: turn for name, turn in self._turns.items() if name in jobs}
        return dict(sorted(jobs.items(), key=lambda item: self._turns.get(item[0], 0)))

    def _take(self, namespace: str) -> bool:
        """Take a token for a namespace, which then comes after the others."""
        if not self._bucket.take(self._parts.clock.monotonic()):
            return False
        self._served += 1
        self._turns[namespace] = self._served
        return True

    async def _explain(self, waiter: unschedulable_pods.UnschedulablePod, now: float) -> bool:
        """Say why a pod waits where that is due; False once the rate is used up."""
        account = None if self._failed.rests(waiter.request.key) else self._due(waiter, now)
        if account is None:
            return True
        if not self._take(unschedulable_pods.namespace_of(waiter.request.key)):
            return False
        await self._answer(waiter, account, now)
        return True

    async def _correct(self, question: explanation_status.Question, now: float) -> bool:
        """Say where a pod is by now, or why none is explained; False once the rate is used up."""
        found = None if self._failed.rests(question.key) else self._correction(question, now)
        if found is None:
            return True
        if not self._take(question.namespace):
            return False
        self._failed.note(question.key, written=await self._write(question, *found, now))
        return True

    def _correction(
        self, question: explanation_status.Question, now: float
    ) -> tuple[str, dict[str, object], explanation_status.Answer] | None:
        """Return what a question has to be told beside why its pod waits."""
        if question.foreign:
            refusal = explanation_status.REFUSED
            if (question.message, question.said) == (refusal.message, refusal.reason):
                return None
            return "declined", explanation_status.declined(now), refusal
        pod, place = self._parts.pods.get(question.pod), self._place(question.pod)
        if pod is not None and place is not None:
            status = explanation_status.placed(pod.key, pod.uid, pod.node, now)
            return "placed", status, explanation_status.located(pod.node)
        if question.made_here or not self._parts.pods.synced:
            return None
        if pod is None:
            answer = explanation_status.unknown(question.pod)
        elif not question.message or question.said == "PodUnknown":
            answer = explanation_status.unjudged(question.pod)
        else:
            return None
        if self._parts.waiting.get(question.pod) is not None:
            return None
        if question.place is not None:
            return "unknown", explanation_status.displaced(now), answer
        return None if question.said == answer.reason else ("unknown", {}, answer)

    def _place(self, pod: str) -> explanation_status.Place | None:
        """Return where a pod is by now; None while it has no node."""
        found = self._parts.pods.get(pod)
        if found is None or not found.node:
            return None
        return explanation_status.Place(found.uid, found.node)

    def _due(
        self, waiter: unschedulable_pods.UnschedulablePod, now: float
    ) -> refusals.Account | None:
        """Return what is to be said of a pod, None while nothing new is."""
        key, changed = waiter.request.key, self._parts.waiting.changed
        told = self._told.get(key)
        renew = told is None or now - told.at >= self._settings.refresh_seconds
        if now - waiter.since < self._settings.after_seconds or not (renew or key in changed):
            return None
        account = refusals.account(
            self._parts.plugins,
            waiter.request,
            self._parts.books.cluster.view(),
            waiter.rows(self._parts.books.cluster.view()),
            now,
        )
        same = told is not None and told.reasons == account.reasons and not renew
        if same or account.passed or not account.groups:
            # What fits by now will be tried again, which tells more.
            changed.discard(key)
            return None
        return account

    async def _answer(
        self, waiter: unschedulable_pods.UnschedulablePod, account: refusals.Account, now: float
    ) -> None:
        key = waiter.request.key
        about = self._questions(key)
        if not about and self._room(unschedulable_pods.namespace_of(key)):
            made = await self._ask(key)
            if made is None:
                self._failed.note(key, written=False)
                return
            about = [made]
        written = True
        for number, question in enumerate(about[:_MOST_QUESTIONS]):
            if number and not self._take(question.namespace):
                break
            status, answer = (
                explanation_status.refused(account, now),
                explanation_status.explained(account),
            )
            written = await self._write(question, "refused", status, answer, now) and written
        self._failed.note(key, written=written)
        if not written:
            return
        self._told[key] = _Told(account.reasons, now)
        self._parts.waiting.changed.discard(key)

    def _questions(self, pod: str) -> list[explanation_status.Question]:
        found = (self._parts.questions.get(key) for key in sorted(self._about.keys(pod)))
        return [question for question in found if question is not None and not question.foreign]

    def _room(self, namespace: str) -> bool:
        """Whether a namespace may have one more object of ours; where few are left, all share."""
        made = collections.Counter(
            question.namespace for question in self._parts.questions.values() if question.made_here
        )
        return self._settings.create and fairness.has_room(made, namespace, self._settings.most)

    async def _ask(self, pod: str) -> explanation_status.Question | None:
        """Make the object about a pod; None where that is not possible now."""
        body = explanation_status.asked(pod, self._settings.ttl_seconds)
        try:
            made = await self._parts.client.create(_KIND, body, body["metadata"]["namespace"])
        except errors.KubeError as error:
            # Also where it exists and the watch has not shown it yet: later there is an answer.
            logger.info("explanation could not be made pod=%s error=%s", pod, error)
            return None
        return explanation_status.question(made)

    async def _write(
        self,
        question: explanation_status.Question,
        result: str,
        body: dict[str, object],
        answer: explanation_status.Answer,
        now: float,
    ) -> bool:
        """Write a status; return whether it was written."""
        try:
            await self._parts.client.patch(
                _KIND,
                question.name,
                explanation_status.answered(question, body, answer, now),
                namespace=question.namespace,
                subresource="status",
            )
        except errors.KubeError as error:
            logger.info("explanation could not be written name=%s error=%s", question.key, error)
            return False
        self._writes.labels(result).inc()
        if question.said != answer.reason:
            self._tell(question, answer)
        return True

    def _tell(
        self, question: explanation_status.Question, answer: explanation_status.Answer
    ) -> None:
        """Post an event about a question whose answer has another reason than before."""
        regarding = recorder.Regarding(
            _KIND.api_version, _KIND.kind, question.name, question.namespace, question.uid
        )
        kind: recorder.Kind = "Normal" if answer.holds else "Warning"
        self._parts.events.event(regarding, kind, answer.reason, answer.message)

    def _forget(self) -> None:
        """Forget what was reported of pods that wait no more."""
        waits = self._parts.waiting
        for key in [key for key in self._told if waits.get(key) is None]:
            del self._told[key]
            waits.changed.discard(key)
        self._failed.keep(lambda key: key in self._parts.questions or waits.get(key) is not None)
