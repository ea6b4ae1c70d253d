"""What the arguments of several plug-ins share: selectors, namespaces, priorities, amounts."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self

import pydantic
from pydantic import Field

from api.kubernetes import meta, selectors
from api.plugin_args.arguments import Arguments
from domain.pods import label_syntax

Percentage = Annotated[float, Field(ge=0, le=1e6)]
"""A percentage that may exceed 100, as the reference allows."""
Share = Annotated[float, Field(ge=0, le=100)]
Thresholds = Annotated[dict[str, Percentage], Field(max_length=64)]
Whole = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Name = Annotated[str, Field(min_length=1, max_length=253)]
Names = Annotated[tuple[Name, ...], Field(max_length=1000)]

_PERCENT: Final = re.compile(r"[0-9]{1,9}%")
_LABEL_REMEDY: Final = (
    'a key is up to 63 letters, digits, "-", "_" and ".", after an optional domain'
)
_VALUE_REMEDY: Final = 'a value is empty or up to 63 letters, digits, "-", "_" and "."'


def _int_or_percent(value: int | str) -> int | str:
    if isinstance(value, str) and _PERCENT.fullmatch(value) is None:
        raise ValueError('write a number such as 2, or a percentage such as "10%"')
    if isinstance(value, int) and value < 0:
        raise ValueError("must not be negative")
    return value


IntOrPercent = Annotated[int | str, pydantic.AfterValidator(_int_or_percent)]
"""A number, or a percentage such as `10%`."""


class Requirement(meta.Requirement):
    """A condition on one label."""

    model_config = pydantic.ConfigDict(extra="forbid")

    @pydantic.model_validator(mode="after")
    def _is_possible(self) -> Self:
        if not label_syntax.is_key(self.key):
            raise ValueError(f"key: {self.key[:80]} is no label; {_LABEL_REMEDY}")
        for value in self.values:
            if not label_syntax.is_value(value):
                raise ValueError(f"values: {value[:80]} is no value of a label; {_VALUE_REMEDY}")
        return self


class LabelSelector(meta.LabelSelector):
    """A LabelSelector, of which an unknown field is an error; an empty one selects everything."""

    model_config = pydantic.ConfigDict(extra="forbid")

    match_expressions: tuple[Requirement, ...] = Field(default=(), max_length=128)
    """Conditions that must all hold."""

    @pydantic.model_validator(mode="after")
    def _is_possible(self) -> Self:
        for key, value in self.match_labels.items():
            if not label_syntax.is_key(key):
                raise ValueError(f"matchLabels: {key[:80]} is no label; {_LABEL_REMEDY}")
            if not label_syntax.is_value(value):
                raise ValueError(f"matchLabels.{key}: {value[:80]} is no value; {_VALUE_REMEDY}")
        return self

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy the selector."""
        return selectors.matches(self, labels)


class Namespaces(Arguments):
    """Namespaces that are included, or that are excluded; not both."""

    include: Names = ()
    """Namespaces that count; all when empty."""
    exclude: Names = ()
    """Namespaces that do not count."""

    @pydantic.model_validator(mode="after")
    def _is_one_list(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("include and exclude are both given; keep one of them")
        return self

    def hold(self, namespace: str) -> bool:
        """Whether pods of a namespace count."""
        return namespace in self.include if self.include else namespace not in self.exclude


class ExcludedNamespaces(Namespaces):
    """Namespaces that are excluded; this plug-in takes no others."""

    @pydantic.model_validator(mode="after")
    def _excludes_only(self) -> Self:
        if self.include:
            raise ValueError("include is not supported here; name the others in exclude")
        return self


class PodSelector(Arguments):
    """Pods by labels, under a name for people."""

    name: str = ""
    """Name of the group of pods."""
    selector: LabelSelector | None = None
    """Labels of its pods; none when missing."""


class PriorityThreshold(Arguments):
    """A priority from which on pods stay, by value or by the name of a PriorityClass."""

    value: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None
    """Least priority of pods that stay."""
    name: str = ""
    """PriorityClass that has that value."""

    @pydantic.model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.value is not None and self.name:
            raise ValueError("value and name are both given; keep one of them")
        return self


class Selection(Arguments):
    """Which pods of which nodes a plug-in of Koordinator looks at."""

    paused: bool = False
    """Do nothing."""
    dry_run: bool = False
    """Decide and report, and move no pod."""
    node_selector: LabelSelector | None = None
    """Nodes that are looked at; all when missing."""
    evictable_namespaces: Namespaces | None = None
    """Namespaces whose pods may move."""
    pod_selectors: tuple[PodSelector, ...] = Field(default=(), max_length=64)
    """Pods that may move: those that any of the selectors selects; all when empty."""
    node_fit: bool = True
    """Move a pod only where another node takes it; `false`: a node that does is preferred."""

    def covers_node(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is looked at."""
        return self.node_selector is None or self.node_selector.selects(labels)

    @property
    def covers_all(self) -> bool:
        """Whether any pod may move."""
        return self.evictable_namespaces is None and not self.pod_selectors

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod with this namespace and these labels may move."""
        if self.evictable_namespaces is not None and not self.evictable_namespaces.hold(namespace):
            return False
        return not self.pod_selectors or any(
            one.selector is not None and one.selector.selects(labels) for one in self.pod_selectors
        )
