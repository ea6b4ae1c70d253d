"""Bodies in YAML, which clients mostly write as JSON."""

from typing import Any

import orjson
import yaml

# The one in C reads a definition in a tenth of the time; some builds of the library lack it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(body: bytes) -> Any:
    """Read one document; raises yaml.YAMLError."""
    if body[:1] == b"{":
        try:
            return orjson.loads(body)
        except ValueError:
            pass  # Braces are YAML as well.
    return yaml.load(body, Loader=_Loader)  # noqa: S506 - a SafeLoader, whichever it is
