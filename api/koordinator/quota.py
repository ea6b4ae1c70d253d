"""ElasticQuota in its three groups, folded into one quota, and ElasticQuotaProfile."""

import contextlib
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Final

import msgspec
import pydantic
from pydantic import Field

from api import names, resources
from api.koordinator import resource_names
from api.koordinator.metadata import annotations
from api.kubernetes import meta
from api.wire import base, quantity

_RATIO_PATTERN: Final = r"^(0*\.[0-9]*[1-9][0-9]*|0*1(\.0*)?)$"
_RATIO: Final = re.compile(_RATIO_PATTERN, re.ASCII)
_MOST_RESOURCES: Final = 512
"""Resources of a quota; all of them are looked at whenever anything about the quota changes."""
_LONGEST_RATIO: Final = 64
"""Characters; trying the pattern on a text takes time by the square of its length."""


def _guaranteed_is_allowed(*ceilings: str) -> pydantic.ConfigDict:
    """Return the rule that every resource of min is named by one of these fields."""
    named = " || ".join(f"(has(self.{field}) && key in self.{field})" for field in ceilings)
    message = f"every resource of min must stand in {' or '.join(ceilings)} as well"
    rule: dict[str, pydantic.JsonValue] = {
        "rule": f"!has(self.min) || self.min.all(key, {named})",
        "message": message,
    }
    return pydantic.ConfigDict(json_schema_extra={"x-kubernetes-validations": [rule]})


_Listed = Annotated[base.ResourceList, Field(max_length=_MOST_RESOURCES)]


class PlainSpec(base.Model):
    """What a quota guarantees and allows."""

    model_config = _guaranteed_is_allowed("max")

    min: _Listed = Field(default={})
    """Amounts that are guaranteed."""
    max: _Listed = Field(default={})
    """Amounts that are never exceeded."""


class BorrowedStatus(base.Model):
    """What a quota's pods have used beyond its minimum, with a half-life."""

    time: base.Moment | None = None
    """When the amounts were counted."""
    amount_seconds: base.ResourceList = Field(default={})
    """Amounts times seconds, half of which is forgotten in every half-life."""


class PlainStatus(base.Model):
    """What a quota's pods use."""

    used: base.ResourceList = Field(default={})
    """Requests of its scheduled pods."""
    borrowed: BorrowedStatus = BorrowedStatus()
    """What they have used beyond the minimum, where a half-life is set."""
    conditions: Annotated[tuple[meta.LooseCondition, ...], Field(max_length=64)] = ()
    """Observed facts."""


class PlainElasticQuota(meta.Object):
    """A share of the cluster; more is said in labels and annotations."""

    spec: PlainSpec = PlainSpec()
    """What it guarantees and allows."""
    status: PlainStatus = PlainStatus()
    """What its pods use."""


class ShortSpec(PlainSpec):
    """What a quota guarantees and allows."""

    model_config = _guaranteed_is_allowed("max", "hard")

    hard: _Listed = Field(default={})
    """Ceiling; the smaller of hard and max counts."""
    priority: base.Int32 = 0
    """Who borrows idle resources first; larger goes before smaller."""


class ShortStatus(PlainStatus):
    """What a quota's pods may use and do use."""

    allocated_quota: base.ResourceList = Field(default={})
    """Amounts that are usable now; they grow with what its pods ask for."""
    pod_allocated_quota: base.ResourceList = Field(default={})
    """Amounts given to pods."""


class ShortElasticQuota(meta.Object):
    """A share of the cluster for the pods of its namespace."""

    spec: ShortSpec = ShortSpec()
    """What it guarantees and allows."""
    status: ShortStatus = ShortStatus()
    """What its pods may use and do use."""


