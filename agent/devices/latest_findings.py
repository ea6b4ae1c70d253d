"""What was found last about the devices of this node, for its reporters."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from agent.devices import usage_figures
from agent.model import capability_matrix

if TYPE_CHECKING:
    # Every agent has this module, and few of them need that one.
    from agent.devices import device_inventory

Identifier = Callable[[], str]
"""Returns the identifier of this Node, empty before it was seen."""
LOOK: Final = "look"
"""Source of a problem that concerns all devices: the look at them does not end."""
ROWS: Final[Mapping[str, str]] = {
    "gpu": "gpus",
    "xpu": "accelerators",
    "rdma": "rdma",
    "use": "device-use",
    "object": "device-object",
    LOOK: "devices",
}
"""What sources of problems are called in the table of what a node can do."""
_KINDS: Final[Mapping[str, str]] = {"gpu": "gpu", "xpu": "gpu", "rdma": "rdma"}
_LONGEST: Final = 300


class Latest:
    """What the last look found; nothing before the first one, for ever where discovery is off."""

    def __init__(self) -> None:
        self.inventory: device_inventory.Inventory | None = None
        """None before the first look."""
        self.gpus: tuple[usage_figures.Counted, ...] = ()
        """The GPUs whose use is counted."""
        self.clashes: tuple[str, ...] = ()
        """What people wrote into the Device that stands against it."""
        self.problems: Mapping[str, str] = {}
        """What could not be told by the last look, by source."""

    def lacks(self) -> tuple[capability_matrix.Row, ...]:
        """Return what this node cannot do with devices, as its Node tells it."""
        return tuple(self._lacks())

    def _lacks(self) -> Iterator[capability_matrix.Row]:
        found = self.inventory.devices if self.inventory is not None else ()
        kinds = {one.kind for one in found}
        for source, why in sorted(self.problems.items()):
            partly = source != LOOK and _KINDS.get(source) in {None, *kinds}
            verdict = capability_matrix.Verdict.UNAVAILABLE
            if partly:
                verdict = capability_matrix.Verdict.SUBSTITUTE
            yield capability_matrix.Row(ROWS[source], verdict, why[:_LONGEST])
