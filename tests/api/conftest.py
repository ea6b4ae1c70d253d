"""What the tests of the words share: the documented manifests."""

import pathlib
from typing import Any

import pytest
import yaml

FOLDER = pathlib.Path(__file__).parent.parent / "manifests"


def _load(path: pathlib.Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="session")
def manifests() -> dict[str, dict[str, Any]]:
    """Every documented manifest by the name of its file without the ending."""
    return {path.stem: _load(path) for path in sorted(FOLDER.glob("*.yaml"))}
