"""The files of the page: plain HTML, CSS and modules, read once; nothing is built or fetched."""

import dataclasses
import hashlib
import importlib.resources
from collections.abc import Mapping
from typing import Final

_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"


@dataclasses.dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    content_type: str
    tag: str
    """Its entity tag, which changes with the body."""


def tag(body: bytes) -> str:
    """Return the entity tag of a body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def read() -> Mapping[str, Asset]:
    """Return all files by name."""
    found: dict[str, Asset] = {}
    for one in (importlib.resources.files(__package__) / "assets").iterdir():
        kind = _TYPES.get(one.name.rpartition(".")[2])
        if kind is not None and one.is_file():
            body = one.read_bytes()
            found[one.name] = Asset(body, kind, tag(body))
    return found
