"""How much an actuator may do: its setting, and one live switch for the whole cluster."""

import enum
import logging
from collections.abc import Mapping

logger = logging.getLogger(__name__)


class Mode(enum.StrEnum):
    """What a decision is worth."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    """Decisions are made, counted and logged, and nothing comes of them."""
    OFF = "off"
    """Nothing is decided."""


class Switches:
    """The mode in force: the live switch where it is set, else the setting."""

    def __init__(self, key: str, default: Mode = Mode.ENFORCE) -> None:
        """Take the key of this actuator among the switches, and the mode while it is not set."""
        self._key = key
        self._default = default
        self._live: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._live or self._default

    @property
    def asks(self) -> bool:
        """Whether anything is decided at all."""
        return self.mode is not Mode.OFF

    @property
    def enforces(self) -> bool:
        """Whether a decision counts."""
        return self.mode is Mode.ENFORCE

    def take(self, data: Mapping[str, str] | None) -> None:
        """Take in all switches; an unknown word changes nothing."""
        key, written = self._key, (data or {}).get(self._key)
        try:
            live = Mode(written.strip().lower()) if written else None
        except ValueError:
            known = ", ".join(Mode)
            logger.warning("switch is unreadable key=%s value=%s use=%s", key, written, known)
            return
        if live is not self._live:
            logger.info("switch changed key=%s mode=%s", key, live or self._default)
        self._live = live
