"""Standard output and standard error of the commands: escaped, bounded, never markup.

Annotations, event messages, conditions and statuses are written by tenants. A terminal would obey
the control characters in them, so every text passes through here.
"""

import contextlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TextIO

from domain import wording
from process.configuration import explained_error, printable

LONGEST: Final = 4096
"""Characters of one line; what is longer was not written for people."""
DEEPEST: Final = 64
_CONTINUED: Final = "    "
_DELETE: Final = "\x7f"


class OutputError(explained_error.ExplainedError):
    """What was to be shown cannot be written; says why."""


def plain(text: object) -> str:
    """Return one line in which every control and format character is escaped."""
    found = str(text)
    if (more := len(found) - LONGEST) > 0:
        left = wording.count(more, "more character", "more characters")
        found = f"{found[:LONGEST]}… ({left})"
    return printable.escaped(found)


def folded(text: object) -> Iterable[str]:
    """Yield the lines of one message; further ones are indented, so that they forge no other."""
    first, *others = str(text).split("\n")
    yield plain(first)
    for line in others:
        yield f"{_CONTINUED}{plain(line)}"


def say(*messages: object) -> None:
    """Print messages at once, also into a pipe."""
    lines(messages)
    flush()


def flush() -> None:
    """Hand on what was printed so far."""
    with _explained():
        sys.stdout.flush()


def lines(messages: Iterable[object]) -> None:
    """Print messages, a line each."""
    for message in messages:
        _write(sys.stdout, "".join(f"{line}\n" for line in folded(message)))


def warn(message: object) -> None:
    """Print a message to standard error."""
    _write(sys.stderr, "".join(f"{line}\n" for line in folded(message)))


def ask(question: str) -> None:
    """Print a question; the answer is typed on the same line."""
    _write(sys.stdout, f"{plain(question)} ")
    flush()


def page(text: str) -> None:
    """Print a manifest to the byte: YAML holds no raw control characters."""
    _write(sys.stdout, text)


def written(text: str) -> None:
    """Print a text of several lines as it stands but for control characters."""
    _write(sys.stdout, "\n".join(printable.escaped(line) for line in text.split("\n")))


def document(body: Any) -> None:
    """Print JSON; ASCII, so that no character of it moves a cursor."""
    try:
        text = json.dumps(body, indent=2, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        text = json.dumps(_bounded(body, DEEPEST), indent=2)
    _write(sys.stdout, text.replace(_DELETE, "\\u007f") + "\n")


def _bounded(value: Any, depth: int) -> Any:
    """Return what JSON can say of a value: not too deep, no infinite numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): _bounded(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, Iterable):
        return [_bounded(inner, depth - 1) for inner in value]
    return str(value)


def _write(stream: TextIO, text: str) -> None:
    with _explained():
        try:
            stream.write(text)
        except UnicodeEncodeError:
            # A terminal of another encoding shows what it can.
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn the error of a full disk into one that a person reads."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error
