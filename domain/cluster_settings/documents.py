"""One key of the cluster settings as it is written: parsed, checked for shape, not merged.

Everything that looks at the configuration map starts here: who admits it and who acts on it.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pydantic

from api.koordinator.settings import configuration
from api.kubernetes import meta
from api.wire import base
from domain.cluster_settings import value_limits
from domain.cluster_settings.value_limits import Fault, shown

CHECKED: Final = (
    configuration.COLOCATION,
    configuration.RESOURCE_THRESHOLD,
    configuration.RESOURCE_QOS,
    configuration.SYSTEM,
    configuration.CPU_BURST,
    configuration.POD_OVERRIDE_LIMITS,
)
"""Keys whose values have limits, in the order in which they are looked at."""
FLAT: Final = frozenset(
    {
        configuration.COLOCATION,
        configuration.HOST_APPLICATION,
        configuration.CPU_NORMALIZATION,
        configuration.RESOURCE_AMPLIFICATION,
    }
)
"""Keys whose settings for the cluster stand at the top level, beside their entries."""
_SELECTOR: Final = "nodeSelector"
_DEEPEST: Final = 64
_RANGES: Final = {
    "greater_than_equal": ("ge", "at least {}"),
    "less_than_equal": ("le", "at most {}"),
    "literal_error": ("expected", "one of {}"),
}


class Unreadable(ValueError):  # noqa: N818 - says what it means; the message is the faults
    """A document of which nothing can be used."""

    def __init__(self, *faults: Fault, limits: bool = False) -> None:
        """`limits`: every type is right, only values are out of range."""
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = faults
        self.limits = limits


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Settings for some nodes."""

    path: str
    name: str
    selector: meta.LabelSelector | None
    """None selects nothing; what cannot be read selects nothing either and has a fault."""
    fault: Fault | None
    values: Mapping[str, Any]

    @property
    def selects_all(self) -> bool:
        """Whether the selector is there and names no condition."""
        chosen = self.selector
        return chosen is not None and not (chosen.match_labels or chosen.match_expressions)


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """The value of one key: what is said for the cluster and for some nodes, nothing added."""

    key: str
    cluster: Mapping[str, Any] | None
    """None where nothing at all is said for the cluster."""
    entries: tuple[Entry, ...] = ()

    @property
    def cluster_path(self) -> str:
        """Where the settings of the cluster stand."""
        return self.key if self.key in FLAT else f"{self.key}.clusterStrategy"

    def parts(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield every set of values with the path where it stands."""
        if self.cluster is not None:
            yield self.cluster_path, self.cluster
        for entry in self.entries:
            yield entry.path, entry.values


def parse(key: str, written: str) -> Document:
    """Read the value of one key; an Unreadable names every fault by its path."""
    raw = _decoded(key, written)
    if raw is None:
        return Document(key, None)
    chosen = _selectors(key, raw)
    try:
        model = configuration.MODELS[key].model_validate(raw, context=base.ANY_CASE)
    except pydantic.ValidationError as error:
        raise _unreadable(key, error) from error
    wire = model.wire()
    entries = wire.pop(_place(key), [])
    found = tuple(
        Entry(f"{key}.{_place(key)}[{index}]", values.pop("name", ""), *selector, values)
        for index, (values, selector) in enumerate(zip(entries, chosen, strict=True))
    )
    return Document(key, wire if key in FLAT else wire.get("clusterStrategy"), found)


def _place(key: str) -> str:
    return "nodeConfigs" if key in FLAT else "nodeStrategies"


def _decoded(key: str, written: str) -> Any:
    try:
        raw = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        where = "is empty" if not written.strip() else f"is not JSON: {error}"
        note = f"{where}; write a JSON object such as {{}}, or remove the key for the defaults"
        raise Unreadable(Fault(key, note)) from error
    if _is_deep(raw):
        note = f"is nested more than {_DEEPEST} levels deep; write it flatter"
        raise Unreadable(Fault(key, note))
    return raw


def _is_deep(raw: Any) -> bool:
    level = [raw]
    for _ in range(_DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _selectors(key: str, raw: Any) -> list[tuple[meta.LabelSelector | None, Fault | None]]:
    """Take the selectors out of a document, so that a bad one costs its entry and no more."""
    place = _place(key)
    entries = _found(raw, place)
    chosen: list[tuple[meta.LabelSelector | None, Fault | None]] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        path = f"{key}.{place}[{index}].nodeSelector"
        chosen.append(_selector(path, entry) if isinstance(entry, dict) else (None, None))
    return chosen


def _selector(path: str, entry: dict[str, Any]) -> tuple[meta.LabelSelector | None, Fault | None]:
    written = _found(entry, _SELECTOR)
    for name in [name for name in entry if name.casefold() == _SELECTOR.casefold()]:
        del entry[name]
    if written is None:
        return None, None
    try:
        return meta.LabelSelector.model_validate(written, context=base.ANY_CASE), None
    except pydantic.ValidationError as error:
        note = f"{shown(written)} is no label selector: {base.explained(error)}"
        return None, Fault(path, f"{note}; write matchLabels or matchExpressions")


def _found(raw: Any, name: str) -> Any:
    """Return what stands under a name, spelled so if possible, else in whatever case."""
    if not isinstance(raw, dict):
        return None
    folded = (value for key, value in raw.items() if key.casefold() == name.casefold())
    return (
        raw[name] if raw.get(name) is not None else next((v for v in folded if v is not None), None)
    )


def _unreadable(key: str, error: pydantic.ValidationError) -> Unreadable:
    problems = error.errors(include_url=False)
    faults = tuple(_fault(key, problem) for problem in problems)
    return Unreadable(*faults, limits=all(problem["type"] in _RANGES for problem in problems))


def _fault(key: str, problem: Any) -> Fault:
    path = base.dotted([key, *problem["loc"]])
    value = shown(problem["input"])
    if problem["type"] in _RANGES:
        name, text = _RANGES[problem["type"]]
        allowed = value_limits.allowed(key, problem["loc"][-1])
        must = allowed or text.format(problem["ctx"][name])
        return Fault(path, f"is {value}, must be {must}; correct it or leave it out")
    reason = problem["msg"].removeprefix("Value error, ")
    return Fault(path, f"is {value}: {reason}; correct it or leave it out")
