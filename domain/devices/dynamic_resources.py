"""Which devices of a node Dynamic Resource Allocation has given away. Pure.

A driver names its devices as it likes. One of them is a device of ours where both are on the same
node and have the same UUID or the same PCI address. Attributes whose names end in ``/uuid``,
``/parentUUID`` (the GPU of a slice), ``/pciBusID`` or ``/pciAddress`` are compared, those of the
driver itself and the standard ones alike. A part of a device counts as all of it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from api.kubernetes import dynamic_resources as dra

UUIDS: Final = frozenset({"uuid", "parentUUID"})
ADDRESSES: Final = frozenset({"pciBusID", "pciAddress"})
_PCI: Final = re.compile(
    r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE | re.ASCII
)
_LONGEST: Final = 253

Ref = tuple[str, str, str]
"""Driver, pool and name of a device."""


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One device of a driver, by what identifies it on its node."""

    ref: Ref
    node: str
    ids: frozenset[str]


class Slice(msgspec.Struct, frozen=True, gc=False):
    """The devices of a ResourceSlice that belong to a node and can be identified."""

    pool: tuple[str, str]
    """Driver and name."""
    generation: int
    offers: tuple[Offer, ...]


class Elsewhere(msgspec.Struct, frozen=True, gc=False):
    """The devices of one node that claims hold."""

    claims: Mapping[str, str]
    """namespace/name of the claim by identity of the device."""

    def holder(self, ident: str, bus_id: str) -> str:
        """Return the claim that holds a device, empty where none does."""
        return next(
            (self.claims[one] for one in identities(ident, bus_id) if one in self.claims), ""
        )


def identities(ident: str, bus_id: str) -> tuple[str, ...]:
    """Return what identifies a device of ours: its UUID and its PCI address, as far as known."""
    found = (uuid(ident), pci(bus_id))
    return tuple(one for one in found if one)


def uuid(text: str) -> str:
    """Return a UUID in one form, empty where there is none."""
    cut = text.strip().lower()
    return f"uuid {cut}" if cut and len(cut) <= _LONGEST else ""


def pci(text: str) -> str:
    """Return a PCI address as ``domain:bus:device.function`` in one form, empty where it is none.

    Drivers write the domain with four or eight digits, or leave out domain 0.
    """
    found = _PCI.fullmatch(text.strip())
    if found is None:
        return ""
    domain, bus, device, function = found.groups()
    return f"pci {int(domain or '0', 16):04x}:{bus}:{device}.{function}".lower()


def read_slice(found: dra.ResourceSlice) -> Slice:
    """Return what a slice offers on nodes."""
    spec = found.spec
    offers = []
    for device in spec.devices:
        node = spec.node_name or device.node_name
        ids = frozenset(_identities(device))
        if node and ids:
            offers.append(Offer((spec.driver, spec.pool.name, device.name), node, ids))
    return Slice((spec.driver, spec.pool.name), spec.pool.generation, tuple(offers))


def _identities(device: dra.SliceDevice) -> Iterable[str]:
    for name, value in device.attributes.items():
        last, text = name.rpartition("/")[2], value.string or ""
        one = uuid(text) if last in UUIDS else pci(text) if last in ADDRESSES else ""
        if one:
            yield one


def given(claim: dra.ResourceClaim) -> tuple[Ref, ...]:
    """Return the devices that a claim holds; access for administrators takes nothing away."""
    allocation = claim.status.allocation
    if allocation is None:
        return ()
    return tuple(
        (one.driver, one.pool, one.device)
        for one in allocation.devices.results
        if not one.admin_access
    )


class Index:
    """Slices and claims joined by device; says which nodes a change is about."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._by_pool: dict[tuple[str, str], dict[str, Slice]] = {}
        self._claims: dict[str, tuple[Ref, ...]] = {}
        self._holders: dict[Ref, dict[str, None]] = {}
        self._refs: dict[str, dict[Ref, Offer]] = {}
        """The offers of each node, those of the newest generation of their pools."""

    def slice_changed(self, name: str, found: Slice | None) -> frozenset[str]:
        """Take in a slice; return the nodes on which something else may be held now."""
        before = self._slices.pop(name, None)
        pools = {one.pool for one in (before, found) if one is not None}
        nodes = {offer.node for pool in pools for offer in self._current(pool)}
        for pool in pools:
            for offer in self._current(pool):
                self._refs[offer.node].pop(offer.ref, None)
        if before is not None:
            self._by_pool[before.pool].pop(name, None)
        if found is not None:
            self._slices[name] = found
            self._by_pool.setdefault(found.pool, {})[name] = found
        for pool in pools:
            for offer in self._current(pool):
                self._refs.setdefault(offer.node, {})[offer.ref] = offer
                nodes.add(offer.node)
            if not self._by_pool.get(pool):
                self._by_pool.pop(pool, None)
        for node in nodes:
            if not self._refs.get(node):
                self._refs.pop(node, None)
        return frozenset(nodes)

    def _current(self, pool: tuple[str, str]) -> list[Offer]:
        """Return the offers of a pool; slices of an older generation describe another past."""
        known = self._by_pool.get(pool, {}).values()
        newest = max((one.generation for one in known), default=0)
        return [offer for one in known if one.generation == newest for offer in one.offers]

    def claim_changed(self, key: str, refs: tuple[Ref, ...]) -> frozenset[str]:
        """Take in what a claim holds, nothing if it is gone; return the nodes that it is about."""
        before = self._claims.pop(key, ())
        if before == refs:
            if refs:
                self._claims[key] = refs
            return frozenset()
        for ref in before:
            holders = self._holders.get(ref, {})
            holders.pop(key, None)
            if not holders:
                self._holders.pop(ref, None)
        if refs:
            self._claims[key] = refs
        for ref in refs:
            self._holders.setdefault(ref, {})[key] = None
        touched = {*before, *refs}
        return frozenset(
            offer.node
            for pool in {ref[:2] for ref in touched}
            for offer in self._current((pool[0], pool[1]))
            if offer.ref in touched
        )

    def held(self, node: str) -> Elsewhere | None:
        """Return the devices of a node that claims hold; None: none that is known."""
        claims: dict[str, str] = {}
        for ref, offer in sorted(self._refs.get(node, {}).items()):
            for holder in sorted(self._holders.get(ref, {}))[:1]:
                for ident in sorted(offer.ids):
                    claims.setdefault(ident, holder)
        return Elsewhere(claims) if claims else None

    def offers(self, node: str) -> tuple[Offer, ...]:
        """Return what drivers offer on a node, by driver, pool and name."""
        return tuple(offer for _, offer in sorted(self._refs.get(node, {}).items()))
