"""The ConfigMap with settings of the agent, read once when it starts.

What was read is kept on the node, so that an agent starts with it while the API server is away.
"""

import logging
from pathlib import Path
from typing import Final

import msgspec

from agent.host import files
from api import resources
from api.kubernetes import core
from kube.client import client, errors
from process.configuration import explained_error

KEY: Final = "settings.yaml"
"""The key of the ConfigMap's data."""
FILE: Final = "configmap.yaml"
MODE: Final = 0o600
_logger = logging.getLogger(__name__)


class SettingsMapError(explained_error.ExplainedError):
    """The ConfigMap cannot be read; the text says why."""


class Place(msgspec.Struct, frozen=True):
    """Which ConfigMap, and the folder in which a copy is kept."""

    name: str
    namespace: str
    folder: Path

    @property
    def told(self) -> str:
        """How messages call it."""
        return f"ConfigMap {self.namespace}/{self.name}"


async def text(kube: client.Client, place: Place) -> str:
    """Return the settings in a ConfigMap; those of the last start while no API server answers."""
    copy = place.folder / FILE
    try:
        raw = await kube.get(resources.CONFIG_MAPS, place.name, place.namespace)
    except errors.ApiError as error:
        raise SettingsMapError(f"{place.told} cannot be read: {error}") from error
    except errors.KubeError as error:
        return _kept(copy, place, error)
    found = msgspec.convert(raw, core.ConfigMap).data.get(KEY)
    if found is None:
        raise SettingsMapError(f"{place.told} has no key {KEY}")
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        files.replace(copy, f"# {place.told}\n{found}".encode(), MODE)
    except OSError as error:
        _logger.warning("settings are not kept for the next start reason=%s", error)
    return found


def _kept(copy: Path, place: Place, error: errors.KubeError) -> str:
    try:
        found = copy.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        found = ""
    if not found.startswith(f"# {place.told}\n"):
        raise SettingsMapError(f"{place.told} cannot be read: {error}") from error
    _logger.warning("settings are those of the last start reason=%s", error)
    return found
