"""Where this product deliberately answers otherwise than the recorded reference, and why.

A case is named by its file and its line counted from zero, such as ``batch_resource:12``; a whole
field of a file is named as ``batch_resource.zones``. Whoever tests a file compares the set of
cases that differ with the entries here: an entry that no longer differs fails as well.
"""

_BANDWIDTH_IN_PERCENT_TEXT = (
    'a network bandwidth written as the text "10%" is neither a number of percent nor a quantity: '
    "the key is refused with a message and keeps what it said before"
)
_NODE_SLO_LINES = (
    *(9, 17, 20, 21, 28, 32, 34, 41, 46, 50, 51, 54, 59, 61, 73, 79, 90, 92, 101, 102, 118, 125),
    *(126, 127, 136, 138, 142, 157, 161, 163, 178, 179, 182, 192, 197, 198, 201, 202, 209, 211),
    *(213, 214, 216, 218, 227, 230, 238, 242, 244, 253, 270, 275, 278, 281, 283, 295, 299, 303),
    *(305, 313, 318, 322, 323, 326, 346, 347, 353, 360, 362, 374, 386, 390, 398),
)

DIFFERENCES: dict[str, str] = {
    "batch_resource.message": (
        "the text is the reference's log line; ours is a sentence in cores and GiB for events"
    ),
    "batch_resource.zones": "batch capacity per NUMA zone is not published yet",
    **{f"node_slo:{line}": _BANDWIDTH_IN_PERCENT_TEXT for line in _NODE_SLO_LINES},
}


def of(file: str) -> dict[str, str]:
    """Return the cases of one file that differ, without the fields."""
    return {case: why for case, why in DIFFERENCES.items() if case.startswith(f"{file}:")}
