"""Device files of RDMA adapters with their numbers, as the kernel tells them in sysfs."""

from collections.abc import Iterable
from typing import Final

from agent.devices import pci, rdma
from agent.hooks.devices import rdma_devices
from agent.host import files

SECONDS: Final = 10.0
"""How often it is looked anew."""


class Nodes:
    """Looks seldom, since adapters hardly ever change."""

    def __init__(self, sys: str) -> None:
        self._sys = sys
        self._rule = rdma_devices.Rule({}, {})
        self._due = 0.0

    def rule(self, now: float) -> rdma_devices.Rule:
        """Return the adapters of this host; equal as long as none comes or goes."""
        if now >= self._due:
            self._due = now + SECONDS
            found = rdma.verbs(self._sys)
            self._rule = rdma_devices.Rule(found, self._numbers(found.values()))
        return self._rule

    def _numbers(self, names: Iterable[str]) -> dict[str, tuple[int, int]]:
        places = {f"{rdma_devices.FOLDER}/{name}": f"infiniband_verbs/{name}" for name in names} | {
            rdma_devices.MANAGEMENT: "misc/rdma_cm"
        }
        found: dict[str, tuple[int, int]] = {}
        for path, place in places.items():
            try:
                major, _, minor = pci.text(f"{self._sys}/class/{place}/dev").partition(":")
                found[path] = int(major), int(minor)
            except (files.ReadingError, ValueError):
                # Without a number the hook names the file that is missing.
                continue
        return found
