"""What was found last about the devices of this node, for whoever reports it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent import devices_counted

if TYPE_CHECKING:
    # Every agent has this module, and few of them need that one.
    from agent import devices

Identifier = Callable[[], str]
"""Returns the identifier of this Node, empty before it was seen."""


class Latest:
    """What the last look found; nothing before the first one, and for ever where nobody looks."""

    def __init__(self) -> None:
        self.inventory: devices.Inventory | None = None
        """None before the first look."""
        self.gpus: tuple[devices_counted.Counted, ...] = ()
        """The GPUs whose use is counted."""
        self.clashes: tuple[str, ...] = ()
        """What people wrote into the Device that stands against it."""
