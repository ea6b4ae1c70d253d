"""Which kinds are served: the built-in ones and those that custom resource definitions add."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api import resources
from simulator.apiserver.registry import schemas
from simulator.apiserver.storage import object_store

# Groups that every real API server has. What is missing in them is refused by name; any other
# unknown group is simply not found, as on a real cluster without that definition.
BUILT_IN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
GATED = frozenset({("scheduling.k8s.io", "podgroups"), ("scheduling.k8s.io", "workloads")})
"""Resources of these groups that a real API server does not serve unless a feature gate is on."""
_MADE_BY_UPDATE = frozenset(
    {
        ("", "events"),
        ("events.k8s.io", "events"),
        ("coordination.k8s.io", "leases"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
    }
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One served resource in one version."""

    resource: resources.Resource
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    singular: str = ""
    custom: bool = False
    schema: schemas.Schema | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    """Printer columns as a custom resource definition writes them."""
    conditional: bool = False
    """Whether an update has to name the version that it is based on."""
    unenforced: bool = False
    """Whether the kind can only be read, and is empty, because nothing here would enforce it."""

    @property
    def group(self) -> str:
        """API group, empty for the core."""
        return self.resource.group

    @property
    def plural(self) -> str:
        """Resource name in paths."""
        return self.resource.plural

    @property
    def name(self) -> str:
        """The kind as objects name it."""
        return self.resource.kind

    @property
    def namespaced(self) -> bool:
        """Whether objects live in a namespace."""
        return self.resource.namespaced

    @property
    def sort(self) -> object_store.Collection:
        """Where objects are stored; both groups of events are views of one collection."""
        if (self.group, self.plural) == ("events.k8s.io", "events"):
            return object_store.Collection("", "events")
        return object_store.Collection(self.group, self.plural)

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be done with objects of this kind."""
        reading = ("get", "list", "watch")
        writing = ("create", "delete", "deletecollection", "patch", "update")
        return reading if self.unenforced else tuple(sorted((*reading, *writing)))

    @property
    def made_by_update(self) -> bool:
        """Whether an update of an object that does not exist creates it."""
        return (self.group, self.plural) in _MADE_BY_UPDATE

    @property
    def has_status(self) -> bool:
        """Whether the status is written apart from the rest."""
        return "status" in self.subresources

    def stamp(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object as this version presents it."""
        rest = {key: inner for key, inner in value.items() if key not in ("apiVersion", "kind")}
        return {"apiVersion": self.resource.api_version, "kind": self.name, **rest}


class Registry:
    """All served kinds, by group, version and plural."""

    def __init__(self, built_in: Iterable[Kind]) -> None:
        self._kinds = {_place(kind): kind for kind in built_in}
        self._custom: dict[str, tuple[Kind, ...]] = {}

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that is served at a place, or None."""
        return self._kinds.get((group, version, plural))

    def kinds(self) -> list[Kind]:
        """Return every kind in a stable order."""
        return [self._kinds[place] for place in sorted(self._kinds)]

    def groups(self) -> dict[str, list[str]]:
        """Return the named groups with their versions, the preferred one first."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            if group and version not in found.setdefault(group, []):
                found[group].append(version)
        return {group: sorted(found[group], key=version_order) for group in sorted(found)}

    def define(self, name: str, kinds: tuple[Kind, ...]) -> None:
        """Serve the kinds of a custom resource definition instead of those it had before."""
        self.forget(name)
        self._custom[name] = kinds
        self._kinds.update({_place(kind): kind for kind in kinds})

    def forget(self, name: str) -> None:
        """Stop serving what a custom resource definition defined."""
        for kind in self._custom.pop(name, ()):
            self._kinds.pop(_place(kind), None)


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return a key that sorts v2 before v1 before v1beta1 before v1alpha1 before anything else."""
    number, stage, step = "", "", ""
    rest = version.removeprefix("v")
    for letter in rest:
        if letter.isdigit():
            if stage:
                step += letter
            else:
                number += letter
        else:
            stage += letter
    ranks = {"": 0, "beta": 1, "alpha": 2}
    if not version.startswith("v") or not number or stage not in ranks:
        return (3, 0, 0, version)
    return (ranks[stage], -int(number), -int(step or 0), version)


def _place(kind: Kind) -> tuple[str, str, str]:
    return (kind.group, kind.resource.version, kind.plural)


def _kind(
    resource: resources.Resource,
    short: str = "",
    *,
    sub: str = "",
    categories: str = "",
    unenforced: bool = False,
    conditional: bool = False,
) -> Kind:
    return Kind(
        resource,
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        subresources=frozenset(sub.split()),
        singular=resource.kind.lower(),
        unenforced=unenforced,
        conditional=conditional,
    )


BUILT_IN = (
    _kind(resources.PODS, "po", sub="status binding eviction", categories="all"),
    _kind(resources.NODES, "no", sub="status"),
    _kind(resources.NAMESPACES, "ns", sub="status"),
    _kind(resources.CONFIG_MAPS, "cm"),
    _kind(resources.SECRETS),
    _kind(resources.SERVICES, "svc", sub="status", categories="all"),
    _kind(resources.SERVICE_ACCOUNTS, "sa"),
    _kind(resources.RESOURCE_QUOTAS, "quota", unenforced=True),
    _kind(resources.LIMIT_RANGES, "limits", unenforced=True),
    _kind(resources.CORE_EVENTS, "ev"),
    _kind(resources.EVENTS, "ev"),
    _kind(resources.LEASES, conditional=True),
    _kind(resources.PRIORITY_CLASSES, "pc"),
    _kind(resources.RESOURCE_SLICES),
    _kind(resources.RESOURCE_CLAIMS, sub="status"),
    _kind(resources.DEPLOYMENTS, "deploy", sub="status", categories="all"),
    _kind(resources.REPLICA_SETS, "rs", sub="status", categories="all"),
    _kind(resources.JOBS, sub="status", categories="all"),
    _kind(resources.POD_DISRUPTION_BUDGETS, "pdb", sub="status", conditional=True),
    _kind(resources.ROLES),
    _kind(resources.ROLE_BINDINGS),
    _kind(resources.CLUSTER_ROLES),
    _kind(resources.CLUSTER_ROLE_BINDINGS),
    _kind(resources.CRDS, "crd crds", sub="status", categories="api-extensions", conditional=True),
    _kind(resources.MUTATING_WEBHOOKS, categories="api-extensions"),
    _kind(resources.VALIDATING_WEBHOOKS, categories="api-extensions"),
)
