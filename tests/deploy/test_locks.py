"""The locks pin what an installation with hashes asks for."""

import importlib.metadata
import pathlib
import re

import pytest
from packaging import requirements, utils

ROOT = pathlib.Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?==(\S+)", re.MULTILINE)


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_package_is_pinned_with_the_extras_that_others_ask_for(lock):
    """Before 23.3, pip looks at `coverage[toml]` without the pin of `coverage`, and takes the newest."""
    pins = PIN.findall((ROOT / lock).read_text(encoding="utf-8"))
    pinned = {utils.canonicalize_name(name): set(extras.split(",")) for name, extras, _ in pins}
    assert len(pinned) > 20
    lacking = []
    for name in pinned:
        try:
            wanted = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            # Of another system; pip does not ask for it here.
            continue
        for line in wanted:
            asked = requirements.Requirement(line)
            if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
                continue
            if not asked.extras <= pinned[utils.canonicalize_name(asked.name)]:
                lacking.append(f"{name} asks for {line}")
    assert not lacking
