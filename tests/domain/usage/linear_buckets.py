"""Buckets of equal width, which recorded cases use as well."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True, slots=True)
class Linear:
    """Buckets of equal width."""

    largest: float
    width: float

    @property
    def count(self) -> int:
        """How many there are."""
        return math.ceil(self.largest / self.width) + 1

    def find(self, value: float) -> int:
        """Return the bucket of a value."""
        return min(max(0, int(value / self.width)), self.count - 1)

    def start(self, bucket: int) -> float:
        """Return the lowest value of a bucket."""
        return bucket * self.width
