"""Virtual time that stands still while bytes are on their way between sockets of this process.

Client and server of a test share one event loop, and the kernel hands bytes over at once, but only
almost always: on a busy machine an answer may come milliseconds later, and a test that lets virtual
time pass meanwhile sees time-outs and coalescing that no cluster would show.
"""

import asyncio
import fcntl
import termios
from typing import Any, Final

from process.runtime.clock import ManualClock

_PAUSE: Final = 0.0005
_MOST_LOOKS: Final = 200
"""Looks after which time goes on although bytes are under way: a server hangs, a client does not
read, or a task of the test sends requests without end."""
_UNREAD: Final = bytearray(4)
"""What the kernel says of one socket; read at once.

What was sent and not acknowledged does not count: the kernel acknowledges up to 40 ms late."""


class LoopbackClock(ManualClock):
    """A manual clock whose instants end only when nothing is on its way over a socket."""

    async def settle(self) -> None:
        """Let every task go on until it waits, and until nothing of what was sent is unread."""
        await super().settle()
        for _ in range(_MOST_LOOKS):
            if not under_way():
                return
            await asyncio.sleep(_PAUSE)
            await super().settle()


def under_way() -> bool:
    """Tell whether a socket of the loop holds bytes that were not read yet."""
    transports: Any = getattr(asyncio.get_running_loop(), "_transports", {})
    for fd, transport in list(transports.items()):
        if transport.get_protocol() is None:
            continue  # Closed: its number may be that of another file by now.
        try:
            fcntl.ioctl(fd, termios.FIONREAD, _UNREAD)
        except OSError:
            continue  # A socket that is being closed has nothing on its way.
        if any(_UNREAD) or transport.get_write_buffer_size():
            return True
    return False
