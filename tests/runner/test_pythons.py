"""Which Python the newest one of a machine is."""

import pytest

from tests.runner import pythons


def put(folder, name, answer):
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        ({}, None),
        ({"python3.11": "echo 11 final", "python3": "echo 13 final"}, None),
        ({"python3.9": "echo 9 final", "python3.12": "echo 12 final"}, "python3.12"),
        ({"python3.12": "echo 12 final", "python3.13": "echo 13 final"}, "python3.13"),
        ({"python3.12": "echo 12 final", "python3.13": "exit 127"}, "python3.12"),
        ({"python3.12": "echo 12 final", "python3.14": "echo 14 beta"}, "python3.12"),
        ({"python3.12": "echo 11 final"}, None),
    ],
    ids=["none", "none newer", "newer", "newest", "not there", "no release", "another one"],
)
def test_the_newest_release_that_starts(tmp_path, programs, expected):
    for number, (name, answer) in enumerate(programs.items()):
        put(tmp_path / str(number), name, answer)
    folders = [*sorted(tmp_path.iterdir()), tmp_path / "gone"]
    found = pythons.newest(folders, 11)
    assert (found.name if found else None) == expected
