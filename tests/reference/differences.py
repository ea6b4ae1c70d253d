"""Where the manager deliberately answers otherwise than the recorded reference, and why.

Per file, each difference by a short name; a case is known by what it says. Whole fields of an
answer that are not compared are named as ``batch_resource.zones``.
"""

from collections.abc import Mapping

from tests.reference import cases

FIELDS: Mapping[str, str] = {
    "batch_resource.message": (
        "the text is the reference's log line; ours is a sentence in cores and GiB for events"
    ),
    "batch_resource.zones": "batch capacity per NUMA zone is not published yet",
}

DIFFERENCES: Mapping[str, Mapping[str, cases.Difference]] = {}


def of(file: str) -> Mapping[str, cases.Difference]:
    """Return the differences of one file by name."""
    return DIFFERENCES.get(file, {})