class Quota(msgspec.Struct, frozen=True, gc=False):
    """One ElasticQuota, whichever group it was written in; amounts as ``quantity.amount`` counts.

    `weight` are the fair-share weights that its author states, which may be none (`weight_of`).
    `total` is what a tree shares out (``total-resource`` of its root), `admission` the limit that
    admission uses in place of max (None: max), `strict` the resources whose max may not fall below
    what is used, `created_at` seconds since the epoch (0 where unknown), `unreadable` the keys of
    annotations that count as absent because they cannot be read. `borrowed` are amounts times
    seconds at the moment `borrowed_at`, as the status says them.
    """

    name: str
    namespace: str
    resource: resources.Resource
    minimum: Mapping[str, int]
    maximum: Mapping[str, int]
    hard: Mapping[str, int]
    weight: Mapping[str, int]
    used: Mapping[str, int]
    priority: int = 0
    parent: str = names.ROOT_QUOTA
    tree: str = ""
    profile: str = ""
    namespaces: tuple[str, ...] = ()
    is_parent: bool = False
    is_root: bool = False
    lends: bool = True
    ignores_default_tree: bool = False
    forced: bool = False
    total: Mapping[str, int] = {}
    admission: Mapping[str, int] | None = None
    strict: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    borrowed: Mapping[str, int] = {}
    borrowed_at: float = 0.0
    created_at: float = 0.0
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """Return ``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def identity(self) -> str:
        """Return ``group/namespace/name``, by which objects of the three groups differ."""
        return f"{self.resource.group}/{self.namespace}/{self.name}"

    @property
    def cap(self) -> dict[str, int]:
        """Return the most that may be used: the smaller of max and hard, by resource."""
        both = {**self.maximum, **self.hard}
        return {name: min(value, self.maximum.get(name, value)) for name, value in both.items()}

    def weight_of(self, resource: str) -> int:
        """Return the fair-share weight in one resource: as stated, else as much as max, else hard.

        A resource without a weight would never get more than its minimum, so one that is added to
        the bounds after weights were stated has to count.
        """
        stated = self.weight.get(resource)
        if stated is not None:
            return stated
        return self.maximum.get(resource, self.hard.get(resource, 0))


class ProfileSpec(base.Model):
    """Which quota is kept, and for which nodes."""

    quota_name: base.Name
    """Name of the root quota to keep, in the profile's namespace."""
    quota_labels: dict[str, base.Text] = Field(default={})
    """Labels given to that quota."""
    resource_ratio: base.Text | None = Field(
        default=None, json_schema_extra={"pattern": _RATIO_PATTERN}
    )
    """Share of the nodes' resources, as text above 0 and up to 1; all of them when unset."""
    node_selector: meta.LabelSelector
    """Nodes whose allocatable resources are summed."""


class ProfileStatus(base.Model):
    """Which quota is kept, and from which nodes."""

    quota_name: base.Text = ""
    """Name of the quota that is kept."""
    nodes: base.Int32 = 0
    """Nodes that are selected."""
    guaranteed: base.ResourceList = Field(default={})
    """What the quota guarantees: the sum of these nodes, times the ratio."""
    conditions: Annotated[tuple[meta.Condition, ...], Field(max_length=64)] = ()
    """Accepted, NodesSelected, Ready."""


class ElasticQuotaProfile(meta.Object):
    """Keeps a root quota as large as a group of nodes."""

    spec: ProfileSpec
    """Which quota is kept, and for which nodes."""
    status: ProfileStatus = ProfileStatus()
    """Which quota is kept, and from which nodes."""

    @property
    def ratio(self) -> Fraction:
        """Return the share of the nodes' resources, 1 where none or no valid one is given."""
        written = self.spec.resource_ratio
        return Fraction(written) if written and _is_ratio(written) else Fraction(1)


def _is_ratio(text: str) -> bool:
    return len(text) <= _LONGEST_RATIO and _RATIO.fullmatch(text) is not None


def read_elastic_quota_profile(raw: Mapping[str, Any]) -> ElasticQuotaProfile:
    """Read an ElasticQuotaProfile."""
    return review_elastic_quota_profile(raw).value


def review_elastic_quota_profile(raw: Mapping[str, Any]) -> base.Read[ElasticQuotaProfile]:
    """Read an ElasticQuotaProfile and report a ratio that is ignored.

    Whatever stands in its status must not keep it from being followed; the status read is empty.
    """
    profile = base.read(ElasticQuotaProfile, {**raw, "status": {}})
    written = profile.spec.resource_ratio
    if written is None or _is_ratio(written):
        return base.Read(profile)
    shown = written[:_LONGEST_RATIO]
    return base.Read(
        profile, (f'spec.resourceRatio: "{shown}" is no ratio above 0 and up to 1; 1 is used',)
    )


def read_elastic_quota(raw: Mapping[str, Any]) -> Quota:
    """Read an ElasticQuota of any group."""
    return review_elastic_quota(raw).value


def review_elastic_quota(raw: Mapping[str, Any]) -> base.Read[Quota]:
    """Read an ElasticQuota of any group and report what its author has probably overlooked."""
    resource = _resource(raw)
    if resource is resources.ELASTIC_QUOTAS:
        return _review_plain(_validated(PlainElasticQuota, raw))
    return _review_short(_validated(ShortElasticQuota, raw), resource)


def review_written(raw: Mapping[str, Any]) -> base.Read[Quota]:
    """Read what the author of an ElasticQuota wrote, and the counters of what it has borrowed.

    Whatever stands in its status must not keep the quota itself from being read; `used` is empty.
    """
    status = raw.get("status")
    borrowed = status.get("borrowed") if isinstance(status, Mapping) else None
    if borrowed is not None:
        with contextlib.suppress(base.ReadError):
            return review_elastic_quota({**raw, "status": {"borrowed": borrowed}})
    return review_elastic_quota({**raw, "status": {}})


def _resource(raw: Mapping[str, Any]) -> resources.Resource:
    version = raw.get("apiVersion", resources.ELASTIC_QUOTAS.api_version)
    for resource in resources.QUOTA_RESOURCES:
        if version == resource.api_version:
            return resource
    accepted = ", ".join(item.api_version for item in resources.QUOTA_RESOURCES)
    raise base.ReadError(f"ElasticQuota: apiVersion: {version} is not one of {accepted}")


