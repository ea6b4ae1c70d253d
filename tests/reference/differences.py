"""Where this product deliberately answers otherwise than the recorded reference, and why.

A case is named by its file and its line counted from zero, such as ``batch_resource:12``; a whole
field of a file is named as ``batch_resource.zones``. Whoever tests a file compares the set of
cases that differ with the entries here: an entry that no longer differs fails as well.
"""

DIFFERENCES: dict[str, str] = {
    "batch_resource.message": (
        "the text is the reference's log line; ours is a sentence in cores and GiB for events"
    ),
    "batch_resource.zones": "batch capacity per NUMA zone is not published yet",
}


def of(file: str) -> dict[str, str]:
    """Return the cases of one file that differ, without the fields."""
    return {case: why for case, why in DIFFERENCES.items() if case.startswith(f"{file}:")}
