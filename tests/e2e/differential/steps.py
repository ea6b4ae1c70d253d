"""One request of a differential test, and the values that each plane fills in itself."""

import dataclasses
from collections.abc import Callable
from typing import Any

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclasses.dataclass(frozen=True)
class Step:
    """A request; `subject` is the path of the object that it is about."""

    what: str
    """The shape of the request, as the list of differences names it."""
    method: str
    path: str
    subject: str = ""
    body: Any = None
    """A JSON value, bytes, or a function of the object as the plane has it now."""
    query: tuple[tuple[str, str], ...] = ()
    media: str = JSON
    watch: bool = False

    def filled(self, current: dict[str, Any] | None) -> Any:
        """The body for a plane where the subject looks like this."""
        return self.body(current or {}) if callable(self.body) else self.body

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.query)
        return f"{self.what}: {self.method} {self.path}{'?' if query else ''}{query}"


Change = Callable[[dict[str, Any]], Any]
