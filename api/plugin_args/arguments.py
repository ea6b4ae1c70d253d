"""What the arguments of every plug-in are made of.

Readers of documents validate strictly; settings files, flags and variables hold the same
models with numbers that may be texts.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

import pydantic
from pydantic import Field

from api.wire import base

Percent = Annotated[int, Field(ge=0, le=100)]
Weight = Annotated[int, Field(ge=1, le=100)]
Seconds = Annotated[int, Field(ge=0, le=2**63 - 1)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Duration = Annotated[base.Duration, Field(ge=0)]
"""Seconds, or a text such as 5m."""
Aggregation = Literal["", "avg", "p50", "p90", "p95", "p99"]


class Arguments(base.Model):
    """Arguments of one plug-in; a field that does not exist is an error."""

    model_config = pydantic.ConfigDict(extra="forbid")

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Fields that nothing reads, each with what holds instead; kept so that documents are read."""

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        return self

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        for field, known in type(self).model_fields.items():
            path, value = str(known.alias or field), getattr(self, field)
            instead = self.without_effect.get(field)
            if instead and value != known.get_default(call_default_factory=True):
                yield path, f"has no effect, {instead}; leave it out"
            elif not instead and isinstance(value, Arguments):
                for inner, doubt in value.doubts():
                    yield f"{path}.{inner}", doubt