def _validated(model: type[base.M], raw: Mapping[str, Any]) -> base.M:
    name = base.section(raw, "metadata").get("name", "")
    return base.validated(model, raw, f"ElasticQuota {name}".rstrip())


def amounts(written: Mapping[str, quantity.Written]) -> dict[str, int]:
    """Read a resource list under present names."""
    return quantity.amounts(resource_names.current(written))


def _review_plain(written: PlainElasticQuota) -> base.Read[Quota]:
    extra, warnings = written.metadata.annotations, list[str]()
    quota = _common(written.metadata, resources.ELASTIC_QUOTAS, written.spec, written.status)
    return base.Read(
        msgspec.structs.replace(
            quota,
            weight=_weight(extra, warnings),
            namespaces=_namespaces(extra, warnings),
            **_annotated(extra, warnings),
        ),
        tuple(warnings),
    )


def _review_short(written: ShortElasticQuota, resource: resources.Resource) -> base.Read[Quota]:
    warnings: list[str] = []
    quota = _common(written.metadata, resource, written.spec, written.status)
    hard = amounts(written.spec.hard)
    warnings += [
        f"spec.hard.{name}: below spec.max.{name}, so the quota stops at spec.hard"
        for name, value in hard.items()
        if value < quota.maximum.get(name, value)
    ]
    extra = written.metadata.annotations
    bound = _namespaces(extra, warnings) or (written.metadata.namespace,)
    quota = msgspec.structs.replace(
        quota,
        hard=hard,
        priority=written.spec.priority,
        weight=_weight(extra, warnings),
        namespaces=bound,
        **_annotated(extra, warnings),
    )
    return base.Read(quota, tuple(warnings))


def _common(
    metadata: meta.Meta, resource: resources.Resource, spec: PlainSpec, status: PlainStatus
) -> Quota:
    labels = metadata.labels
    return Quota(
        name=metadata.name,
        namespace=metadata.namespace,
        resource=resource,
        minimum=amounts(spec.min),
        maximum=amounts(spec.max),
        hard={},
        weight={},
        used=amounts(status.used),
        borrowed=amounts(status.borrowed.amount_seconds),
        borrowed_at=status.borrowed.time or 0.0,
        parent=labels.get(names.LABEL_QUOTA_PARENT) or names.ROOT_QUOTA,
        tree=labels.get(names.LABEL_QUOTA_TREE, ""),
        profile=labels.get(names.LABEL_QUOTA_PROFILE, ""),
        is_parent=labels.get(names.LABEL_QUOTA_IS_PARENT) == "true",
        is_root=labels.get(names.LABEL_QUOTA_IS_ROOT) == "true",
        lends=labels.get(names.LABEL_QUOTA_LENT) != "false",
        ignores_default_tree=labels.get(names.LABEL_QUOTA_IGNORE_DEFAULT_TREE) == "true",
        forced=labels.get(names.LABEL_QUOTA_FORCE_UPDATE) == "true",
        created_at=metadata.creation_timestamp or 0.0,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def _annotated(written: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    """Return the fields of optional annotations; one that cannot be read counts as absent."""
    found: dict[str, Any] = {}
    unreadable: list[str] = []
    fields: tuple[tuple[str, annotations.Payload[Any], Callable[[Any], Any]], ...] = (
        ("total", annotations.QUOTA_TOTAL, amounts),
        ("admission", annotations.QUOTA_ADMISSION, amounts),
        ("strict", annotations.QUOTA_STRICT_KEYS, tuple),
    )
    for field, payload, read in fields:
        if not written.get(payload.key):
            continue
        try:
            given = payload.read(written)
            value = read(given) if given else None
        except base.ReadError as error:
            unreadable.append(payload.key)
            warnings.append(f"{error}; it is ignored")
        else:
            found |= {field: value} if value else {}
    return found | {"unreadable": tuple(unreadable)}


def _weight(written: Mapping[str, str], warnings: list[str]) -> Mapping[str, int]:
    """Return the fair-share weights that are stated; none where all of them are 0."""
    if not written.get(names.ANNOTATION_QUOTA_WEIGHT):
        return {}
    try:
        weight = amounts(annotations.QUOTA_WEIGHT.read(written) or {})
    except base.ReadError as error:
        warnings.append(f"{error}; the maximum is used as weight")
        return {}
    return weight if any(weight.values()) else {}


def _namespaces(written: Mapping[str, str], warnings: list[str]) -> tuple[str, ...]:
    if not written.get(names.ANNOTATION_QUOTA_NAMESPACES):
        return ()
    try:
        return annotations.QUOTA_NAMESPACES.read(written) or ()
    except base.ReadError as error:
        warnings.append(f"{error}; no namespace is bound")
        return ()
