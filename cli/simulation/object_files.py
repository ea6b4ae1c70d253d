"""Reads the objects of YAML files; lists are unpacked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from cli import reading
from process.configuration import explained_error

_LONGEST: Final = 8 << 20


class DocumentError(explained_error.ExplainedError):
    """A file that holds no objects; says why and what to write."""


def read(path: Path) -> Sequence[dict[str, Any]]:
    """Return the objects of a file."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
        if len(data) > _LONGEST:
            raise DocumentError(f"{path} is larger than {_LONGEST >> 20} MiB")
        documents = [one for one in yaml.safe_load_all(data) if one is not None]
    except (OSError, yaml.YAMLError, *reading.UNREADABLE) as error:
        raise DocumentError(f"{path} cannot be read: {reading.refusal(error)}") from error
    found = []
    for one in documents:
        items = one.get("items") if isinstance(one, dict) else None
        found += items if isinstance(items, list) else [one]
    if not found or not all(isinstance(one, dict) for one in found):
        raise DocumentError(f"{path} holds no objects: write Kubernetes objects as YAML")
    return found
