"""How reviews are answered: the setting, and one live switch for the whole cluster."""

import enum
import logging
from collections.abc import Mapping

logger = logging.getLogger(__name__)

KEY = "webhook"
"""Key in the ConfigMap of switches."""


class Mode(enum.StrEnum):
    """What a decision is worth."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    """Decisions are counted and logged, and every object passes as it was sent."""
    OFF = "off"
    """Nothing is decided; every object passes as it was sent."""


class Switches:
    """The mode in force: the live switch where it is set, else the setting."""

    def __init__(self, default: Mode = Mode.ENFORCE) -> None:
        self._default = default
        self._live: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._live or self._default

    def take(self, data: Mapping[str, str] | None) -> None:
        """Take in the ConfigMap of switches; an unknown word changes nothing."""
        written = (data or {}).get(KEY)
        try:
            live = Mode(written) if written else None
        except ValueError:
            known = ", ".join(Mode)
            logger.warning("switch is unreadable key=%s value=%s use=%s", KEY, written, known)
            return
        if live is not self._live:
            logger.info("switch changed key=%s mode=%s", KEY, live or self._default)
        self._live = live
