"""One connection of the kubelet, joined with one connection of the runtime.

Each ends with the other, so that a runtime that stops, restarts or is absent looks to the kubelet
as it does without a proxy.
"""

import asyncio
import functools
from typing import Any, Final

from process.runtime import supervise
from runtimeproxy import interceptor as interceptors
from runtimeproxy.cri import calls
from runtimeproxy.http2 import relay as relays

_CHUNK: Final = 256 * 1024


class Connection:
    """Moves bytes both ways, and holds calls while hook servers are asked."""

    def __init__(
        self,
        kubelet: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        runtime: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        interceptor: interceptors.Interceptor,
    ) -> None:
        self._kubelet, self._runtime = kubelet, runtime
        self._interceptor = interceptor
        self._relay = relays.Relay(calls.CALLS)
        self._calls: dict[int, tuple[interceptors.Call, Any]] = {}

    @property
    def problem(self) -> str:
        """Why nothing of this connection is intercepted."""
        return self._relay.problem

    async def run(self, supervisor: supervise.Supervisor) -> None:
        """Move bytes until one side closes; `close` then closes the other."""
        tasks = [
            supervisor.spawn("requests", self._requests()),
            supervisor.spawn("responses", self._responses()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            self._write()
            self._abandon()

    def close(self) -> None:
        """Close both sides, whether or not any byte was moved."""
        for _, writer in (self._kubelet, self._runtime):
            writer.close()

    async def _requests(self) -> None:
        reader, relay = self._kubelet[0], self._relay
        while data := await _read(reader):
            relay.from_kubelet(data)
            await self._settle(self._runtime[1])

    async def _responses(self) -> None:
        reader, relay = self._runtime[0], self._relay
        while data := await _read(reader):
            relay.from_runtime(data)
            await self._settle(self._kubelet[1])

    async def _settle(self, writer: asyncio.StreamWriter) -> None:
        self._handle()
        self._write()
        try:
            await writer.drain()
        except OSError:
            # The other side is gone; its reader sees the end as well.
            return

    def _handle(self) -> None:
        while self._relay.events:
            events, self._relay.events = self._relay.events, []
            for event in events:
                if isinstance(event, relays.Asked):
                    self._ask(event)
                else:
                    self._end(event)

    def _ask(self, event: relays.Asked) -> None:
        replied = functools.partial(self._replied, event.stream)
        self._calls[event.stream] = self._interceptor.begin(event.method, event.message, replied)

    def _end(self, event: relays.Answered) -> None:
        call, task = self._calls.pop(event.stream, (None, None))
        if call is None:
            return
        if task is not None:
            task.cancel()
        self._interceptor.end(call, event.message)

    def _replied(self, stream: int, decision: interceptors.Decision) -> None:
        if decision.refusal:
            self._calls.pop(stream, None)
            self._relay.refuse(stream, decision.code, decision.refusal)
        else:
            self._relay.forward(stream, decision.message)
        self._write()

    def _write(self) -> None:
        pairs = ((self._relay.to_runtime, self._runtime), (self._relay.to_kubelet, self._kubelet))
        for pending, (_, writer) in pairs:
            if pending and not writer.is_closing():
                writer.write(bytes(pending))
            pending.clear()

    def _abandon(self) -> None:
        for _, task in self._calls.values():
            if task is not None:
                task.cancel()
        self._calls.clear()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_CHUNK)
    except OSError:
        return b""
