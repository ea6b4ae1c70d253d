"""NodeMetric and NodeSLO, one per node: made, kept, left to people, removed."""

import pytest

from api import names, resources
from domain.cluster_settings import node_slo
from kube.client import client
from manager.reconcile import node_objects

CONFIG = names.CONFIG_MAP_SLO
BOTH = pytest.mark.parametrize(
    "kind", [resources.NODE_METRICS, resources.NODE_SLOS], ids=lambda kind: kind.kind
)


def made_by_hand(kind, name, spec, **metadata):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


@BOTH
async def test_come_and_go_with_their_node(world, kind) -> None:
    await world.node("n1")
    async with world.manager():
        assert world.stored(kind, "n1")
        await world.node("n2")
        await world.until(lambda: world.stored(kind, "n2"))
        await world.admin.delete(resources.NODES, "n1")
        await world.until(lambda: not world.stored(kind, "n1"))
        assert world.stored(kind, "n2")


@BOTH
async def test_second_run_writes_nothing(world, kind) -> None:
    await world.node("n1")
    async with world.manager():
        await world.pass_time(3)
    version = world.stored(kind, "n1")["metadata"]["resourceVersion"]
    everything = world.plane.objects.version
    async with world.manager():
        await world.pass_time(2)
    assert world.stored(kind, "n1")["metadata"]["resourceVersion"] == version
    assert world.plane.objects.version == everything


@BOTH
async def test_what_happened_unseen_is_made_good(world, kind) -> None:
    await world.node("n1")
    await world.node("n2")
    async with world.manager():
        pass
    await world.admin.delete(kind, "n1")
    await world.admin.delete(resources.NODES, "n2")
    async with world.manager():
        assert world.stored(kind, "n1")
        assert not world.stored(kind, "n2")


@BOTH
async def test_removed_by_hand_comes_back(world, kind) -> None:
    await world.node("n1")
    async with world.manager():
        await world.admin.delete(kind, "n1")
        await world.until(lambda: world.stored(kind, "n1"))


@BOTH
async def test_object_of_no_node_is_kept_and_told_that_it_has_no_effect(world, kind) -> None:
    await world.admin.create(kind, made_by_hand(kind, "node-sample", {}))
    async with world.manager():
        await world.until(lambda: node_objects.NO_SUCH_NODE in world.reasons("node-sample"))
        (condition,) = world.stored(kind, "node-sample")["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Effective", "False")
        assert "there is no node node-sample" in condition["message"]
        await world.node("node-sample")
        await world.until(
            lambda: world.stored(kind, "node-sample")["status"]["conditions"][0]["status"] == "True"
        )
        await world.admin.delete(resources.NODES, "node-sample")
        await world.until(
            lambda: (
                world.stored(kind, "node-sample")["status"]["conditions"][0]["status"] == "False"
            )
        )
    assert world.stored(kind, "node-sample")


@BOTH
async def test_what_the_agent_says_in_the_status_stays(world, kind) -> None:
    enforced = {"type": "Enforced", "status": "True", "reason": "Enforced", "message": "all"}
    await world.admin.create(kind, made_by_hand(kind, "n1", {}))
    said = {"status": {"conditions": [enforced]}}
    await world.admin.patch(kind, "n1", said, subresource="status")

    def conditions():
        return {one["type"]: one for one in world.stored(kind, "n1")["status"]["conditions"]}

    async with world.manager():
        await world.until(lambda: "Effective" in conditions())
        assert conditions()["Enforced"] == enforced
        await world.node("n1")
        await world.until(lambda: conditions()["Effective"]["status"] == "True")
    assert conditions()["Enforced"] == enforced


