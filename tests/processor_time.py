"""Processor time that code takes by itself.

A collection of everything that earlier tests left in the process takes longer than what is
measured, so none runs meanwhile.
"""

import contextlib
import gc
import time
from collections.abc import Iterator


@contextlib.contextmanager
def below(seconds: float) -> Iterator[None]:
    """Fail unless the block takes less processor time of this thread."""
    gc.disable()
    started = time.thread_time()
    try:
        yield
        taken = time.thread_time() - started
    finally:
        gc.enable()
    assert taken < seconds, f"took {taken:.3f} s of processor time"
