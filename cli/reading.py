"""Reading objects that others wrote: one that has an unexpected shape is named and left out."""

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

UNREADABLE: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What reading an object raises that does not have the shape it should have."""


def either(otherwise: U, read: Callable[P, T], *args: P.args, **more: P.kwargs) -> T | U:
    """Return what is read, or the other value where an object has not the shape it should have."""
    try:
        return read(*args, **more)
    except UNREADABLE:
        return otherwise


def refusal(error: BaseException) -> str:
    """Say why a file cannot be read or written; the sentence around it names the file."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def why(error: BaseException) -> str:
    """Say what is wrong with an object that could not be read."""
    return f"an object has an unexpected shape ({type(error).__name__}: {error})"
