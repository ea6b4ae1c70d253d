"""Texts that a terminal shows and does not obey: control and format characters escaped. Pure."""

from typing import Final

_BREAKS: Final = frozenset("\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")


def escaped(text: str) -> str:
    """Return a text with every control and format character escaped, line breaks among them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    # Wide spaces are not printable to Python, yet harmless.
    return " " if char.isspace() and char not in _BREAKS else ascii(char)[1:-1]
