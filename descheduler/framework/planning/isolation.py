"""The error of a plug-in made a value, so that it ends that plug-in and nothing else. Pure."""

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_LONGEST: Final = 300


def tried(act: Callable[[], T]) -> tuple[T | None, str]:
    """Return what an act returns, or None and what went wrong."""
    try:
        return act(), ""
    except Exception as error:  # noqa: BLE001 - whatever one plug-in meets stays its own
        return None, f"{type(error).__name__}: {error}"[:_LONGEST]
