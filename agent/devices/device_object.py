"""The Device of one node as it should be: what was discovered beside what people wrote. Pure.

What the agent itself put into the object is recorded in an annotation of it. Everything else is
not ours: it stays, and where it contradicts what was discovered the contradiction is said.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from agent.devices import device_inventory
from api import names, resources
from api.wire import untrusted

DISCOVERY: Final = "koord.sh/discovery"
"""The annotation that says which parts of a Device the agent wrote."""
MAKER: Final = "koord-agent"
"""Who uninstalls knows by this name whose object it is."""
PREDECESSOR: Final = "koordlet"
"""Who wrote everything of a Device on nodes that are taken over."""
CONDITION: Final = "Healthy"
MOST_CLASHES: Final = 20
_KINDS: Final = (device_inventory.GPU, device_inventory.RDMA)
_LABELS: Final = (
    names.LABEL_GPU_VENDOR,
    names.LABEL_GPU_MODEL,
    names.LABEL_GPU_DRIVER,
    names.LABEL_GPU_PARTITION_POLICY,
)
_ANNOTATIONS: Final = (names.ANNOTATION_GPU_PARTITIONS,)
Object = Mapping[str, Any]
Identity = tuple[str, str]


class About(msgspec.Struct, frozen=True):
    """Whose devices they are, and when they were looked at."""

    node: str
    uid: str
    """Identifier of the Node; empty while it has not been seen."""
    now: str


class _Owned(msgspec.Struct, frozen=True):
    """What of an object the agent wrote."""

    devices: frozenset[Identity] = frozenset()
    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()


_NOTHING: Final = _Owned()


class Told(msgspec.Struct, frozen=True):
    """What the object should be, and what people wrote that stands against it."""

    object: Object | None
    clashes: tuple[str, ...] = ()


def told(current: Object | None, found: device_inventory.Inventory, about: About) -> Told:
    """Return the object as it should be; None where there is no device and never was one."""
    before = _listed(current)
    owned = _owned(current, before)
    foreign = [one for one in before if _identity(one) not in owned.devices]
    clashes: list[str] = []
    known = {_identity(one): one for one in before}
    mine = _mine(found, known)
    mine = _beside(mine, foreign, clashes)
    entries = [_entry(one, known.get((one.kind, one.identity)), about.now) for one in mine]
    listed = {(one.kind, one.identity) for one in mine}
    places = {(one.kind, one.minor) for one in mine}
    lasting = [one for one in before if (_identity(one)[0], one.get("minor")) not in places]
    entries += _kept(lasting, owned.devices - listed, found.unknown, about.now)
    if current is None and (not entries or not about.uid):
        return Told(None)
    base = dict(current) if current is not None else _new(about)
    metadata = dict(base.get("metadata") or {})
    labels = _merged(metadata.get("labels"), found.labels, owned.labels, clashes, "label")
    notes = _merged(
        metadata.get("annotations"), found.annotations, owned.annotations, clashes, "annotation"
    )
    said = _Owned(
        frozenset(map(_identity, entries)),
        frozenset(name for name in found.labels if name in labels[1]),
        frozenset(name for name in found.annotations if name in notes[1]),
    )
    if owned == _NOTHING == said and not clashes:
        # Another client's object, and nothing to add to it.
        return Told(current)
    notes[0][DISCOVERY] = _record(said, clashes)
    metadata["annotations"] = notes[0]
    if labels[0] or metadata.get("labels"):
        metadata["labels"] = labels[0]
    spec = {**(base.get("spec") or {}), "devices": _sorted([*foreign, *entries])}
    return Told({**base, "metadata": metadata, "spec": spec}, tuple(clashes))


def _new(about: About) -> dict[str, Any]:
    resource = resources.DEVICES
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": about.node,
            "labels": {names.LABEL_CREATED_BY: MAKER},
            "ownerReferences": [_owner(about)],
        },
    }


def _owner(about: About) -> dict[str, Any]:
    # Without blockOwnerDeletion, which some clusters allow only to who may change the Node.
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "name": about.node,
        "uid": about.uid,
        "controller": True,
    }


def _listed(current: Object | None) -> list[Mapping[str, Any]]:
    spec = (current or {}).get("spec") or {}
    return [one for one in spec.get("devices") or () if isinstance(one, Mapping)]


def _identity(entry: Mapping[str, Any]) -> Identity:
    kind = entry.get("type") or entry.get("deviceType") or ""
    return str(kind), str(entry.get("id") or entry.get("uuid") or "")


def _owned(current: Object | None, listed: Iterable[Mapping[str, Any]]) -> _Owned:
    metadata = (current or {}).get("metadata") or {}
    record = (metadata.get("annotations") or {}).get(DISCOVERY)
    if record is not None:
        return _recorded(record)
    writers = {
        str(one.get("manager"))
        for one in metadata.get("managedFields") or ()
        if isinstance(one, Mapping)
    }
    if PREDECESSOR not in writers:
        return _Owned()
    mine = (_identity(one) for one in listed if one.get("type") in _KINDS)
    return _Owned(frozenset(mine), frozenset(_LABELS), frozenset(_ANNOTATIONS))


def _recorded(text: str) -> _Owned:
    """Read what the agent wrote; with a broken record everything is left to people."""
    try:
        found = untrusted.parsed(text, "annotation")
        parts = [str(one).partition("/") for one in found["devices"]]
        return _Owned(
            frozenset((kind, identity) for kind, _, identity in parts),
            frozenset(map(str, found["labels"])),
            frozenset(map(str, found["annotations"])),
        )
    except (KeyError, TypeError, ValueError):
        return _Owned()


def _record(owned: _Owned, clashes: Collection[str]) -> str:
    body: dict[str, list[str]] = {
        "devices": sorted("/".join(one) for one in owned.devices),
        "labels": sorted(owned.labels),
        "annotations": sorted(owned.annotations),
    }
    if clashes:
        body["leftOut"] = list(clashes)[:MOST_CLASHES]
    return json.dumps(body, separators=(",", ":"))


def _mine(
    found: device_inventory.Inventory, known: Mapping[Identity, Mapping[str, Any]]
) -> list[device_inventory.Device]:
    """Return what was found with an index for each."""
    before = {
        identity: minor
        for (kind, identity), one in known.items()
        if kind == device_inventory.RDMA and isinstance(minor := one.get("minor"), int)
    }
    adapters = [one for one in found.devices if one.kind == device_inventory.RDMA]
    others = [one for one in found.devices if one.kind != device_inventory.RDMA]
    return [*others, *device_inventory.numbered(adapters, before)]


def _beside(
    mine: Iterable[device_inventory.Device],
    foreign: Iterable[Mapping[str, Any]],
    clashes: list[str],
) -> list[device_inventory.Device]:
    """Leave out what a person, or a source before, has said otherwise."""
    identities = {_identity(one) for one in foreign}
    places = {(_identity(one)[0], one.get("minor")) for one in foreign}
    seen: set[tuple[str, object]] = set()
    found = []
    for one in mine:
        name = f"{one.kind} {one.identity}"
        if (one.kind, one.identity) in identities:
            clashes.append(f"{name} was written by hand; remove the entry to have it discovered")
        elif (one.kind, one.minor) in places:
            clashes.append(f"{name}: an entry written by hand has its minor {one.minor}")
        elif {(one.kind, one.minor), (one.kind, one.identity)} & seen:
            clashes.append(f"{name} with minor {one.minor} was found twice")
        else:
            seen |= {(one.kind, one.minor), (one.kind, one.identity)}
            found.append(one)
    return found


def _kept(
    before: Iterable[Mapping[str, Any]],
    missing: Collection[Identity],
    unknown: Mapping[str, bool],
    now: str,
) -> list[dict[str, Any]]:
    """Return entries of which nothing is known now; after a while they are no longer healthy."""
    kept = []
    for one in before:
        kind = _identity(one)[0]
        if _identity(one) not in missing or kind not in unknown:
            continue
        entry = dict(one)
        if unknown[kind]:
            verdict = device_inventory.Verdict(
                False, device_inventory.SILENT, "nothing tells how the device is"
            )
            entry |= {"health": False, "conditions": [_condition(verdict, one, now)]}
        kept.append(entry)
    return kept


def _entry(
    one: device_inventory.Device, before: Mapping[str, Any] | None, now: str
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": one.kind,
        "id": one.identity,
        "minor": one.minor,
        "health": one.healthy,
        "resources": dict(one.resources),
    }
    if one.place is not None:
        entry["topology"] = {
            "socketID": one.place.socket,
            "nodeID": one.place.node,
            "pcieID": one.place.pcie,
            "busID": one.place.bus,
        }
    if one.functions:
        functions = [{"minor": -1, "busID": bus} for bus in sorted(one.functions)]
        entry["vfGroups"] = [{"vfs": functions}]
    if one.verdict is not None:
        entry["conditions"] = [_condition(one.verdict, before or {}, now)]
    return entry


def _condition(
    verdict: device_inventory.Verdict, before: Mapping[str, Any], now: str
) -> dict[str, Any]:
    """Return the condition; its time is that of the last change of its status."""
    status = "True" if verdict.healthy else "False"
    since = now
    for one in before.get("conditions") or ():
        if isinstance(one, Mapping) and one.get("type") == CONDITION:
            since = one.get("lastTransitionTime", now) if one.get("status") == status else now
    return {
        "type": CONDITION,
        "status": status,
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": since,
    }


def _merged(
    written: Mapping[str, str] | None,
    wanted: Mapping[str, str],
    owned: Collection[str],
    clashes: list[str],
    what: str,
) -> tuple[dict[str, str], set[str]]:
    """Return all values beside each other, and which of the wanted ones are among them."""
    values = {name: value for name, value in (written or {}).items() if name not in owned}
    mine = set()
    for name, value in sorted(wanted.items()):
        if values.get(name, value) != value:
            clashes.append(f"{what} {name} was written by hand")
            continue
        if name not in values:
            mine.add(name)
        values[name] = value
    return values, mine


def _sorted(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort by type and index; entries without an index keep their order at the end."""

    def key(one: Mapping[str, Any]) -> tuple[str, float]:
        minor = one.get("minor")
        return _identity(one)[0], minor if isinstance(minor, int) else float("inf")

    return sorted(entries, key=key)
