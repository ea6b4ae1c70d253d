"""HTTP routes of the extender: bodies in, bodies out, always status 200 with a length."""

import logging
import time
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from api.kubernetes import extender as wire
from extender.capture import capture
from extender.informers import consistency_check
from extender.verbs import bind, verbs
from process.http import fast_path, health
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)

BIND_LIMIT = 64 * 1024
_BINDING = msgspec.json.Decoder(wire.BindingArgs)
_JSON = {"Content-Type": "application/json"}
_BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)


class Handlers:
    """The four verbs and the debug page over HTTP."""

    def __init__(
        self,
        answers: verbs.Verbs,
        binding: bind.Binder,
        fresh: consistency_check.ConsistencyCheck,
        checks: health.Health,
        clock: clocks.Clock,
        registry: metrics.Registry,
    ) -> None:
        self._answers = answers
        self._binding = binding
        self._fresh = fresh
        self._checks = checks
        self._clock = clock
        self._seconds = registry.histogram(
            "koord_extender_verb_seconds",
            "Time from a complete request to its answer, by verb.",
            ("verb",),
            _BUCKETS,
        )
        self._failures = registry.counter(
            "koord_extender_failures_total", "Calls answered with an error of ours.", ("verb",)
        )

    def application(self, limit: int) -> web.Application:
        """Return the application that kube-scheduler calls, with a short way for its verbs."""
        app = web.Application(client_max_size=limit)
        routes: dict[str, fast_path.Handler] = {}
        for name, answer in (
            ("filter", self._filter),
            ("prioritize", self._prioritize),
            ("preempt", self._preempt),
            ("bind", self._bind),
        ):
            routes[f"/{name}"] = handle = self._verb(name, answer)
            app.router.add_post(f"/{name}", _served(handle))
        app[fast_path.ROUTES] = routes
        return app

    def _verb(self, name: str, answer: fast_path.Handler) -> fast_path.Handler:
        """Return a verb that is timed and whose failures are answers."""
        seconds = self._seconds.labels(name)
        failures = self._failures.labels(name)

        def failed() -> bytes:
            failures.inc()
            if name == "prioritize":
                return verbs.NO_SCORES
            return verbs.failure(f"{name}: internal failure; see the extender's log")

        async def later(started: float, due: Awaitable[bytes]) -> bytes:
            try:
                data = await due
            except Exception:
                # The root of a call: the scheduler retries, people need the traceback.
                logger.exception("call failed verb=%s", name)
                data = failed()
            seconds.observe(time.perf_counter() - started)
            return data

        def handle(body: bytes, connected: fast_path.Caller) -> bytes | Awaitable[bytes]:
            started = time.perf_counter()
            try:
                data = answer(body, connected)
            except Exception:
                logger.exception("call failed verb=%s", name)
                data = failed()
            if not isinstance(data, bytes):
                return later(started, data)
            seconds.observe(time.perf_counter() - started)
            return data

        return handle

    def _is_trusted(self) -> bool:
        """Whether the view is current as it stands: the usual case, which waits for nothing."""
        return self._checks.ready and self._fresh.trusted()

    async def _doubt(self) -> str:
        failing = self._checks.failing()
        if failing:
            return "; ".join(f"{name}: {reason}" for name, reason in failing.items())
        return await self._fresh.doubt()

    def _filter(self, body: bytes, connected: fast_path.Caller) -> bytes | Awaitable[bytes]:
        del connected
        if self._is_trusted():
            return self._answers.filter(body, self._clock.now())
        return self._in_doubt("filter", self._answers.filter, body)

    async def _in_doubt(
        self, name: str, answer: Callable[[bytes, float], bytes], body: bytes
    ) -> bytes:
        """Answer once the view is proven current; an error makes the scheduler try again."""
        doubt = await self._doubt()
        if doubt:
            self._failures.labels(name).inc()
            return verbs.failure(f"extender is not ready: {doubt}")
        return answer(body, self._clock.now())

    def _prioritize(self, body: bytes, connected: fast_path.Caller) -> bytes:
        del connected
        return self._answers.prioritize(body, self._clock.now())

    def _preempt(self, body: bytes, connected: fast_path.Caller) -> bytes | Awaitable[bytes]:
        del connected
        if self._is_trusted():
            return self._answers.preempt(body, self._clock.now())
        return self._in_doubt("preempt", self._answers.preempt, body)

    async def _bind(self, body: bytes, connected: fast_path.Caller) -> bytes:
        if len(body) > BIND_LIMIT:
            return verbs.failure(f"bind: the request is larger than {BIND_LIMIT} bytes")
        try:
            asked = _BINDING.decode(body)
        except (msgspec.MsgspecError, RecursionError) as error:
            return verbs.failure(f"bind: the request cannot be read: {error}")
        flaw = wire.flaw(asked)
        if flaw:
            self._failures.labels("bind").inc()
            return verbs.failure(f"bind: {flaw}")
        if not self._is_trusted():
            doubt = await self._doubt()
            if doubt:
                self._failures.labels("bind").inc()
                return verbs.failure(f"extender is not ready: {doubt}")
        error_text = await self._binding.bind(asked, connected)
        if error_text.startswith(capture.CAPTURED):
            logger.info("%s", error_text)
        elif error_text:
            logger.info(
                "bind failed pod=%s/%s node=%s reason=%s",
                asked.pod_namespace,
                asked.pod_name,
                asked.node,
                error_text,
            )
        return verbs.failure(error_text)


def _served(handle: fast_path.Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return the same verb as a handler of aiohttp, for callers that do anything unusual."""

    async def serve(request: web.Request) -> web.Response:
        transport = request.transport
        answer = handle(
            await request.read(), lambda: transport is not None and not transport.is_closing()
        )
        data = answer if isinstance(answer, bytes) else await answer
        return web.Response(body=data, headers=_JSON)

    return serve
