"""Recorded inputs and outputs of the reference implementation, one file per decision.

They lie beside this file, gzipped. With ``KOORD_VECTORS`` set to a folder, files of the same names
are read from there instead, plain or gzipped and of any length, so nothing may count on the number
of a line: a deliberate difference is told from what the case says.
"""

import dataclasses
import functools
import gzip
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

VARIABLE = "KOORD_VECTORS"
# Read on import: no test sees the environment of whoever runs it.
_NAMED = os.environ.get(VARIABLE)
_HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One recorded case: what went in and what came out.

    A quirk names a behaviour of the reference that looks unintended and that decides the case.
    """

    name: str
    given: dict[str, Any]
    expected: dict[str, Any]
    quirk: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Cases that are answered otherwise on purpose: why, and by what they are known."""

    why: str
    applies: Callable[[Case], bool]
    committed: bool = True
    """Whether the committed cases show it; others may."""


def path_of(file: str) -> pathlib.Path | None:
    """Return where the cases of one file lie, or None where the named folder lacks them."""
    folder = pathlib.Path(_NAMED) if _NAMED else _HERE
    found = [folder / f"{file}.jsonl", folder / f"{file}.jsonl.gz"]
    return next((path for path in found if path.exists()), None)


@functools.cache
def _lines(path: pathlib.Path) -> Sequence[str]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return text.decode().splitlines()


def read(file: str) -> list[Case]:
    """Return the cases of one file; skip the test where the folder named by the user lacks it."""
    if (path := path_of(file)) is None:
        pytest.skip(f"{VARIABLE}={_NAMED} has no {file}.jsonl")
    cases = []
    for number, line in enumerate(_lines(path)):
        raw = json.loads(line)
        quirk = raw["in"].get("quirk", "") if isinstance(raw["in"], dict) else ""
        cases.append(Case(f"{file}:{number}", raw["in"], raw["out"], quirk))
    assert cases, f"{path} is empty"
    return cases


def check(
    file: str,
    answer: Callable[[Case], Any],
    expected: Callable[[Case], Any],
    differences: Mapping[str, Difference],
) -> dict[str, int]:
    """Compare every case; return how many agreed ("") and how many each difference explained.

    A case that differs without a listed reason fails. So does, on the committed cases, a listed
    difference that explains nothing any more.
    """
    counted = dict.fromkeys(["", *differences], 0)
    wrong: list[tuple[str, Any, Any]] = []
    for case in read(file):
        got, wanted = answer(case), expected(case)
        if got == wanted:
            counted[""] += 1
            continue
        reason = next((name for name, d in differences.items() if d.applies(case)), None)
        if reason is None:
            wrong.append((case.name, got, wanted))
        else:
            counted[reason] += 1
    assert not wrong, f"{len(wrong)} of {file} differ, first: {wrong[:3]}"
    if not _NAMED:
        idle = [name for name, d in differences.items() if d.committed and not counted[name]]
        assert not idle, f"{file}: these differences explain nothing any more: {idle}"
    return counted
