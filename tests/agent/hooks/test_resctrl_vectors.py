"""Masks and bandwidths, as recorded."""

import pytest

from agent.hooks import resctrl
from tests.reference import cases, differences_agent


def answer(case):
    given, found = case.given, {}
    ids = given["l3CacheIDs"]
    try:
        share = resctrl.mask(
            int(given["cbmMaskHex"], 16),
            given["catRangeStartPercent"],
            given["catRangeEndPercent"],
        )
        found["mask"] = f"{share:x}"
        found["l3"] = resctrl.line("L3", dict.fromkeys(ids, f"{share:x}"))
    except resctrl.CacheError:
        found["mask"] = None
    percent = given.get("mbaPercent")
    speed = None if percent is None else resctrl.bandwidth(percent, given["vendorID"])
    found["speed"] = "" if speed is None else str(speed)
    if speed is not None:
        found["mb"] = resctrl.line("MB", dict.fromkeys(ids, str(speed)))
    return found


def recorded(case):
    out, found = case.expected, {}
    found["mask"] = None if "l3Error" in out else out["l3MaskHex"]
    found["speed"] = out.get("mbValue", "")
    for ours, theirs in (("l3", "l3Schemata"), ("mb", "mbSchemata")):
        if theirs in out:
            found[ours] = out[theirs]
    return found


@pytest.mark.vectors
def test_shares_of_cache_and_bandwidth():
    cases.check("resctrl", answer, recorded, differences_agent.of("resctrl"))
