"""What nodes and pods use, as figures. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Use(NamedTuple):
    """Thousandths of a core, and bytes."""

    cpu: int
    memory: int

    def plus(self, other: "Use") -> "Use":
        """Add another use."""
        return Use(self.cpu + other.cpu, self.memory + other.memory)


NOTHING: Final = Use(0, 0)


class Measured(NamedTuple):
    """Use by name of the node, and by namespace/name of the pod."""

    nodes: Mapping[str, Use]
    pods: Mapping[str, Use]
    said: str
    """Where it is from."""
