"""What is wrong and what is doubtful in a document, gathered while it is read."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from domain.cluster_settings.value_limits import Fault, shown
from domain.scheduler_settings import known_names

_LONGEST_NAME: Final = 80
_LONGEST_LIST: Final = 256
_MOST: Final = 32
"""Fields of one object that are looked up among the known names."""
_OLDER: Final = frozenset({"v1beta1", "v1beta2", "v1beta3"})


class Notes:
    """Faults, which void the document, and warnings, which do not."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def fault(self, path: str, note: str) -> None:
        """Note something that must not be stored."""
        self.faults.append(Fault(path, note))

    def warn(self, path: str, note: str) -> None:
        """Note something that is legal and probably not meant."""
        self.warnings.append(Fault(path, note))

    def mapping(self, path: str, value: Any) -> dict[str, Any] | None:
        """Return an object, an empty one for null; None with a fault for anything else."""
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        self.fault(path, f"is {shown(value)}; write an object")
        return None

    def sequence(self, path: str, value: Any) -> list[Any]:
        """Return a list, an empty one for null and, with a fault, for anything else."""
        if isinstance(value, list) and len(value) > _LONGEST_LIST:
            self.fault(
                path, f"has {len(value)} entries, more than the {_LONGEST_LIST} that are read"
            )
            return []
        if isinstance(value, list):
            return value
        if value is not None:
            self.fault(path, f"is {shown(value)}; write a list")
        return []

    def fields(self, path: str, value: Mapping[str, Any], known: Iterable[str]) -> None:
        """Look for fields that do not exist: a misspelt one is a fault, a strange one a doubt."""
        names = frozenset(known)
        unknown = sorted(value.keys() - names)
        if len(unknown) > _MOST:
            self.fault(path, f"has {len(unknown)} fields that do not exist; remove them")
            return
        for name in unknown:
            here, close = f"{path}.{name[:_LONGEST_NAME]}", known_names.meant(name, names)
            if close is not None:
                self.fault(here, f"does not exist; did you mean {close}?")
            else:
                self.warn(here, "is unknown and ignored; remove it")

    def type(self, path: str, value: Mapping[str, Any], api_version: str, kind: str) -> None:
        """Hold the type that an object says it has against the one that it must have."""
        said = value.get("kind", kind)
        if said != kind:
            self.fault(f"{path}.kind", f"is {shown(said)}, must be {kind}")
        said = value.get("apiVersion", api_version)
        group = api_version.partition("/")[0]
        if isinstance(said, str) and said in {f"{group}/{version}" for version in _OLDER}:
            self.warn(f"{path}.apiVersion", f"is {said}, which is deprecated; write {api_version}")
        elif said != api_version:
            self.fault(f"{path}.apiVersion", f"is {shown(said)}, must be {api_version}")
