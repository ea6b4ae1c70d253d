"""Annotations with numbers that no machine has: the figures of a node hold 64 bits each."""

import json

import msgspec
import pytest

from api import names
from api.kubernetes import core
from api.plugin_args import node as node_arguments
from domain.scheduler_settings import load_aware as load_arguments
from extender import registry
from extender.informers.nodes import node_metrics
from extender.plugins.load_aware import load_aware
from extender.state import cluster_state, ledger, records
from tests.extender.conftest import NOW

HUGE = (10**18, -(10**18), 1 << 80, -(1 << 80))


def cluster(make, *, thresholds=None, factors=None):
    """One node with a report, and one pod there that is not in it yet."""
    arguments = node_arguments.LoadAwareSchedulingArgs(allowCustomizeEstimation=True)
    plugin = load_aware.LoadAware(load_arguments.arguments(arguments.complete()))
    books = ledger.Ledger(cluster_state.ClusterState((plugin,), ("cpu", "memory")))
    projector = records.Projector(None, (), registry.inputs((plugin,)))
    notes = {names.ANNOTATION_USAGE_THRESHOLDS: json.dumps({"usageThresholds": thresholds or {}})}
    books.node(None, projector.node(msgspec.convert(make.node("n1", annotations=notes), core.Node)))
    metric = msgspec.convert(make.metric("n1"), node_metrics.NodeMetric)
    books.report("n1", node_metrics.Reader(plugin.universe).report(metric))
    texts = {names.ANNOTATION_LOAD_SCALING_FACTORS: json.dumps(factors or {})}
    raw = make.pod("p", node="n1", requests={"cpu": "4"}, annotations=texts)
    books.pod(None, projector.pod(msgspec.convert(raw, core.Pod)), NOW)
    return books.cluster


@pytest.mark.parametrize("percent", HUGE)
def test_a_threshold_may_be_any_number(make, percent):
    assert cluster(make, thresholds={"cpu": percent}).view().figures["LoadAware"].size


@pytest.mark.parametrize("factor", HUGE)
def test_a_factor_of_a_pod_may_be_any_number(make, factor):
    assert cluster(make, factors={"cpu": factor}).view().figures["LoadAware"].size
