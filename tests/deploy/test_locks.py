"""The locks pin what an installation with hashes asks for."""

import importlib.metadata
import pathlib
import re

import pytest
from packaging import requirements, utils

ROOT = pathlib.Path(__file__).parents[2]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?==\S+", re.MULTILINE)


def asked_by(name):
    """What a package asks for here; nothing where it is one of another system."""
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for line in lines:
        asked = requirements.Requirement(line)
        if asked.marker is None or asked.marker.evaluate({"extra": ""}):
            yield asked


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_package_is_pinned_with_the_extras_that_others_ask_for(lock):
    """Before 23.3, pip looks at `coverage[toml]` without the pin of `coverage`: it fails."""
    pins = PIN.findall((ROOT / lock).read_text(encoding="utf-8"))
    pinned = {utils.canonicalize_name(name): set(extras.split(",")) for name, extras in pins}
    assert len(pinned) > 20
    lacking = [
        f"{name} asks for {asked}"
        for name in pinned
        for asked in asked_by(name)
        if not asked.extras <= pinned[utils.canonicalize_name(asked.name)]
    ]
    assert not lacking
