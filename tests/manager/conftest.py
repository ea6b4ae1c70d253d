import gzip
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Case = tuple[str, dict[str, Any], dict[str, Any]]


@pytest.fixture
def reference() -> Callable[[str], Iterator[Case]]:
    """Yield the recorded cases of one file: name, input, output."""
    folder = pathlib.Path(__file__).parent.parent / "reference"

    def cases(name: str) -> Iterator[Case]:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as lines:
            for number, line in enumerate(lines):
                case = json.loads(line)
                yield f"{name}:{number}", case["in"], case["out"]

    return cases
