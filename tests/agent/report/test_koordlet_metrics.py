"""Dashboards of Koordinator's agent find the figures that we have, by its names."""

import msgspec
import pytest

from agent.model import state, strategy_settings
from agent.observe import collectors
from agent.report import koordlet_metrics
from api.koordinator.settings import strategies as wire
from process.runtime import metrics

CONTAINER = {
    "node": "node-1",
    "pod_uid": "a",
    "pod_name": "name-a",
    "pod_namespace": "default",
    "container_id": "containerd://c-a",
    "container_name": "app",
}
POD = {name: CONTAINER[name] for name in ("node", "pod_uid", "pod_name", "pod_namespace")}


@pytest.fixture
def told(host):
    """A node with a batch pod, an application of the host, and figures of everything."""
    registry = metrics.Registry()
    registry.gauge("koord_agent_best_effort_allowed_cores", "x").set(3.5)
    host.pictures = []
    made = koordlet_metrics.Names(
        registry, "node-1", lambda: host.pictures[-1] if host.pictures else None, 1.7e9
    )
    host.observer._collectors = collectors.Collectors([made.seen])
    host.registry = registry
    host.add("a", "BestEffort", 1500, 1 << 30)
    node = host.known.node
    allocatable = node.status.allocatable
    allocatable["kubernetes.io/batch-cpu"] = "4000"
    allocatable["kubernetes.io/batch-memory"] = "1Gi"
    application = wire.HostApplication(name="proxy", priority="koord-prod", qos="LS")
    host.know(
        thresholds=state.Thresholds(enable=True),
        enforced=strategy_settings.Strategies(),
        host_applications=(application,),
    )
    for _ in range(2):
        host.pictures.append(host.step())
    return host


def value(host, name, **labels):
    return host.registry.value(f"koordlet_{name}", {"node": "node-1"} | labels)


def test_before_a_node_is_known_there_is_only_the_start(host):
    registry = metrics.Registry()
    koordlet_metrics.Names(registry, "node-1", lambda: None, 1.7e9)
    text = registry.exposition()[0].decode()
    assert text.count("\nkoordlet_") == 1
    assert registry.value("koordlet_start_time", {"node": "node-1"}) == 1.7e9


def test_the_node(told):
    assert value(told, "node_used_cpu_cores") == pytest.approx(1.5, abs=0.01)
    assert value(told, "node_used_memory_bytes") == 1 << 30
    assert value(told, "be_suppress_cpu_cores", type="cpuset") == 3.5
    assert value(told, "be_suppress_be_used_cpu_cores") == pytest.approx(1.5, abs=0.01)
    assert value(told, "be_suppress_ls_used_cpu_cores") == pytest.approx(0.0, abs=0.01)
    labels = {"resource": "kubernetes.io/batch-cpu", "unit": "integer"}
    assert value(told, "node_resource_allocatable", **labels) == 4000
    labels = {"resource": "kubernetes.io/batch-memory", "unit": "byte"}
    assert value(told, "node_resource_allocatable", **labels) == 1 << 30
    assert value(told, "node_metric_node_usage", resource="memory", unit="byte") == 1 << 30


def test_containers(told):
    labels = CONTAINER | {"resource": "kubernetes.io/batch-cpu", "unit": "integer"}
    assert value(told, "container_resource_requests", **labels) == 2000
    assert value(told, "container_resource_limits", **labels) is None


def test_what_is_measured_on_request(told):
    at = told.at
    for key, figure in (
        (("pod", "a", "pressure-memory-some"), 12.5),
        (("pod", "a", "pressure-memory-full"), 2.0),
        (("container", "a", "app", "pressure-cpu-some"), 30.0),
        (("container", "a", "app", "cycles"), 3e9),
        (("container", "a", "app", "instructions"), 2e9),
        (("node", "cache", "LS", "0"), 4096.0),
        (("node", "memory-traffic-total", "BE", "1"), 70.0),
    ):
        told.observer.samples.add(key, at, figure, 300.0)
    memory = {"psi_resource_type": "mem", "psi_precision": "avg10", "cpu_full_supported": "true"}
    assert value(told, "pod_psi", **POD, **memory, psi_degree="some") == 12.5
    assert value(told, "pod_psi", **POD, **memory, psi_degree="full") == 2.0
    cpu = {"psi_resource_type": "cpu", "psi_precision": "avg10", "cpu_full_supported": "false"}
    assert value(told, "container_psi", **CONTAINER, **cpu, psi_degree="some") == 30.0
    assert value(told, "container_cpi", **CONTAINER, cpi_field="cycles") == 3e9
    assert value(told, "container_cpi", **CONTAINER, cpi_field="instructions") == 2e9
    assert value(told, "resctrl_llc_occupancy", qos="LS", cache_id="0") == 4096
    bandwidth = {"qos": "BE", "cache_id": "1", "mb_type": "mbm_total"}
    assert value(told, "resctrl_memory_bandwidth", **bandwidth) == 70
    told.at += 200
    told.look()
    assert value(told, "container_cpi", **CONTAINER, cpi_field="cycles") is None


def test_host_applications(told):
    usage = state.HostApplication("proxy", False, 0.25, 1 << 20, "koord-prod", "LS")
    told.pictures.append(msgspec.structs.replace(told.pictures[-1], host_applications=(usage,)))
    labels = {"host_application_name": "proxy", "priority_class": "koord-prod", "qos": "LS"}
    found = value(told, "host_application_resource_usage", resource="cpu", **labels)
    assert found == 0.25


def test_nothing_is_told_after_the_end(told):
    told.observer.close()
    assert value(told, "node_used_cpu_cores") is None
