"""A move between two nodes of ten cores, before it and after it."""

from api.koordinator.metadata import qos
from api.wire import durations
from descheduler.framework import objective, protocols
from descheduler.framework.planning import round_plan
from descheduler.gain import measured_load
from descheduler.gain.options import Options
from descheduler.receipts import expectation, settlement
from tests.descheduler import builders

NOW = builders.NOW
CPU = Options(resources={"cpu": 1})
SETTLE = 300.0
ENDED = NOW + 60
LATER = ENDED + SETTLE


def pod(name="web-1", node="a", **fields):
    return builders.pod(name, node, cpu="1", band=qos.Band.BATCH, **fields)


def world(loads, pods=(), *, now=NOW, slowed=None, throttled=None, measured=None, **fields):
    """Nodes with so many cores used, of which each pod uses one; by `name: cores`."""
    usages = []
    for name, load in loads.items():
        here = {one.name: {"cpu": "1"} for one in pods if one.node == name}
        system = {"cpu": f"{(load - len(here)) * 1000:.0f}m"}
        told = (("slowed", slowed), ("throttled", throttled))
        more = {
            what: {one.key: value for one in pods if one.node == name}
            for what, value in told
            if value is not None
        }
        usages.append(builders.usage(name, system, here, updated_at=measured or now, **more))
    nodes = [builders.node(name, cpu="10") for name in ("a", "b", "c")]
    return builders.picture_of(nodes, pods, usages, now=now, **fields)


def loads(seen, options=CPU):
    return measured_load.Loads(options, seen, seen.nodes.values())


def move(moved=None, purpose=protocols.Purpose.BALANCE, target="b", **worth):
    found = protocols.Target(target) if target else None
    suggestion = protocols.Suggestion(moved or pod(), "LowNodeLoad", "too hot", purpose)
    accepted = objective.Accepted(found, **({"gain": 10.0, "cost": 2.0} | worth))
    return round_plan.Move(suggestion, "default", "MigrationController", accepted)


def expected(seen=None, **fields):
    """The receipt of a move from node a, at 90 %, to node b, at 30 %."""
    one = move(**fields)
    before = seen or world({"a": 9, "b": 3}, [one.suggestion.pod])
    return expectation.receipts([one], before, loads(before))[one.suggestion.pod.uid]


def job(phase="Succeeded", *, new="uid-web-2", evicted=True, ended=ENDED, **status):
    done = {"type": "Eviction", "status": "True" if evicted else "False"}
    done["lastTransitionTime"] = durations.moment(ended)
    successor = {"podRef": {"namespace": "default", "name": "web-2", "uid": new}} if new else {}
    return builders.job(
        pod_name="web-1",
        phase=phase,
        status={"conditions": [done], **successor, **status},
    )


def outcome(one, seen, *, options=CPU, **fields):
    case = settlement.Case(one, job(**fields), seen, loads(seen, options), SETTLE)
    return settlement.outcome(case)
