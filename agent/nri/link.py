"""Keeps a plug-in connected to a runtime over its unix socket, in a thread of its own.

The thread answers without waiting for anything else; where the runtime ends the connection or is
not there, it connects again after a back-off.
"""

import contextlib
import logging
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from agent.nri import frames, session

FIRST_PAUSE, LONGEST_PAUSE, FACTOR, JITTER = 1.0, 60.0, 2.0, 0.1
SEND_SECONDS: Final = 2.0
"""A runtime that does not read an answer for so long has given up on the plug-in."""
_CHUNK: Final = 64 << 10
_logger = logging.getLogger(__name__)


def pause(failures: int, drawn: float) -> float:
    """Return seconds to wait after so many failures in a row; `drawn` in 0..1 spreads them."""
    exponent = min(max(failures - 1, 0), 16)
    return min(FIRST_PAUSE * FACTOR**exponent, LONGEST_PAUSE) * (1 + JITTER * drawn)


class Link:
    """The thread of one plug-in."""

    def __init__(
        self,
        path: str,
        begin: Callable[[], session.Session],
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        """`begin` makes the session of each connection; `wait` returns early when ended."""
        self.problem = "not connected yet"
        """Why there is no conversation, empty while there is one."""
        self.connections = 0
        """Conversations that came as far as synchronization."""
        self.current: session.Session | None = None
        """The conversation of this moment."""
        self.answered: Callable[[str, float], None] = lambda _method, _seconds: None
        """Takes the method of each request, and the seconds until its answer was sent."""
        self._path, self._begin, self._wait = path, begin, wait
        self._ended = threading.Event()
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="nri", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> None:
        """End the conversation and the thread; the runtime goes on without the plug-in."""
        self._ended.set()
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(2 * SEND_SECONDS)

    def _run(self) -> None:
        failures = 0
        while not self._ended.is_set():
            before = self.connections
            try:
                self._converse()
                self.problem = "the runtime ended the connection"
            except (OSError, frames.FrameError, session.SessionError) as error:
                self.problem = f"{self._path}: {error}"
            except Exception as error:
                # The root of an eternal thread: the runtime goes on without what failed.
                self.problem = f"{type(error).__name__}: {error}"
                _logger.exception("NRI conversation failed")
            self.current = None
            failures = 1 if self.connections > before else failures + 1
            if self._ended.is_set():
                return
            _logger.warning("NRI is not connected failures=%d reason=%s", failures, self.problem)
            self._wait(self._ended, pause(failures, random.random()))

    def _converse(self) -> None:
        with socket.socket(socket.AF_UNIX) as connected:
            with self._lock:
                self._socket = connected
            try:
                connected.settimeout(SEND_SECONDS)
                connected.connect(self._path)
                # `close` shuts down what is connected; what connects after it is left at once.
                if not self._ended.is_set():
                    self._talk(connected)
            finally:
                with self._lock:
                    self._socket = None

    def _talk(self, connected: socket.socket) -> None:
        talk = self.current = self._begin()
        connected.sendall(talk.begin())
        counted = False
        while talk.phase is not session.Phase.CLOSED:
            connected.settimeout(None)
            data = connected.recv(_CHUNK)
            if not data:
                return
            connected.settimeout(SEND_SECONDS)
            begin = time.monotonic()
            for answer in talk.receive(data):
                connected.sendall(answer.data)
                self.answered(answer.method, time.monotonic() - begin)
            if talk.phase is session.Phase.SYNCHRONIZED and not counted:
                counted, self.problem = True, ""
                self.connections += 1
                _logger.info("NRI is connected runtime=%s", talk.runtime)
