"""Calls of gRPC with one request and one response, as bytes, over a unix socket."""

import grpclib.client
from grpclib import const, exceptions

from process.http import grpc_bytes
from process.runtime import clock as clocks
from process.runtime import supervise


class CallError(RuntimeError):
    """A call that got no response; the text says why."""


class Target:
    """One server; it is connected with when it is called, and again after it went away."""

    def __init__(self, path: str, clock: clocks.Clock) -> None:
        self.path = path
        self._clock = clock
        self._channel = grpclib.client.Channel(path=path, codec=grpc_bytes.Messages())

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """Call a method, once more where the connection turns out to be lost."""
        try:
            async with supervise.deadline(self._clock, seconds):
                try:
                    return await self._called(method, request)
                except grpc_bytes.LOST:
                    return await self._called(method, request)
        except TimeoutError as error:
            raise CallError(f"no response within {seconds:g} s") from error
        except exceptions.GRPCError as error:
            raise CallError(f"{error.status.name}: {error.message or 'no reason'}") from error
        except (*grpc_bytes.LOST, OSError) as error:
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
