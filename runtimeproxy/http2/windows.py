"""Flow control towards a runtime, where some bodies come from the relay itself. Pure.

The kubelet sends as much as the runtime allows it; what the relay sends of its own takes from the
same window of the connection, so that the frames of both have to wait for it.
"""

from collections import deque
from typing import Final, NamedTuple

from runtimeproxy.http2 import frames

INITIAL: Final = 65_535
_FRAME: Final = 16_384


class _Passing(NamedTuple):
    stream: int
    size: int
    raw: bytes


class _Own:
    """A body of the relay on a stream."""

    def __init__(self, stream: int, window: int) -> None:
        self.stream = stream
        self.window = window
        self.body: bytes | None = None
        """What is not sent yet; None before it is known."""


class Windows:
    """Queues DATA frames towards the runtime as its windows demand."""

    def __init__(self) -> None:
        self._connection = INITIAL
        self._initial = INITIAL
        self._frame = _FRAME
        self._debt = 0
        """Bytes of own bodies, whose updates the kubelet must not get."""
        self._own: dict[int, _Own] = {}
        self._queue: deque[_Passing | _Own] = deque()

    def pass_on(self, frame: frames.Frame) -> bytes:
        """Take a DATA frame of the kubelet; return what may be sent now."""
        size = len(frame.payload)
        if not self._queue and size <= self._connection:
            self._connection -= size
            return frame.raw
        self._queue.append(_Passing(frame.stream, size, frame.raw))
        return self._flushed()

    def open(self, stream: int) -> None:
        """Take that the relay itself will send the body of a stream."""
        self._own[stream] = _Own(stream, self._initial)

    def send(self, stream: int, body: bytes) -> bytes:
        """Take the whole body of such a stream; return what may be sent now."""
        own = self._own[stream]
        own.body = body
        self._queue.append(own)
        return self._flushed()

    def drop(self, stream: int) -> int:
        """Take that a stream is over; return the bytes of the kubelet that were not passed on."""
        self._own.pop(stream, None)
        gone = [one for one in self._queue if one.stream == stream]
        for one in gone:
            self._queue.remove(one)
        return sum(one.size for one in gone if isinstance(one, _Passing))

    def set_initial(self, size: int) -> bytes:
        """Take the initial window that the runtime sets; return what may be sent now."""
        for own in self._own.values():
            own.window += size - self._initial
        self._initial = size
        return self._flushed()

    def set_frame(self, size: int) -> None:
        """Take the largest frame that the runtime accepts."""
        self._frame = size

    def update_connection(self, size: int) -> tuple[int, bytes]:
        """Take an update; return what of it is the kubelet's, and what may be sent now."""
        self._connection += size
        swallowed = min(size, self._debt)
        self._debt -= swallowed
        return size - swallowed, self._flushed()

    def update_stream(self, stream: int, size: int) -> bytes | None:
        """Take the update of a stream; return what may be sent now, None if it is the kubelet's."""
        own = self._own.get(stream)
        if own is None:
            return None
        own.window += size
        return self._flushed()

    def _flushed(self) -> bytes:
        sent = bytearray()
        kept: deque[_Passing | _Own] = deque()
        while self._queue:
            one = self._queue.popleft()
            if isinstance(one, _Passing):
                if one.size > self._connection:
                    kept.append(one)
                    break
                self._connection -= one.size
                sent += one.raw
            elif not self._sent(one, sent):
                kept.append(one)
        self._queue.extendleft(reversed(kept))
        return bytes(sent)

    def _sent(self, own: _Own, sent: bytearray) -> bool:
        """Send what fits of an own body; tell whether that was all."""
        body = own.body or b""
        at = 0
        while True:
            size = min(len(body) - at, self._frame, own.window, self._connection)
            last = at + max(size, 0) == len(body)
            if size <= 0 and not last:
                own.body = body[at:]
                return False
            own.window -= size
            self._connection -= size
            self._debt += size
            flags = frames.END_STREAM if last else 0
            sent += frames.written(frames.Kind.DATA, flags, own.stream, body[at : at + size])
            at += size
            if last:
                self._own.pop(own.stream, None)
                return True
