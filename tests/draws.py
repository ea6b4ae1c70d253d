"""How many examples a property draws that needs more than the profile's."""

import hypothesis


def at_least(count: int) -> int:
    """Return this number, or that of the profile where it is larger, as in `make explore`."""
    return max(count, hypothesis.settings.default.max_examples)
