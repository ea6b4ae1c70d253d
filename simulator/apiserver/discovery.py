"""What is served, in both forms that clients ask for: lists per group and one aggregate."""

from collections.abc import Iterable
from typing import Any

from simulator.apiserver.registry import kinds

Object = dict[str, Any]

AGGREGATED = "APIGroupDiscoveryList"
_SUB_VERBS = {"status": ("get", "patch", "update"), "binding": ("create",), "eviction": ("create",)}
_SUB_KINDS = {"binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction")}
VERSION = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.0+koord-simulator",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}


def core_versions(address: str) -> Object:
    """Answer /api."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def group_list(registry: kinds.Registry) -> Object:
    """Answer /apis."""
    groups = [_group(name, versions) for name, versions in registry.groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: kinds.Registry, name: str) -> Object | None:
    """Answer /apis/GROUP."""
    versions = registry.groups().get(name)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(registry: kinds.Registry, group: str, version: str) -> Object | None:
    """Answer /api/v1 or /apis/GROUP/VERSION."""
    served = _of(registry, group, version)
    if not served:
        return None
    listed = []
    for kind in served:
        listed.append(_resource(kind))
        listed += [_subresource(kind, name) for name in sorted(kind.subresources)]
    text = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": text,
        "resources": listed,
    }


def aggregated(registry: kinds.Registry, *, core: bool, version: str) -> Object:
    """Answer /api or /apis in the aggregated form."""
    groups = {"": ["v1"]} if core else registry.groups()
    items = [
        {
            "metadata": {**({"name": name} if name else {}), "creationTimestamp": None},
            "versions": [
                {
                    "version": each,
                    "resources": [_aggregate(kind) for kind in _of(registry, name, each)],
                    "freshness": "Current",
                }
                for each in versions
            ],
        }
        for name, versions in groups.items()
    ]
    return {
        "kind": AGGREGATED,
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _of(registry: kinds.Registry, group: str, version: str) -> list[kinds.Kind]:
    return [k for k in registry.kinds() if (k.group, k.resource.version) == (group, version)]


def _group(name: str, versions: Iterable[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(kind: kinds.Kind) -> Object:
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(kind.verbs),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": list(kind.categories)} if kind.categories else {}),
    }


def _subresource(kind: kinds.Kind, name: str) -> Object:
    entry: Object = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(_SUB_VERBS[name]),
    }
    if name in _SUB_KINDS:
        group, version, own = _SUB_KINDS[name]
        entry |= {"kind": own, **({"group": group, "version": version} if group else {})}
    return entry


def _aggregate(kind: kinds.Kind) -> Object:
    scope = "Namespaced" if kind.namespaced else "Cluster"
    entry: Object = {
        "resource": kind.plural,
        "responseKind": _gvk(kind.group, kind.resource.version, kind.name),
        "scope": scope,
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        own = (kind.group, kind.resource.version, kind.name)
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _gvk(*_SUB_KINDS.get(name, own)),
                "verbs": list(_SUB_VERBS[name]),
            }
            for name in sorted(kind.subresources)
        ]
    return entry


def _gvk(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
