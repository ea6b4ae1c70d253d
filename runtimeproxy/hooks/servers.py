"""Asks hook servers, and says what a failure means."""

import logging
from typing import Any

from api.koordinator import runtime_hooks
from api.wire import protobuf_schema
from process.runtime import clock as clocks
from process.runtime import metrics
from runtimeproxy import unary
from runtimeproxy.hooks import folder as folders
from runtimeproxy.hooks import registrations


class RefusedError(RuntimeError):
    """The hook server of a stage failed, and its policy is that the call fails."""


_logger = logging.getLogger(__name__)


class Servers:
    """The registered hook servers with their connections."""

    def __init__(
        self,
        folder: folders.Folder,
        clock: clocks.Clock,
        seconds: float,
        figures: metrics.Registry,
    ) -> None:
        self.problem = ""
        """Why the latest call got no response, empty where it got one."""
        self._folder, self._clock, self._seconds = folder, clock, seconds
        self._targets: dict[str, unary.Target] = {}
        self._counts = figures.counter(
            "koord_runtimeproxy_hooks_total",
            "Calls of hook servers, by stage and by whether a response came",
            ("stage", "outcome"),
        )
        self._seconds_taken = figures.histogram(
            "koord_runtimeproxy_hook_duration_seconds",
            "How long the kubelet's call waited for a hook server",
            ("stage",),
        )

    def asked_at(self, stage: runtime_hooks.Stage | None) -> bool:
        """Tell whether a hook server is registered for a stage."""
        return stage is not None and self._folder.server(stage) is not None

    async def ask(self, stage: runtime_hooks.Stage, request: Any) -> Any:
        """Return the response of the server of a stage, None where the call goes on without it.

        Raises RefusedError where the server failed and its policy is Fail.
        """
        server = self._folder.server(stage)
        if server is None:
            return None
        begin = self._clock.monotonic()
        try:
            found = await self._target(server).call(
                stage.path, request.SerializeToString(), self._seconds
            )
            response = runtime_hooks.CLASSES[stage.response].FromString(found)
        except (unary.CallError, protobuf_schema.DecodeError) as error:
            self._failed(stage, str(error))
            if server.policy is registrations.Policy.FAIL:
                raise RefusedError(f"hook server err: {error}") from error
            return None
        finally:
            taken = self._clock.monotonic() - begin
            self._seconds_taken.labels(stage.value).observe(taken)
        self._counts.labels(stage.value, "answered").inc()
        self.problem = ""
        return response

    def close(self) -> None:
        """Close every connection."""
        for target in self._targets.values():
            target.close()

    def _target(self, server: registrations.Registration) -> unary.Target:
        if server.endpoint not in self._targets:
            used = {one.endpoint for one in self._folder.known.values()}
            for path in [path for path in self._targets if path not in used]:
                self._targets.pop(path).close()
            self._targets[server.endpoint] = unary.Target(server.endpoint, self._clock)
        return self._targets[server.endpoint]

    def _failed(self, stage: runtime_hooks.Stage, reason: str) -> None:
        self._counts.labels(stage.value, "failed").inc()
        if not self.problem:
            _logger.warning("hook server failed stage=%s reason=%s", stage.value, reason)
        self.problem = f"{stage.value}: {reason}"
