"""What replaces names in one snapshot: the same name has the same substitute. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from api import names
from cli.snapshot import projection

Raw = dict[str, Any]

_QUOTA_LABELS: Final = frozenset({names.LABEL_QUOTA_NAME, names.LABEL_QUOTA_PARENT})
_GANG_LABELS: Final = frozenset({names.LABEL_POD_GROUP, names.LABEL_POD_GROUP_OLD})
_FIXED: Final = frozenset({"true", "false", "linux", "windows", "amd64", "arm64", "default", ""})
"""Values that name no person and no team."""
_KEPT_NAMESPACES: Final = frozenset({"default", "kube-system", names.NAMESPACE})
_PAIRS: Final = ("matchLabels", "reservationSelector")
"""Fields of selectors that map labels to values."""
_NUMBERS: Final = frozenset("-0123456789")


class Names:
    """Substitutes given so far, by kind of name."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._count: dict[str, int] = {}

    def of(self, kind: str, name: str) -> str:
        """Return the substitute of a name of such a kind."""
        if not name or (kind == "quota" and name in names.RESERVED_QUOTAS):
            return name
        if kind in {"namespace", "network"} and name in _KEPT_NAMESPACES:
            return name
        if kind == "class" and name.startswith(("system-", "koord-")):
            return name
        found = self._given.get((kind, name))
        if found is None:
            self._count[kind] = self._count.get(kind, 0) + 1
            found = self._given[kind, name] = f"{kind}-{self._count[kind]}"
        return found

    def value(self, key: str, value: str) -> str:
        """Return the substitute of a label's value."""
        if key in _QUOTA_LABELS:
            return self.of("quota", value)
        if key in _GANG_LABELS:
            return self.of("gang", value)
        if key == names.LABEL_STAND_IN:
            return self.of("reservation", value)
        if value in _FIXED or set(value) <= _NUMBERS:
            return value
        if key == "kubernetes.io/hostname":
            return self.of("node", value)
        if key == "kubernetes.io/metadata.name":
            return self.of("namespace", value)
        if projection.ours(key) and key != names.LABEL_QUOTA_TREE:
            return value
        return self.of("value", value)


def reference(kind: str, one: Mapping[str, Any], given: Names) -> Raw:
    """Rename what refers to an object by name, namespace and uid."""
    found = dict(one)
    for key, as_kind in (("name", kind), ("namespace", "namespace"), ("uid", "uid")):
        if isinstance(found.get(key), str):
            found[key] = given.of(as_kind, found[key])
    return found


def selectors(part: Any, given: Names, kind: str = "node") -> Any:
    """Rename the values inside selectors, at any depth; `metadata.name` is of such a kind."""
    if isinstance(part, (list, tuple)):
        return [selectors(inner, given, kind) for inner in part]
    if not isinstance(part, Mapping):
        return part
    found: Raw = {}
    for key, inner in part.items():
        if key in _PAIRS and isinstance(inner, Mapping):
            found[key] = {k: given.value(k, str(v)) for k, v in inner.items()}
        elif key == "namespaces" and isinstance(inner, list):
            found[key] = [given.of("namespace", str(name)) for name in inner]
        elif key == "values" and isinstance(inner, list):
            label = str(part.get("key", ""))
            found[key] = [_selected(label, str(value), given, kind) for value in inner]
        else:
            found[key] = selectors(inner, given, kind)
    return found


def _selected(label: str, value: str, given: Names, kind: str) -> str:
    return given.of(kind, value) if label == "metadata.name" else given.value(label, value)
