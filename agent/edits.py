"""Edit and Eviction: what a decision asks the shell to do."""

import dataclasses
import enum


class Role(enum.StrEnum):
    """Which property of a control group is meant, whatever its file is called."""

    CPUSET = "cpuset"
    CPU_QUOTA = "cpu-quota"


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """A wanted value for one property of one group.

    The value is a cpu list, or microseconds per 100 ms period with -1 for no limit. None asks to
    put back what stood there before us, which is nothing to do where we never wrote.
    """

    role: Role
    group: str
    value: str | None
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to leave this node."""

    namespace: str
    name: str
    uid: str
    reason: str
