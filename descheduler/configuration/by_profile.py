"""What differs by profile, looked up by the name that a PodMigrationJob carries. Pure."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclasses.dataclass(frozen=True, slots=True)
class ByProfile(Generic[T]):
    """A value for the jobs of each profile.

    The name stands on a job, where people may write anything: it is compared with those of the
    file and never repeated.
    """

    otherwise: T
    """For jobs that name no profile, or one that the file does not have."""
    named: Mapping[str, T] = dataclasses.field(default_factory=dict)

    def of(self, profile: str) -> T:
        """Return the value of a profile."""
        return self.named.get(profile, self.otherwise)

    def all(self) -> tuple[T, ...]:
        """Return the values of all profiles."""
        return (self.otherwise, *self.named.values())

    def mapped(self, change: Callable[[T], U]) -> "ByProfile[U]":
        """Return what each value becomes."""
        named = {name: change(one) for name, one in self.named.items()}
        return ByProfile(change(self.otherwise), named)
