"""Values that break readers, and documents with such values in places drawn by chance."""

import copy
import json

DEEP = "[" * 5000 + "]" * 5000
BOTTOMLESS = b"[" * 300_000 + b"]" * 300_000
"""Deeper than any version of Python lets msgspec go."""


def nested(levels):
    found = "bottom"
    for _ in range(levels):
        found = {"x": [found]}
    return found


HOSTILE = (
    None, True, -1, 0, 1 << 80, -1e308, float("inf"), float("nan"), "", "\x1b[2J\x1b]0;x\x07",
    "[/foo]", "\x9b31m", "\u202e", "\ud800", "a\nok fine", "1e999999", "0x10", "9" * 400, "{}",
    "[1]", DEEP, json.dumps(nested(90)), "null", [], {}, [None], {"": None}, [[]], [1, "x", {}],
    {"x": {"y": {"z": []}}}, nested(300), b"bytes".hex(), "2026-99-99T99:99:99Z", 253402300800,
)  # fmt: skip


def places(thing, path=()):
    """Yield every place inside a document, not those deep inside hostile values."""
    if len(path) > 12:
        return
    if path:
        yield path
    items = thing.items() if isinstance(thing, dict) else ()
    items = enumerate(thing) if isinstance(thing, list) else items
    for key, inner in items:
        yield from places(inner, (*path, key))


def walked(document, path):
    """Yield what lies on the way to a place."""
    for key in path:
        document = document[key]
        yield document


def broken(document, rng):
    """Return a copy with some values replaced by hostile ones, or taken away."""
    found = copy.deepcopy(document)
    for _ in range(rng.randint(1, 4)):
        choices = list(places(found))
        if not choices:
            return found
        *path, last = rng.choice(choices)
        if any(holder is value for value in HOSTILE for holder in walked(found, path)):
            continue
        holder = found
        for key in path:
            holder = holder[key]
        if rng.random() < 0.1:
            del holder[last]
        else:
            holder[last] = rng.choice(HOSTILE)
    return found
