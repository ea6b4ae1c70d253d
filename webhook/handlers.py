"""HTTP to review and back."""

import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

from api.kubernetes.patching import patches
from api.kubernetes.webhooks import admission
from process.configuration import switches
from process.http import fast_path
from process.runtime import metrics
from webhook import answered, registry, review

logger = logging.getLogger(__name__)

PROBE = "/readyz"
# What an API server may be told to wait for, in seconds; it says so in the query.
_TIMEOUTS = range(1, 31)
INCOMPLETE = "the picture of the cluster is not complete yet"


class Reads(Protocol):
    """Reads what reviews have to know that no watch keeps."""

    async def answered(self, asked: review.Review, needs: review.Needs) -> review.Review:
        """Return the review with all that it needs."""


Pictures = Callable[[], "review.Picture | None"]
"""Returns the present picture of the cluster, or None while it is not known yet."""


class Admission:
    """Answers the reviews of every route, or says why it cannot yet."""

    def __init__(
        self,
        pictures: Pictures,
        figures: metrics.Registry,
        live: switches.Switches,
        *,
        lenient: bool = True,
        reads: Reads | None = None,
        kept: answered.Answers | None = None,
    ) -> None:
        """`lenient` lets an object pass that a fault of ours keeps from being reviewed."""
        self._reads = reads
        self._kept = kept
        self._pictures = pictures
        self._switches = live
        self._lenient = lenient
        self._reviews = figures.counter(
            "koord_webhook_reviews_total",
            "Admission reviews by path, operation and result.",
            ("path", "operation", "result"),
        )
        self._bindings = figures.counter(
            "koord_webhook_binding_decisions_total",
            "Reviews of bindings by decision.",
            ("decision",),
        )
        self._seconds = figures.histogram(
            "koord_webhook_review_seconds", "Time to answer an admission review.", ("path",)
        )

    def routes(self) -> list[web.RouteDef]:
        """Return one POST route per path of the registry, and a probe."""
        return [
            web.get(PROBE, self._probe),
            *(
                web.post(path, self._handler(path, route))
                for path, route in registry.ROUTES.items()
            ),
        ]

    def short_way(self) -> dict[str, fast_path.Handler]:
        """Return the short way by the targets that an API server asks for."""
        found: dict[str, fast_path.Handler] = {}
        for path, route in registry.ROUTES.items():
            handle = self._short(path, route)
            found |= {f"{path}?timeout={seconds}s": handle for seconds in _TIMEOUTS}
        return found

    async def _probe(self, _request: web.Request) -> web.Response:
        """Answer as a review would be answered now, where the API server asks its reviews."""
        if self._pictures() is None:
            raise web.HTTPServiceUnavailable(text=f"{INCOMPLETE}\n")
        return web.Response(text="ok\n")

    def _handler(
        self, path: str, route: registry.Route
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            started = time.perf_counter()
            picture = self._pictures()
            if picture is None:
                # Not an answer: failurePolicy decides, which for pods means that they pass.
                raise web.HTTPServiceUnavailable(text=f"{INCOMPLETE}\n")
            body = await request.read()
            try:
                operation, answer, result = await self._judged(route, body, picture)
            except RecursionError:
                operation, answer, result = await self._trimmed(route, body, picture)
            except admission.ReviewError as wrong:
                raise web.HTTPBadRequest(text=f"{wrong}\n") from wrong
            self._reviews.labels(path, operation, result).inc()
            self._seconds.labels(path).observe(time.perf_counter() - started)
            return web.Response(body=answer, content_type="application/json")

        return handle

    async def _judged(
        self, route: registry.Route, body: bytes, picture: review.Picture
    ) -> tuple[str, bytes, str]:
        asked = admission.decode(body)
        question, needs = self._asked(route, asked, picture)
        if self._reads is not None and question is not None and needs != review.NO_NEEDS:
            found = await self._reads.answered(self._tried(question), needs)
            question = dataclasses.replace(found, dry_run=question.dry_run)
        return asked.operation, *self.answer(route, asked, picture, question)

    async def _trimmed(
        self, route: registry.Route, body: bytes, picture: review.Picture
    ) -> tuple[str, bytes, str]:
        """Judge a review by what lies high enough in it to be read."""
        try:
            return await self._judged(route, admission.trimmed(body), picture)
        except (admission.ReviewError, RecursionError) as wrong:
            raise web.HTTPBadRequest(text=f"{wrong}\n") from wrong

    def _short(self, path: str, route: registry.Route) -> fast_path.Handler:
        """Answer where nothing has to be waited for; whatever is out of order goes the long way."""
        seconds = self._seconds.labels(path)

        def handle(body: bytes, _connected: fast_path.Caller) -> bytes:
            started = time.perf_counter()
            picture = self._pictures()
            if picture is None:
                raise fast_path.Fallback
            try:
                asked = admission.decode(body)
                question, needs = self._asked(route, asked, picture)
                if needs != review.NO_NEEDS:
                    raise fast_path.Fallback
                answer, result = self.answer(route, asked, picture, question)
            except (admission.ReviewError, RecursionError) as wrong:
                raise fast_path.Fallback from wrong
            self._reviews.labels(path, asked.operation, result).inc()
            seconds.observe(time.perf_counter() - started)
            return answer

        return handle

    def _asked(
        self, route: registry.Route, asked: admission.Request, picture: review.Picture
    ) -> tuple[review.Review | None, review.Needs]:
        """Return the question and what has to be read for it; none where nothing is ever read."""
        if self._reads is None or route.needs is None or not _concerns(route, asked):
            return None, review.NO_NEEDS
        question = review.of(asked)
        if self._switches.mode is switches.Mode.OFF:
            return question, review.NO_NEEDS
        return question, route.needs(self._tried(question), picture)

    def _tried(self, question: review.Review) -> review.Review:
        """Return the question as it is read for: who only observes writes nothing."""
        observes = self._switches.mode is switches.Mode.OBSERVE
        return dataclasses.replace(question, dry_run=True) if observes else question

    def answer(
        self,
        route: registry.Route,
        asked: admission.Request,
        picture: review.Picture,
        question: review.Review | None = None,
    ) -> tuple[bytes, str]:
        """Return the body that goes back and what it amounts to; a fault of ours is no answer.

        Raises a RecursionError for what is nested too deeply to be looked at as it is.
        """
        try:
            response, result = self._answer(route, asked, picture, question)
            return admission.encode(response), result
        except RecursionError:
            raise
        except Exception as fault:
            logger.exception("review failed uid=%s", asked.uid)
            warning = f"koord-webhook could not review this object: {fault!r}"[:200]
            if self._lenient:
                response = admission.allowed(asked.uid, warnings=[warning])
            else:
                response = admission.refused(asked.uid, warning, code=review.FAILED, reason="")
            return admission.encode(response), "failed"

    def _answer(
        self,
        route: registry.Route,
        asked: admission.Request,
        picture: review.Picture,
        question: review.Review | None,
    ) -> tuple[admission.Response, str]:
        if not _concerns(route, asked) or (asked.object is None and asked.operation != "DELETE"):
            return admission.allowed(asked.uid), "skipped"
        if self._switches.mode is switches.Mode.OFF:
            return admission.allowed(asked.uid), "off"
        question = question or review.of(asked)
        decision = route.decide(question, picture)
        if decision.note:
            self._bindings.labels(decision.note).inc()
        subject = f"{question.namespace}/{_name(asked)}"
        if decision.refusal is not None:
            return self._refused(asked, decision, subject)
        warnings = list(decision.warnings)
        body = asked.object or {}
        operations = patches.operations(body, decision.object or body)
        if not operations:
            return admission.allowed(asked.uid, warnings=warnings), "allowed"
        self._keep(asked, subject, decision, "change")
        if self._switches.mode is switches.Mode.OBSERVE:
            logger.info("would have changed object=%s operations=%s", subject, operations)
            return admission.allowed(asked.uid, warnings=warnings), "would_change"
        logger.debug("changed object=%s operations=%s", subject, operations)
        return admission.allowed(asked.uid, operations=operations, warnings=warnings), "changed"

    def _refused(
        self, asked: admission.Request, decision: review.Decision, subject: str
    ) -> tuple[admission.Response, str]:
        refusal = decision.refusal
        assert refusal is not None
        warnings = list(decision.warnings)
        self._keep(asked, subject, decision, "refuse")
        if self._switches.mode is switches.Mode.OBSERVE:
            logger.info("would have refused object=%s reason=%s", subject, refusal.message)
            return admission.allowed(asked.uid, warnings=warnings), "would_refuse"
        logger.info("refused object=%s group=%s reason=%s", subject, refusal.group, refusal.message)
        reason = "AlreadyExists" if refusal.code == review.EXISTS else ""
        answer = admission.refused(
            asked.uid, refusal.message, code=refusal.code, reason=reason, warnings=warnings
        )
        return answer, "refused"

    def _keep(
        self, asked: admission.Request, subject: str, decision: review.Decision, what: str
    ) -> None:
        if self._kept is not None:
            observes = self._switches.mode is switches.Mode.OBSERVE
            self._kept.put(asked, subject, decision, f"would_{what}" if observes else f"{what}d")


def _concerns(route: registry.Route, asked: admission.Request) -> bool:
    found = asked.resource
    return asked.operation in route.operations and route.concerns(
        found.group, found.resource, asked.sub_resource
    )


def _name(asked: admission.Request) -> str:
    metadata = review.section(asked.object or asked.old_object or {}, "metadata")
    return str(asked.name or metadata.get("name") or f"{metadata.get('generateName', '')}*")
