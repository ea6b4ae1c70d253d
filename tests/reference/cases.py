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
from typing import Any, Final

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


class _Unstated:
    """Equal to no answer."""


UNSTATED: Final = _Unstated()


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Cases that are answered otherwise on purpose: why, and what is answered instead."""

    why: str
    stated: Callable[[Case, Any], Any]
    """The answer in place of the recorded one, which it is given; `UNSTATED` where this difference
    says nothing about the case. It is worked out without the code under test, or from what that
    answers to another question that the reference answers alike."""
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


def lines(file: str) -> Sequence[str]:
    """Return the lines of one file; skip the test where the folder named by the user lacks it."""
    if (path := path_of(file)) is None:
        pytest.skip(f"{VARIABLE}={_NAMED} has no {file}.jsonl")
    found = _lines(path)
    assert found, f"{path} is empty"
    return found


def read(file: str) -> list[Case]:
    """Return the cases of one file; skip the test where the folder named by the user lacks it."""
    cases = []
    for number, line in enumerate(lines(file)):
        raw = json.loads(line)
        quirk = raw["in"].get("quirk", "") if isinstance(raw["in"], dict) else ""
        cases.append(Case(f"{file}:{number}", raw["in"], raw["out"], quirk))
    return cases


def check(
    file: str,
    answer: Callable[[Case], Any],
    expected: Callable[[Case], Any],
    differences: Mapping[str, Difference],
) -> dict[str, int]:
    """Compare every case; return how many agreed ("") and how many each difference answered.

    A case fails whose answer is not the one that a listed difference states for it, or else the
    recorded one. So does, on the committed cases, a listed difference that answers nothing any
    more.
    """
    counted = dict.fromkeys(["", *differences], 0)
    wrong: list[tuple[str, Any, Any]] = []
    for case in read(file):
        got, due, reason = answer(case), expected(case), ""
        for name, difference in differences.items():
            stated = difference.stated(case, due)
            if stated is not UNSTATED and stated != due:
                due, reason = stated, name
        if got == due:
            counted[reason] += 1
        else:
            wrong.append((case.name, got, due))
    assert not wrong, f"{len(wrong)} of {file} differ, first: {wrong[:3]}"
    if not _NAMED:
        idle = [name for name, d in differences.items() if d.committed and not counted[name]]
        assert not idle, f"{file}: these differences answer nothing any more: {idle}"
    return counted
