"""Calls of gRPC with one request and one response, as bytes, over a unix socket."""

from typing import Any, Final

import grpclib.client
import h2.exceptions
from grpclib import const, exceptions
from grpclib.encoding import base

from process.runtime import clock as clocks
from process.runtime import supervise


class CallError(RuntimeError):
    """A call that got no response; the text says why."""


class _Bytes(base.CodecBase):
    """Messages that are read and written elsewhere."""

    __content_subtype__ = "proto"

    def encode(self, message: Any, message_type: Any) -> bytes:  # noqa: ARG002 - the base demands it
        """Return the message itself."""
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> Any:  # noqa: ARG002 - as above
        """Return the message itself."""
        return data


_LOST: Final = (
    *(exceptions.StreamTerminatedError, exceptions.ProtocolError, h2.exceptions.ProtocolError),
    ConnectionError,
)


class Target:
    """One server; it is connected with when it is called, and again after it went away."""

    def __init__(self, path: str, clock: clocks.Clock) -> None:
        self.path = path
        self._clock = clock
        self._channel = grpclib.client.Channel(path=path, codec=_Bytes())

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """Call a method, once more where the connection turns out to be lost."""
        try:
            async with supervise.deadline(self._clock, seconds):
                try:
                    return await self._called(method, request)
                except _LOST:
                    return await self._called(method, request)
        except TimeoutError as error:
            raise CallError(f"no response within {seconds:g} s") from error
        except exceptions.GRPCError as error:
            raise CallError(f"{error.status.name}: {error.message or 'no reason'}") from error
        except (*_LOST, OSError) as error:
            raise CallError(f"{type(error).__name__}: {error}") from error

    async def _called(self, method: str, request: bytes) -> bytes:
        async with self._channel.request(
            method, const.Cardinality.UNARY_UNARY, bytes, bytes
        ) as stream:
            await stream.send_message(request, end=True)
            found = await stream.recv_message()
        if found is None:
            raise CallError("a response without a message")
        return bytes(found)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
