"""Named checks that decide whether a process may be sent work, and warnings that do not."""

from collections.abc import Callable

Check = Callable[[], str | None]
"""Returns None when all is well, else the reason in a few words."""


class Health:
    """What /readyz reports."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._warnings: dict[str, Check] = {}

    def add(self, name: str, check: Check) -> None:
        """Add a check that must be fine before work is sent here."""
        self._put(self._checks, name, check)

    def warn(self, name: str, check: Check) -> None:
        """Add a check that deserves a look while work goes on."""
        self._put(self._warnings, name, check)

    def remove(self, name: str) -> None:
        """Forget the check of that name, if there is one."""
        self._checks.pop(name, None)
        self._warnings.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all checks, in the order they were added."""
        return tuple(self._checks)

    @property
    def ready(self) -> bool:
        """Whether no check fails at this moment."""
        for check in self._checks.values():  # noqa: SIM110 - with every call; a generator is slower
            if check() is not None:
                return False
        return True

    def failing(self) -> dict[str, str]:
        """Return the reason of every failing check."""
        return _reasons(self._checks)

    def warnings(self) -> dict[str, str]:
        """Return the reason of every warning."""
        return _reasons(self._warnings)

    def _put(self, checks: dict[str, Check], name: str, check: Check) -> None:
        if name in self._checks or name in self._warnings:
            raise ValueError(f"health check {name} exists already; give this one another name")
        checks[name] = check


def _reasons(checks: dict[str, Check]) -> dict[str, str]:
    return {name: reason for name, check in checks.items() if (reason := check()) is not None}
