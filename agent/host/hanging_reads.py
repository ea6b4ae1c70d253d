"""Reads that may hang, in a thread of their own, so that one that hangs stops no other."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from agent.host import files

_logger = logging.getLogger(__name__)
PATIENCE_SECONDS: Final = 5.0
LAST_SECONDS: Final = 1.0
T = TypeVar("T")


class Apart(Generic[T]):
    """Takes one look after another; each turn returns what the one before has found."""

    def __init__(self, look: Callable[[float], T], name: str) -> None:
        self._look = look
        self._name = name
        self._asked: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._since: float | None = None

    def turn(self, at: float) -> T | None:
        """Return what was found since the last turn, and begin the next look.

        A look that hangs raises a ReadingError that says for how long; no other is begun.
        """
        if self._thread is None:
            # A thread that hangs in a driver must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        found = None
        if self._since is not None:
            try:
                found = self._found.get_nowait()
            except queue.Empty:
                waited = at - self._since
                if waited >= PATIENCE_SECONDS:
                    raise files.ReadingError(
                        f"{self._name} has not answered for {waited:.0f} seconds"
                    ) from None
                return None
        self._since = at
        self._asked.put(at)
        if isinstance(found, Exception):
            raise found
        return found

    def close(self) -> bool:
        """Let the thread end, and return whether it did; one that hangs is left behind."""
        if self._thread is None:
            return True
        self._asked.put(None)
        self._thread.join(LAST_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        for at in iter(self._asked.get, None):
            try:
                found: T | Exception = self._look(at)
            except files.ReadingError as error:
                found = error
            except Exception as error:
                # The root of an eternal thread; the next reader gets it as well.
                _logger.exception("look failed name=%s", self._name)
                found = error
            self._found.put(found)
