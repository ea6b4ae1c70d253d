"""Who called what, as the API server wrote it down."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Call:
    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    message: str = ""
    """Why it failed: what admission refuses has the code of what no role allows."""


def mark(path):
    """Where the log ends now, to read on from there."""
    return path.stat().st_size if path.exists() else 0


def read(path, start=0):
    """Return every call in the order of its first record; the last record has its answer."""
    calls = {}
    with path.open("rb") as log:
        log.seek(start)
        for line in log:
            if line.endswith(b"\n"):
                event = json.loads(line)
                calls[event["auditID"]] = _call(event)
    return list(calls.values())


def _call(event):
    target = event.get("objectRef") or {}
    impersonated = event.get("impersonatedUser") or {}
    return Call(
        user=impersonated.get("username") or event["user"].get("username", ""),
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        message=(event.get("responseStatus") or {}).get("message", ""),
    )
