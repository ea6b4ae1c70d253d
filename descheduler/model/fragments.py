"""What is free of the devices and NUMA zones of a node, and which pods hold the rest."""

from collections.abc import Mapping
from typing import Final

import msgspec

ByMinor = Mapping[int, int]
"""By minor of a device: percent of it."""
ByZone = Mapping[int, int]
"""By id of a NUMA zone: number of CPUs."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """What one pod holds of its node beyond plain requests."""

    devices: Mapping[str, ByMinor] = {}
    """By type of device, such as gpu."""
    cpus: ByZone = {}
    """CPUs of its own."""


HOLDS_NOTHING: Final = Held()


class Fragments(msgspec.Struct, frozen=True, gc=False):
    """What is left of the devices and CPUs of one node, piece by piece."""

    devices: Mapping[str, ByMinor] = {}
    """What is free of every healthy device, by type; 100 is a device that no pod holds."""
    cpus: ByZone = {}
    """CPUs that no pod has of its own and that are not reserved."""
    cpus_of_zone: ByZone = {}
    """CPUs that pods may have in all."""
    held: Mapping[str, Held] = {}
    """By uid of the pod; pods that hold nothing of this kind are left out."""


NOTHING: Final = Fragments()
