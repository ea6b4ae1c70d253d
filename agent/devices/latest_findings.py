"""What was found last about the devices of this node, for its reporters."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.devices import usage_figures

if TYPE_CHECKING:
    # Every agent has this module, and few of them need that one.
    from agent.devices import device_inventory

Identifier = Callable[[], str]
"""Returns the identifier of this Node, empty before it was seen."""


class Latest:
    """What the last look found; nothing before the first one, for ever where discovery is off."""

    def __init__(self) -> None:
        self.inventory: device_inventory.Inventory | None = None
        """None before the first look."""
        self.gpus: tuple[usage_figures.Counted, ...] = ()
        """The GPUs whose use is counted."""
        self.clashes: tuple[str, ...] = ()
        """What people wrote into the Device that stands against it."""
