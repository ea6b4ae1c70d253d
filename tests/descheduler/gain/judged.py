"""Worlds of a few nodes, and what is judged of moves in them."""

from descheduler.framework import protocols
from descheduler.framework.planning import history
from descheduler.gain import gain_per_eviction, measured_load
from descheduler.gain.options import Options
from tests.descheduler import builders
from tests.descheduler.gain import roomy_targets

NOW = builders.NOW
CPU = Options(resources={"cpu": 1})
BALANCE, EMPTY = protocols.Purpose.BALANCE, protocols.Purpose.EMPTY


def judge(seen, name, purpose=BALANCE, *, options=CPU, moves=history.NONE, targets=None, **fields):
    judging, scheduler = of(seen, options, moves), targets or roomy_targets.RoomyTargets(seen)
    return judging.judge(suggested(seen, name, purpose, **fields), scheduler)


def of(seen, options=CPU, moves=history.NONE):
    loads = measured_load.Loads(options, seen, seen.nodes.values())
    return gain_per_eviction.GainPerEviction(options, seen, loads, moves)


def suggested(seen, name, purpose=BALANCE, **fields):
    pod = seen.pods[f"uid-{name}"]
    return protocols.Suggestion(pod, "plugin", "reason", purpose, **fields)
