"""LinuxContainerResources: which values of a hook server's response count. Pure."""

from collections.abc import Mapping
from typing import Any, Final

_POSITIVE: Final = (
    *("cpu_period", "cpu_shares", "memory_limit_in_bytes", "memory_swap_limit_in_bytes"),
)
_TEXTS: Final = ("cpuset_cpus", "cpuset_mems")
_NUMBERS: Final = (*_POSITIVE, "cpu_quota", "oom_score_adj")
WORST_OOM_SCORE: Final = 1000


def take(base: Any, given: Any) -> None:
    """Take what an update of the kubelet sets; what is empty stays as it was."""
    for name in (*_POSITIVE, "cpu_quota", *_TEXTS):
        value = getattr(given, name)
        if value if name in _TEXTS or name == "cpu_quota" else value > 0:
            setattr(base, name, value)
    for key in given.unified:
        base.unified[key] = given.unified[key]


def take_json(base: Any, given: object) -> None:
    """Take resources as a runtime writes them in JSON."""
    if not isinstance(given, dict):
        return
    for name in _NUMBERS:
        value = given.get(name)
        if isinstance(value, int | str) and str(value).lstrip("-").isdigit():
            setattr(base, name, int(value))
    for name in _TEXTS:
        if isinstance(given.get(name), str):
            setattr(base, name, given[name])


def changes(shown: Any, given: Any) -> Mapping[str, Any]:
    """Return what a hook server changes of the resources that it was shown, by field.

    CPU lists count also where they are empty, which clears them; an OOM score where it is sent.
    """
    found: dict[str, Any] = {name: getattr(given, name) for name in _TEXTS}
    found |= {name: getattr(given, name) for name in _POSITIVE if getattr(given, name) > 0}
    if given.cpu_quota:
        found["cpu_quota"] = given.cpu_quota
    if given.HasField("oom_score_adj") and abs(given.oom_score_adj) <= WORST_OOM_SCORE:
        found["oom_score_adj"] = given.oom_score_adj
    found = {name: value for name, value in found.items() if value != getattr(shown, name)}
    unified = {
        key: given.unified[key]
        for key in given.unified
        if key not in shown.unified or shown.unified[key] != given.unified[key]
    }
    return {**found, "unified": unified} if unified else found


def apply(base: Any, changed: Mapping[str, Any]) -> None:
    """Set such changes."""
    for name, value in changed.items():
        if name == "unified":
            for key, one in value.items():
                base.unified[key] = one
        else:
            setattr(base, name, value)
