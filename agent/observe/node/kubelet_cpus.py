"""What the kubelet of this node tells about cpus: its configuration, and what it handed out.

Its configuration is asked for once a minute. What its cpu manager notes lies in a file of the host
that it replaces, so that its folder has to be mounted, not the file.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from agent.host import files
from agent.informers import kubelet_client as kubelets
from agent.model.cpus import kubelet_cpu_manager
from agent.observe import collectors
from process.runtime import clock as clocks

_logger = logging.getLogger(__name__)
SECONDS: Final = 60.0
"""Time between two questions ..."""
SOON_SECONDS: Final = 2.0
"""... and after a failure, twice as long each time up to the same."""
NOTES: Final = "cpu_manager_state"
NOTES_SECONDS: Final = 5.0
_REMEDY: Final = (
    "let the agent read the kubelet's folder (the chart's agent.kubeletState), or get "
    "nodes/configz from Kubernetes 1.33 on (agent.kubeletAccess), or set kubelet.configuration "
    "to false where it hands out no cpus"
)
Ask = Callable[[str], Awaitable[bytes]]


class KubeletTold:
    """Remembers the last good answer of both."""

    def __init__(
        self,
        ask: Ask,
        clock: clocks.Clock,
        *,
        asked: bool = True,
        before: kubelet_cpu_manager.Configuration | None = None,
    ) -> None:
        self.told = kubelet_cpu_manager.Told(before if asked else None, asked=asked)
        """What is known; the same object until something changes."""
        self.ask = ask
        """Asks the kubelet anything."""
        self._clock = clock
        self._problem = "it has not been asked yet" if asked else ""

    def problem(self) -> str | None:
        """Why it is not known how the kubelet hands out cpus, None when it is."""
        if not self._problem or self.told.noted:
            return None
        return f"how the kubelet hands out cpus is not known: {self._problem}; {_REMEDY}"

    async def run(self) -> None:
        """Ask for ever."""
        pause = SOON_SECONDS
        while True:
            good = await self.step()
            await self._clock.sleep(SECONDS if good else pause)
            pause = SOON_SECONDS if good else min(2 * pause, SECONDS)

    async def step(self) -> bool:
        """Ask once; on failure the last answer stands."""
        if not self.told.asked:
            return True
        try:
            found = kubelet_cpu_manager.configuration(await self.ask("configz"))
        except (kubelets.KubeletError, kubelet_cpu_manager.FormatError) as error:
            if str(error) != self._problem:
                _logger.warning("kubelet has not told its configuration reason=%s", error)
            self._problem = str(error)
            return False
        self._problem = ""
        if found != self.told.configuration:
            _logger.info("kubelet hands out cpus policy=%s", found.policy)
            self.told = msgspec.structs.replace(self.told, configuration=found)
        return True

    def take(self, found: kubelet_cpu_manager.Entries, policy: str = "") -> None:
        """Take what the cpu manager noted."""
        if (found, policy) != (self.told.entries, self.told.noted):
            self.told = msgspec.structs.replace(self.told, entries=found, noted=policy)


class Notes:
    """Reads what the kubelet's cpu manager notes; a collector."""

    name = "cpu manager"
    seconds = NOTES_SECONDS

    def __init__(self, folder: Path, told: KubeletTold) -> None:
        self._folder = str(folder)
        self._told = told

    def collect(self, _sight: collectors.Sight) -> None:
        """Look once; a kubelet that wrote no notes handed out nothing."""
        path = f"{self._folder}/{NOTES}"
        try:
            written = files.read(path, 4 * 1024 * 1024)
            found, policy = (
                kubelet_cpu_manager.entries(written),
                kubelet_cpu_manager.noted_policy(written),
            )
        except kubelet_cpu_manager.FormatError as error:
            raise files.ReadingError(f"{path}: {error}") from error
        except files.VanishedError as error:
            if not Path(self._folder).is_dir():
                raise files.ReadingError(
                    f"{self._folder}: no such folder; kubelet.folder has to name the kubelet's own"
                ) from error
            found, policy = {}, ""
        self._told.take(found, policy)

    def close(self) -> None:
        """Nothing stays open."""
