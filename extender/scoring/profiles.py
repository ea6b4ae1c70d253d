"""Read the configuration of the kube-scheduler that calls us into one scoring profile per name."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from api.kubernetes import scheduler_config
from domain.scoring import configuration, profile

UNKNOWN_VERSION: Final = "the version of kube-scheduler is not set"
UNREADABLE: Final = "the configuration of kube-scheduler cannot be read"
EMULATED: Final = "kube-scheduler emulates another version"

_VERSION: Final = re.compile(r"v?1\.(\d{1,3})(\D.*)?")
_GATES: Final = "--feature-gates"
_EMULATED: Final = ("--emulated-version", "--emulation-forward-compatible")


@dataclasses.dataclass(frozen=True, slots=True)
class Scheduler:
    """What is known of the kube-scheduler that calls us."""

    configuration: str
    """The text of its KubeSchedulerConfiguration."""
    version: str
    arguments: Sequence[str]
    url: str
    """Where its configuration calls us."""


@dataclasses.dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles by scheduler name, or why there are none."""

    by_name: Mapping[str, profile.ScoringProfile]
    problem: str = ""

    @property
    def resources(self) -> tuple[str, ...]:
        """Every resource that some profile scores, each once."""
        found = (name for one in self.by_name.values() for name in one.resources)
        return tuple(dict.fromkeys(found))

    def unsupported(self) -> str:
        """Return which profiles are never decided and why, empty if none."""
        reasons = (f"{name}: {one.unsupported}" for name, one in self.by_name.items())
        told = [text for text in reasons if not text.endswith(": ")]
        return "; ".join([self.problem] if self.problem else told)


def minor_of(version: str) -> int | None:
    """Return the minor version of Kubernetes in texts such as 1.36 or v1.36.3."""
    found = _VERSION.fullmatch(version.strip())
    return int(found[1]) if found else None


def read(scheduler: Scheduler) -> Profiles:
    """Return the profiles; what cannot be computed says so in each."""
    minor = minor_of(scheduler.version)
    if minor is None:
        return Profiles({}, UNKNOWN_VERSION)
    if any(one.partition("=")[0] in _EMULATED for one in scheduler.arguments):
        return Profiles({}, EMULATED)
    try:
        document = yaml.safe_load(scheduler.configuration)
    except yaml.YAMLError:
        return Profiles({}, UNREADABLE)
    if not isinstance(document, dict) or document.get("kind") != scheduler_config.KIND:
        return Profiles({}, UNREADABLE)
    surroundings = configuration.Surroundings(
        minor, scheduler.url, feature_gates(scheduler.arguments)
    )
    found = {name: configuration.read(document, name, surroundings) for name in _names(document)}
    return Profiles(found)


def _names(document: Mapping[str, Any]) -> Iterator[str]:
    profiles = document.get("profiles")
    if not isinstance(profiles, list) or not profiles:
        yield configuration.STOCK_PROFILE
        return
    for one in profiles:
        if isinstance(one, dict):
            yield str(one.get("schedulerName") or configuration.STOCK_PROFILE)


def feature_gates(arguments: Sequence[str]) -> dict[str, bool]:
    """Return what a command line says of feature gates."""
    return dict(_gates(arguments))


def _gates(arguments: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Read what the command line says of feature gates, with the value apart or after `=`."""
    for place, argument in enumerate(arguments):
        flag, equals, written = argument.partition("=")
        if flag != _GATES:
            continue
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        for pair in (written if equals else following).split(","):
            gate, _, value = pair.partition("=")
            yield gate.strip(), value.strip().lower() in ("true", "t", "1")
