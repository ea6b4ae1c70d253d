"""What each NUMA zone of a node offers to batch pods, and whether that has to be written."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from api import names
from api import resources as kinds
from api.wire import quantity
from domain import wording
from domain.lending import colocation, zones
from manager.overcommit import breakdown, calculation, inventory, node_status
from manager.reconcile import actions

NOTHING: Final = actions.Plan("no zones, nothing to say about them")


def calculated(
    seen: calculation.Seen, there: inventory.Topology, pods: Sequence[zones.Held]
) -> zones.Share | None:
    """Return what each zone offers; None where a node lends nothing at all."""
    if seen.report is None or not there.zones or calculation.withheld(seen):
        return None
    held = zones.demands(pods, len(there.zones))
    shares = zones.lend(
        (seen.rules.cpu, seen.rules.memory),
        [zones.Zone(*pair) for pair in zip((z.capacity for z in there.zones), held, strict=True)],
        seen.report.outside,
        seen.node.reserved,
    )
    ratio = calculation.ratio(seen)
    return tuple(share._replace(cpu=node_status.faster(share.cpu, ratio)) for share in shares)


def told(
    seen: calculation.Seen, there: inventory.Topology | None, pods: Sequence[zones.Held]
) -> tuple[breakdown.Zone, ...]:
    """Return what each zone offers, for people."""
    shares = None if there is None else calculated(seen, there, pods)
    if there is None or shares is None:
        return ()
    pairs = zip(there.zones, shares, strict=True)
    return tuple(breakdown.Zone(zone.name, zone.capacity, share) for zone, share in pairs)


def planned(
    seen: calculation.Seen,
    there: inventory.Topology | None,
    pods: Sequence[zones.Held],
    version: int,
) -> actions.Plan:
    """Plan the zones of a node whose topology stands at this version.

    Where a node lends nothing its zones stay as they are: what the node itself offers is what
    keeps pods away.
    """
    shares = None if there is None else calculated(seen, there, pods)
    if shares is None or there is None:
        return NOTHING
    refresh, since = calculation.due_after(seen), seen.since_write
    due = since is None or since >= refresh
    wanted = _all(there, shares, 0.0 if due else seen.rules.difference)
    if wanted == list(there.written):
        if since is not None and not due and wanted != _all(there, shares, 0.0):
            return actions.Plan("zones changed too little to write", again_in=refresh - since)
        return actions.Plan("zones are as they should be")
    body = {"metadata": {"resourceVersion": str(version)}, "zones": wanted}
    step = actions.Merge(kinds.NODE_RESOURCE_TOPOLOGIES, seen.node.name, body)
    offer = wording.count(len(wanted), "zone offers", "zones offer")
    cores = wording.count(_shown(shares), "core", "cores")
    return actions.Plan(f"{offer} {cores} to batch pods", (step,))


def _shown(shares: zones.Share) -> str:
    return " + ".join(f"{share.cpu / 1000:g}" for share in shares)


def _all(there: inventory.Topology, shares: zones.Share, threshold: float) -> list[dict[str, Any]]:
    return [
        _written(raw, zone, share, threshold)
        for raw, zone, share in zip(there.written, there.zones, shares, strict=True)
    ]


def _written(
    raw: Mapping[str, Any], zone: inventory.Zone, share: colocation.Amount, threshold: float
) -> dict[str, Any]:
    """Return a zone with its offers; a side that hardly changed is left as it is."""
    made = copy.deepcopy(dict(raw))
    listed: list[dict[str, Any]] = made.get("resources") or []
    made["resources"] = listed
    for name, value in zip(names.BATCH_RESOURCES, share, strict=True):
        text = quantity.text(name, value)
        before = zone.published.get(name)
        if before is None:
            listed.append({"name": name, **dict.fromkeys(inventory.SIDES, text)})
            listed.sort(key=lambda item: str(item["name"]))
            continue
        item = next(item for item in listed if item["name"] == name)
        for side, old in zip(inventory.SIDES, before, strict=True):
            if colocation.differs(old, value, threshold):
                item[side] = text
    return made
