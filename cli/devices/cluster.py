"""Devices, pods, ResourceSlices and ResourceClaims put together, node by node. Pure."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from api.koordinator import devices
from api.kubernetes import core
from api.kubernetes import dynamic_resources as dra
from cli import reading
from domain.devices import device_report, dynamic_resources, pod_holdings

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Objects:
    """What was read of a cluster, as it was read."""

    devices: Sequence[Raw] = ()
    pods: Iterable[Raw] = ()
    slices: Sequence[Raw] = ()
    claims: Sequence[Raw] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of one node."""

    name: str
    rows: tuple[device_report.Row, ...]
    problems: tuple[device_report.Problem, ...]
    offered_twice: tuple[tuple[device_report.Known, str], ...] = ()
    """Devices that a driver offers to ResourceClaims as well, with driver/pool/name there."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterDevices:
    """The devices of all nodes, by name of the node."""

    nodes: tuple[NodeDevices, ...]
    unreadable: tuple[str, ...] = ()
    """Objects of an unexpected shape, which are left out."""


def build(found: Objects) -> ClusterDevices:
    """Put the objects together."""
    odd: list[str] = []
    unread: set[str] = set()
    listed: dict[str, tuple[device_report.Known, ...]] = {}
    for raw in found.devices:
        name, known = reading.either("", _name, raw), reading.either(None, _known, raw)
        if known is None or not name:
            odd.append(f"Device {name or 'without a name'}")
            unread.add(name)
        else:
            listed[name] = known
    held: dict[str, list[pod_holdings.Holding]] = {}
    for raw in found.pods:
        pod = reading.either(None, _pod, raw)
        if pod is not None and pod[1] is not None:
            held.setdefault(pod[0], []).append(pod[1])
    index = _index(found, odd)
    # What a node has is not known where its Device cannot be read.
    known_nodes = {*listed, *held} - unread
    nodes = tuple(
        _node(name, listed.get(name, ()), held.get(name, ()), index) for name in sorted(known_nodes)
    )
    return ClusterDevices(nodes, tuple(odd))


def _name(raw: Raw) -> str:
    return str(raw["metadata"]["name"])


def _known(raw: Raw) -> tuple[device_report.Known, ...]:
    return device_report.known(devices.read_device({**raw, "status": None}))


def _pod(raw: Raw) -> tuple[str, pod_holdings.Holding | None]:
    pod = msgspec.convert(raw, core.Pod)
    return pod.spec.node_name, pod_holdings.holding(pod)


def _index(found: Objects, odd: list[str]) -> dynamic_resources.Index:
    index = dynamic_resources.Index()
    for number, raw in enumerate(found.slices):
        name = reading.either(str(number), _name, raw)
        one = reading.either(None, _slice, raw)
        if one is None:
            odd.append(f"ResourceSlice {name}")
        else:
            index.slice_changed(name, one)
    for number, raw in enumerate(found.claims):
        read = reading.either(None, dra.read_claim, raw)
        if read is None:
            odd.append(f"ResourceClaim {reading.either(str(number), _name, raw)}")
        else:
            index.claim_changed(read.metadata.key, dynamic_resources.given(read))
    return index


def _slice(raw: Raw) -> dynamic_resources.Slice:
    return dynamic_resources.read_slice(dra.read_slice(raw))


def _node(
    name: str,
    listed: Sequence[device_report.Known],
    holdings: Sequence[pod_holdings.Holding],
    index: dynamic_resources.Index,
) -> NodeDevices:
    elsewhere, claims = index.held(name), {}
    if elsewhere is not None:
        for one in listed:
            holder = elsewhere.holder(one.id, one.bus_id)
            if holder:
                claims[one.kind, one.minor] = (holder,)
    rows = device_report.rows(listed, holdings, claims)
    problems = device_report.problems(name, rows, holdings)
    offered = {ident: offer for offer in index.offers(name) for ident in offer.ids}
    twice = []
    for one in listed:
        found = (offered.get(each) for each in dynamic_resources.identities(one.id, one.bus_id))
        offer = next((each for each in found if each is not None), None)
        if offer is not None:
            twice.append((one, "/".join(offer.ref)))
    return NodeDevices(name, rows, problems, tuple(twice))
