"""Recorded admissions and a way to replay them."""

import gzip
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

REFERENCE = pathlib.Path(__file__).parent.parent / "reference"


def _recorded(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(REFERENCE / f"{name}.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


@pytest.fixture(scope="session")
def mutations() -> list[dict[str, Any]]:
    return list(_recorded("pod_mutation"))


@pytest.fixture(scope="session")
def validations() -> list[dict[str, Any]]:
    return list(_recorded("pod_validation"))
