"""Plug-ins keep nothing of pods and nodes with thousands of resources once these are gone."""

import pytest

from api.koordinator.metadata import qos
from domain.cpus import cpu_accumulator
from domain.gangs import declaration
from domain.quota.waiting import queue
from domain.usage import load
from extender.framework import views
from extender.gangs.planning import in_tree, planner
from extender.plugins.batch_fit import batch_fit
from extender.plugins.coscheduling import tracker as gangs
from extender.plugins.device_share import tracker as devices
from extender.plugins.elastic_quota import uses
from extender.plugins.load_aware import estimation
from extender.plugins.node_numa_resource import allocation as numa
from extender.plugins.node_resources_fit_plus import node_resources_fit_plus as plus
from extender.plugins.reservation import allocation as reservations
from extender.plugins.scarce_resource_avoidance import scarce_resource_avoidance as scarce
from extender.state import lending
from tests import held_memory

ARGUMENTS = load.Arguments(
    load.Profile(*[load.Thresholds({})] * 3), factors={"cpu": 85}, weights={"cpu": 1}
)
ESTIMATOR = estimation.Estimator(ARGUMENTS)
FIT = plus.NodeResourcesFitPlus({"cpu": ("MostAllocated", 1)})
BATCH, SCARCE = batch_fit.BatchFit(), scarce.ScarceResourceAvoidance(["example.com/gpu"])
UNBOUND = cpu_accumulator.BindPolicy.NONE


def node(requirements=None, offered=()):
    """A node that offers this, and maybe a pod on it."""
    pods = claims = ()
    if requirements is not None:
        pods = (views.PodRecord("default/p", "p", "n", requirements),)
        claims = (views.Claim("p", views.FIRM[0], "n", pods[0]),)
    return views.NodeInfo(
        views.NodeRecord("n", offered, offered), None, pods, lending.PUBLISHED, claims
    )


def line_pod(requirements):
    return queue.LinePod("p", uses.waiting(requirements, "default"), queue.State.GATED)


READ = {
    "what was lent to it": lambda asked: BATCH.node(node(asked)),
    "its estimate": ESTIMATOR.estimate,
    "what a score counts": lambda asked: FIT.node(node(asked)),
    "its use of a quota": lambda asked: uses.firm(asked, "default"),
    "its use of a quota by nomination": lambda asked: uses.nominated(asked, "default"),
    "its place in a queue": lambda asked: line_pod(asked).asks,
    "its class of devices": devices.class_of,
    "its wish for CPUs": lambda asked: numa.wanted(asked, UNBOUND),
    "its gang": lambda asked: gangs.declared(asked, "default", declaration.Defaults()),
    "its wish for Reservations": reservations.wishes,
    "what its plan depends on": planner._in_tree,
    "how many pods a node takes": lambda asked: in_tree._most_pods(asked.requests),
    "what a node offers": lambda asked: BATCH.node(node(offered=asked.requests)),
    "what is scarce on a node": lambda asked: SCARCE.node(node(offered=asked.requests)),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_nothing_is_kept_of_long_requests(read):
    def feed(number):
        requests = tuple(sorted((f"example.com/{number}-{at}", 1) for at in range(3000)))
        read(views.PodRequirements(requests, (), qos.Band.PROD, is_member=True))

    assert held_memory.blocks(feed, 10) < 3000


@pytest.mark.parametrize("count", [2, 3000])
def test_what_is_there_is_read_once(count):
    requests = tuple(sorted((f"example.com/{at}", 1) for at in range(count)))
    one, other = (views.PodRequirements(requests, (), qos.Band.PROD) for _ in range(2))
    assert uses.firm(one, "default") is uses.firm(other, "default")
    assert uses.firm(one, "default") is not uses.firm(other, "elsewhere")
