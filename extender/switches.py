"""Whether refusals count: the setting, and one live switch for the whole cluster."""

import enum
import logging

logger = logging.getLogger(__name__)

KEY = "extender"
"""Key in the ConfigMap of switches."""


class Mode(enum.StrEnum):
    """What the plug-ins' words are worth."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    """Refusals are counted and logged, and everything passes."""
    OFF = "off"
    """Plug-ins are not asked; pods are bound as the scheduler chose."""


class Switches:
    """The mode in force: the live switch where it is set, else the setting."""

    def __init__(self, *, observe: bool = False) -> None:
        self._default = Mode.OBSERVE if observe else Mode.ENFORCE
        self._live: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._live or self._default

    @property
    def asks(self) -> bool:
        """Whether plug-ins are asked at all."""
        return self.mode is not Mode.OFF

    @property
    def enforces(self) -> bool:
        """Whether a refusal counts."""
        return self.mode is Mode.ENFORCE

    def take(self, data: dict[str, str] | None) -> None:
        """Take in the ConfigMap of switches; an unknown word changes nothing."""
        written = (data or {}).get(KEY)
        try:
            self._live = Mode(written) if written else None
        except ValueError:
            known = ", ".join(Mode)
            logger.warning("switch is unreadable key=%s value=%s use=%s", KEY, written, known)