async def test_nodes_get_what_their_entry_says(world) -> None:
    await world.node("n1", labels={"pool": "gold"})
    await world.node("n2")
    entry = {"nodeSelector": {"matchLabels": {"pool": "gold"}}, "cpuSuppressThresholdPercent": 75}
    await world.configure(
        resource_threshold_config={"clusterStrategy": {"enable": True}, "nodeStrategies": [entry]}
    )
    async with world.manager():
        thresholds = [
            world.stored(resources.NODE_SLOS, name)["spec"]["resourceUsedThresholdWithBE"]
            for name in ("n1", "n2")
        ]
    assert [item["cpuSuppressThresholdPercent"] for item in thresholds] == [75, 65]
    assert all(item["enable"] for item in thresholds)


async def test_fields_that_a_person_owns_are_left(world) -> None:
    await world.node("n1")
    async with world.manager():
        body = made_by_hand(resources.NODE_SLOS, "n1", {"cpuBurstStrategy": {"policy": "auto"}})
        await world.admin.patch(
            resources.NODE_SLOS,
            "n1",
            body,
            kind=client.Patch.APPLY,
            field_manager="kubectl",
            force=True,
        )
        await world.until(lambda: node_objects.FIELDS_LEFT in world.reasons("n1"))
        await world.configure(
            cpu_burst_config={"clusterStrategy": {"policy": "cpuBurstOnly", "cpuBurstPercent": 500}}
        )
        await world.until(lambda: burst(world)["cpuBurstPercent"] == 500)
        assert burst(world)["policy"] == "auto"
        assert world.reasons("n1").count(node_objects.FIELDS_LEFT) == 1


def burst(world):
    return world.stored(resources.NODE_SLOS, "n1")["spec"]["cpuBurstStrategy"]


async def test_thresholds_in_shorthand_are_not_contradicted(world) -> None:
    shorthand = {"enable": True, "thresholds": {"cpu-suppress-percent": 40}}
    body = made_by_hand(resources.NODE_SLOS, "n1", {"resourceThresholdStrategy": shorthand})
    await world.admin.create(resources.NODE_SLOS, body)
    await world.node("n1")
    async with world.manager():
        spec = world.stored(resources.NODE_SLOS, "n1")["spec"]
    assert spec["resourceThresholdStrategy"] == shorthand
    assert spec["resourceUsedThresholdWithBE"]["memoryEvictThresholdPercent"] == 70
    assert "cpuSuppressThresholdPercent" not in spec["resourceUsedThresholdWithBE"]
    assert "enable" not in spec["resourceUsedThresholdWithBE"]


async def test_block_io_in_shorthand_completes_what_the_cluster_says(world) -> None:
    await world.node("n1")
    block = {"name": "/dev/vda", "type": "device", "ioCfg": {"readIOPS": 100}}
    blocks = {"blkioQOS": {"enable": True, "blocks": [block]}}
    await world.configure(resource_qos_config={"clusterStrategy": {"beClass": blocks}})
    async with world.manager():
        shorthand = {"resourceQOSStrategy": {"beClass": {"blkIOQOS": {"enable": True}}}}
        await world.admin.patch(
            resources.NODE_SLOS, "n1", {"spec": shorthand}, field_manager="kubectl"
        )
        await world.until(lambda: "enable" not in best_effort(world)["blkioQOS"])
    assert best_effort(world)["blkioQOS"] == {"blocks": [block]}
    enforced = node_slo.read(world.stored(resources.NODE_SLOS, "n1")).classes["beClass"].blkio_qos
    assert enforced is not None
    assert enforced.wire() == {"enable": True, "blocks": [block]}


def best_effort(world):
    return world.stored(resources.NODE_SLOS, "n1")["spec"]["resourceQOSStrategy"]["beClass"]


async def test_drift_is_set_right(world) -> None:
    await world.node("n1")
    async with world.manager():
        # Written under our own name, as an earlier version of ours might have.
        await world.admin.patch(
            resources.NODE_SLOS,
            "n1",
            made_by_hand(
                resources.NODE_SLOS,
                "n1",
                {"cpuBurstStrategy": {"cpuBurstPercent": 7}},
                labels={names.LABEL_CREATED_BY: "koord-manager"},
            ),
            kind=client.Patch.APPLY,
            field_manager="koord-manager",
        )
        await world.until(lambda: burst(world)["cpuBurstPercent"] == 1000)


