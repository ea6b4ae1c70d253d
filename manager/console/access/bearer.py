"""The bearer token of an HTTP request. Pure."""

import re
from typing import Final

MOST_CHARACTERS: Final = 8192
"""Of a token; those of service accounts have about a thousand."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


class BearerError(ValueError):
    """An Authorization header that holds no bearer token; the text never repeats it."""


def token(header: str | None) -> str | None:
    """Return the token of an Authorization header, None where there is no header."""
    if header is None:
        return None
    scheme, _, written = header.partition(" ")
    written = written.strip()
    if scheme.lower() != "bearer" or not written:
        raise BearerError("the Authorization header must be: Bearer TOKEN")
    if len(written) > MOST_CHARACTERS:
        raise BearerError(f"the token has more than {MOST_CHARACTERS} characters")
    if _TOKEN.fullmatch(written) is None:
        raise BearerError("the token holds characters that no bearer token has")
    return written
