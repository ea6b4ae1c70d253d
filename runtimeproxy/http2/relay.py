"""A connection of the kubelet joined with one of the runtime: bytes in, bytes and calls out. Pure.

Frames pass as they are, with their stream numbers, so that settings, pings, streams, trailers and
whatever a later release adds reach the other end unchanged. Of intercepted methods the request is
kept until a decision is there; its headers have passed before, since later ones build on them.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

import hpack

from runtimeproxy.http2 import frames, grpc, windows

_MOST_HEADERS: Final = 16 * 1024 * 1024
_MOST_ANSWER: Final = 1024 * 1024
_Kind = frames.Kind


class Asked(NamedTuple):
    """A request of an intercepted method is complete."""

    stream: int
    method: str
    message: bytes | None
    """None where it is not one message that can be read."""


class Answered(NamedTuple):
    """An intercepted call is over."""

    stream: int
    method: str
    message: bytes | None
    """The response, None where the call failed or was cancelled."""


class _Call:
    def __init__(self, method: str) -> None:
        self.method = method
        self.body = bytearray()
        self.asked = False
        self.answer = bytearray()


class _Headers:
    """Header blocks of one direction, passed on only as a whole."""

    def __init__(self) -> None:
        self._first: frames.Frame | None = None
        self._raw = bytearray()
        self._block = bytearray()

    @property
    def open(self) -> bool:
        """Whether a block is not complete."""
        return self._first is not None

    def take(self, frame: frames.Frame) -> tuple[frames.Frame, bytes, bytes] | None:
        """Take a frame; return the first one, all bytes and the block once it is complete."""
        self._raw += frame.raw
        if self._first is None:
            self._first = frame
            self._block += frame.content
        else:
            self._block += frame.payload
        if not frame.flags & frames.END_HEADERS:
            return None
        found = self._first, bytes(self._raw), bytes(self._block)
        self._first = None
        self._raw.clear()
        self._block.clear()
        return found

    def rest(self) -> bytes:
        """Take out the bytes of a block that is not complete."""
        found = bytes(self._raw)
        self._raw.clear()
        return found


class Relay:
    """Both directions of one connection; `to_runtime` and `to_kubelet` are what has to be sent."""

    def __init__(self, intercepted: Collection[str]) -> None:
        self.to_runtime = bytearray()
        self.to_kubelet = bytearray()
        self.events: list[Asked | Answered] = []
        self.problem = ""
        """Why requests of this connection are no longer intercepted, empty where they are."""
        self._intercepted = intercepted
        self._calls: dict[int, _Call] = {}
        self._begun, self._plain = False, False
        self._preface = bytearray()
        self._asking, self._answering = frames.Splitter(), frames.Splitter()
        self._request_headers, self._answer_headers = _Headers(), _Headers()
        self._windows = windows.Windows()
        self._injected = bytearray()
        """Frames for the kubelet that wait for the end of a header block."""
        self._decoder = hpack.Decoder(max_header_list_size=_MOST_HEADERS)
        self._decoder.max_allowed_table_size = _MOST_HEADERS

    def from_kubelet(self, data: bytes) -> None:
        """Take bytes of the kubelet."""
        if not self._begun:
            data = self._begin(data)
        if self.problem:
            self.to_runtime += data
            return
        found = self._asking.feed(data)
        for position, frame in enumerate(found):
            try:
                self._of_kubelet(frame)
            except (hpack.HPACKError, frames.FrameError, UnicodeDecodeError) as error:
                self._give_up(f"{type(error).__name__}: {error}", frame, found[position + 1 :])
                return

    def from_runtime(self, data: bytes) -> None:
        """Take bytes of the runtime."""
        if self._plain:
            self.to_kubelet += data
            return
        for frame in self._answering.feed(data):
            try:
                self._of_runtime(frame)
            except frames.FrameError:
                self.to_kubelet += frame.raw
            if self._injected and not self._answer_headers.open:
                self.to_kubelet += self._injected
                self._injected.clear()

    def forward(self, stream: int, message: bytes | None = None) -> None:
        """Send a request that was asked about: another message, or the bytes as they came."""
        call = self._calls.get(stream)
        if call is None or not call.asked:
            return
        body = bytes(call.body) if message is None else grpc.body_of(message)
        call.body.clear()
        self.to_runtime += self._windows.send(stream, body)

    def refuse(self, stream: int, code: int, text: str) -> None:
        """End a call with a status of gRPC; the runtime sees it cancelled."""
        if self._calls.pop(stream, None) is None:
            return
        self._windows.drop(stream)
        self.to_runtime += frames.reset(stream, frames.CANCEL)
        self._inject(grpc.refusal(stream, code, text))

    def _begin(self, data: bytes) -> bytes:
        """Pass the preface on; return what follows it. What speaks no HTTP/2 passes whole."""
        self._preface += data
        head = bytes(self._preface[: len(frames.PREFACE)])
        if not frames.PREFACE.startswith(head):
            self.problem, self._begun = "the client does not speak HTTP/2", True
            self._plain = True
            return bytes(self._preface)
        if len(head) < len(frames.PREFACE):
            return b""
        self._begun = True
        self.to_runtime += frames.PREFACE
        return bytes(self._preface[len(frames.PREFACE) :])

    def _give_up(self, problem: str, at_fault: frames.Frame, rest: list[frames.Frame]) -> None:
        """Pass everything from here on, since it can no longer be read; the runtime refuses it."""
        self.problem = problem
        if at_fault.kind == _Kind.DATA:
            self.to_runtime += at_fault.raw
        self.to_runtime += self._request_headers.rest()
        for frame in rest:
            self.to_runtime += frame.raw
        self.to_runtime += self._asking.rest()

    def _of_kubelet(self, frame: frames.Frame) -> None:
        if frame.kind == _Kind.DATA:
            self._data_of_kubelet(frame)
        elif frame.kind in (_Kind.HEADERS, _Kind.CONTINUATION):
            whole = self._request_headers.take(frame)
            if whole is not None:
                self._headers_of_kubelet(*whole)
        elif frame.kind == _Kind.RST_STREAM:
            self._over(frame.stream)
            self.to_runtime += frame.raw
        else:
            self.to_runtime += frame.raw

    def _headers_of_kubelet(self, first: frames.Frame, raw: bytes, block: bytes) -> None:
        self.to_runtime += raw
        headers = self._decoder.decode(block, raw=True)
        if first.ends_stream or first.stream in self._calls:
            return
        method = next((value for name, value, *_ in headers if name == b":path"), b"")
        text = method.decode("utf-8", "replace")
        if text in self._intercepted:
            self._calls[first.stream] = _Call(text)
            self._windows.open(first.stream)

    def _data_of_kubelet(self, frame: frames.Frame) -> None:
        call = self._calls.get(frame.stream)
        if call is None:
            self.to_runtime += self._windows.pass_on(frame)
            return
        call.body += frame.content
        credit = frames.window_update(0, len(frame.payload)) if frame.payload else b""
        if not frame.ends_stream and frame.payload:
            credit += frames.window_update(frame.stream, len(frame.payload))
        self._inject(credit)
        if len(call.body) > grpc.MOST_MESSAGE + grpc.PREFIX_BYTES:
            text = f"the request is larger than {grpc.MOST_MESSAGE} bytes"
            self.refuse(frame.stream, grpc.RESOURCE_EXHAUSTED, text)
            self._inject(frames.reset(frame.stream, frames.NO_ERROR))
        elif frame.ends_stream:
            call.asked = True
            message = grpc.message_of(bytes(call.body))
            self.events.append(Asked(frame.stream, call.method, message))

    def _of_runtime(self, frame: frames.Frame) -> None:
        if frame.kind == _Kind.WINDOW_UPDATE:
            self._window_update(frame)
            return
        if frame.kind in (_Kind.HEADERS, _Kind.CONTINUATION, _Kind.PUSH_PROMISE):
            whole = self._answer_headers.take(frame)
            if whole is None:
                return
            first, raw, _ = whole
            self.to_kubelet += raw
            if first.ends_stream:
                self._over(first.stream)
            return
        self.to_kubelet += frame.raw
        if frame.kind == _Kind.DATA:
            self._data_of_runtime(frame)
        elif frame.kind == _Kind.SETTINGS and not frame.flags & frames.ACK:
            self._settings(frame)
        elif frame.kind == _Kind.RST_STREAM:
            call = self._calls.get(frame.stream)
            if call is not None:
                call.answer.clear()
            self._over(frame.stream)

    def _data_of_runtime(self, frame: frames.Frame) -> None:
        call = self._calls.get(frame.stream)
        if call is None:
            return
        if len(call.answer) <= _MOST_ANSWER:
            call.answer += frame.content
        if frame.ends_stream:
            self._over(frame.stream)

    def _settings(self, frame: frames.Frame) -> None:
        for name, value in frame.settings:
            if name == frames.INITIAL_WINDOW_SIZE:
                self.to_runtime += self._windows.set_initial(value)
            elif name == frames.MAX_FRAME_SIZE:
                self._windows.set_frame(value)

    def _window_update(self, frame: frames.Frame) -> None:
        if frame.stream:
            sent = self._windows.update_stream(frame.stream, frame.number)
            if sent is None:
                self.to_kubelet += frame.raw
            else:
                self.to_runtime += sent
            return
        size, sent = self._windows.update_connection(frame.number)
        self.to_runtime += sent
        if size:
            self.to_kubelet += frames.window_update(0, size)

    def _over(self, stream: int) -> None:
        """Take that a stream has ended, by whichever side."""
        unsent = self._windows.drop(stream)
        if unsent:
            self._inject(frames.window_update(0, unsent))
        call = self._calls.pop(stream, None)
        if call is not None:
            message = grpc.message_of(bytes(call.answer))
            self.events.append(Answered(stream, call.method, message))

    def _inject(self, raw: bytes) -> None:
        """Send frames of our own to the kubelet, but never within a header block."""
        if self._answer_headers.open:
            self._injected += raw
        else:
            self.to_kubelet += raw