async def test_bandwidth_of_a_node_reaches_its_slo(world) -> None:
    await world.node("n1", annotations={names.ANNOTATION_NETWORK_BANDWIDTH: "25G"})
    async with world.manager():
        assert world.stored(resources.NODE_SLOS, "n1")["spec"]["systemStrategy"] == {
            "totalNetworkBandwidth": "25G"
        }


async def test_report_interval_by_configuration_and_by_hand(world) -> None:
    await world.node("n1")
    await world.node("n2")
    by_hand = {"metricCollectPolicy": {"aggregateDurationSeconds": 60, "reportIntervalSeconds": 15}}
    await world.admin.create(
        resources.NODE_METRICS, made_by_hand(resources.NODE_METRICS, "n2", by_hand)
    )
    await world.configure(colocation_config={"enable": True, "metricReportIntervalSeconds": 20})
    async with world.manager():
        policies = [
            world.stored(resources.NODE_METRICS, name)["spec"]["metricCollectPolicy"]
            for name in ("n1", "n2")
        ]
        assert [policy["reportIntervalSeconds"] for policy in policies] == [20, 15]
        assert [policy["aggregateDurationSeconds"] for policy in policies] == [300, 60]
        assert policies[1]["nodeMemoryCollectPolicy"] == "usageWithoutPageCache"
        await world.configure(colocation_config={"enable": True, "metricReportIntervalSeconds": 30})
        await world.until(
            lambda: (
                world.stored(resources.NODE_METRICS, "n1")["spec"]["metricCollectPolicy"][
                    "reportIntervalSeconds"
                ]
                == 30
            )
        )


async def test_an_interval_in_shorthand_counts_while_settings_are_in_error(world) -> None:
    await world.node("n1")
    async with world.manager():
        await world.configure(colocation_config="{")
        await world.until(lambda: "ColocationCfgUnmarshalFailed" in world.reasons(CONFIG))
        await world.admin.patch(
            resources.NODE_METRICS, "n1", {"spec": {"collectionIntervalSeconds": 15}}
        )
        await world.until(
            lambda: (
                "reportIntervalSeconds"
                not in world.stored(resources.NODE_METRICS, "n1")["spec"]["metricCollectPolicy"]
            )
        )
    spec = world.stored(resources.NODE_METRICS, "n1")["spec"]
    assert spec["collectionIntervalSeconds"] == 15
    assert spec["metricCollectPolicy"]["aggregateDurationSeconds"] == 300


async def test_an_interval_in_shorthand_counts_before_settings_were_readable(world) -> None:
    await world.node("n1")
    async with world.manager():
        pass
    await world.configure(colocation_config="{")
    await world.admin.patch(
        resources.NODE_METRICS, "n1", {"spec": {"collectionIntervalSeconds": 15}}
    )
    await world.node("n2")
    async with world.manager():
        policy = world.stored(resources.NODE_METRICS, "n1")["spec"]["metricCollectPolicy"]
        assert "reportIntervalSeconds" not in policy
        assert not world.stored(resources.NODE_METRICS, "n2")


@BOTH
async def test_object_of_no_node_is_told_while_settings_were_never_readable(world, kind) -> None:
    await world.configure(colocation_config="{")
    await world.admin.create(kind, made_by_hand(kind, "node-sample", {}))
    async with world.manager():
        await world.until(lambda: node_objects.NO_SUCH_NODE in world.reasons("node-sample"))


async def test_reports_do_not_disturb_the_settings_of_a_metric(world) -> None:
    await world.node("n1")
    async with world.manager(controllers=("nodemetric",)) as app:
        await world.report("n1", "3")
        await world.quiet()
        assert (
            app.registry.value(
                "koord_manager_writes_total", {"resource": "nodemetrics", "write": "apply"}
            )
            == 1
        )
