"""Pods get CPUs and devices on nodes of several shapes; objects, recount and pages agree."""

import itertools

from aiohttp import web

from tests.planes import raw
from tests.planes.devices import device_recount
from tests.planes.devices.device_recount import cpuset, minors

FULL_PCPUS = {"requiredCPUBindPolicy": "FullPCPUs"}
SPREAD = {"requiredCPUBindPolicy": "SpreadByPCPUs"}


async def test_latency_critical_pods_get_cores_of_their_own(machines):
    zones = await machines.machine("zones")
    aligned = await machines.machine("aligned")
    for place, node in itertools.product(range(2), (zones, aligned)):
        selector = {"kubernetes.io/hostname": node}
        more = {"nodeSelector": selector}
        await machines.exclusive(f"{node}-full-{place}", 4, spec=FULL_PCPUS, **more)
        await machines.exclusive(f"{node}-spread-{place}", 2, spec=SPREAD, **more)
    on = {node: machines.shapes[node] for node in (zones, aligned)}
    for node, shape in on.items():
        cores = {one["id"]: (one["core"], one["node"]) for one in shape.cpu_table()}
        full = await machines.on(node, f"{node}-full-0", f"{node}-full-1")
        spread = await machines.on(node, f"{node}-spread-0", f"{node}-spread-1")
        for pod in full:
            assert len({cores[cpu][0] for cpu in cpuset(pod)}) == 2, "whole cores"
        for pod in spread:
            assert len({cores[cpu][0] for cpu in cpuset(pod)}) == 2, "one CPU of each core"
        for pod in (*full, *spread):
            zones_held = {cores[cpu][1] for cpu in cpuset(pod)}
            assert len(zones_held) == 1, "of one NUMA node"
            if shape.policy:
                amounts = {"cpu": str(len(cpuset(pod))), "memory": "1Gi"}
                (zone,) = zones_held
                assert device_recount.annotation(pod, device_recount.STATUS)[
                    "numaNodeResources"
                ] == [{"node": zone, "resources": amounts}]
    await machines.agree()


async def test_big_jobs_get_cards_beside_their_gpus_until_the_node_is_full(machines):
    node = await machines.machine("eight")
    await machines.job("half", gpus=4, cards=2)
    (half,) = await machines.on(node, "half")
    assert minors(half) in ([0, 1, 2, 3], [4, 5, 6, 7])
    near = [minor // 4 for minor in minors(half)]
    assert {minor // 2 for minor in minors(half, "rdma")} == set(near)
    await machines.job("whole", gpus=8, cards=4)
    message = await machines.here.refused("whole", "Insufficient")
    assert "1 Insufficient" in message
    await machines.agree()
    await machines.here.remove("half")
    (whole,) = await machines.on(node, "whole")
    assert minors(whole) == list(range(8))
    assert sorted(minors(whole, "rdma")) == [0, 1, 2, 3]
    await machines.share("late", 10)
    await machines.here.refused("late", "Insufficient")
    await machines.agree()


async def test_a_bind_that_fails_gives_everything_back(machines):
    node = await machines.machine("pair")
    refused = []

    async def fail(call):
        if call.is_binding and not refused:
            refused.append(call.path)
            body = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"}
            return web.json_response(body, status=403)
        return None

    machines.uplink.before = fail
    await machines.job("job", gpus=2, cards=1, annotations={})
    (job,) = await machines.on(node, "job")
    assert len(refused) == 1
    assert sorted(minors(job)) == [0, 1]
    await machines.agree()
    await machines.here.remove("job")

    async def free():
        _, page = await machines.pages(node)
        return page["deviceFreeDetail"] == page["deviceTotalDetail"]

    await raw.eventually(free, raw.PATIENCE)
    await machines.agree()


async def test_gpus_that_fail_are_given_to_nobody_and_come_back_as_they_were(machines):
    node = await machines.machine("pair")
    await machines.share("first")
    (first,) = await machines.on(node, "first")
    (sick,) = minors(first)
    await machines.report(node, sick=(sick,))

    async def unhealthy():
        _, page = await machines.pages(node)
        return [one["minor"] for one in page["devices"] if not one["healthy"]] == [sick]

    await raw.eventually(unhealthy, raw.PATIENCE)
    await machines.share("second", 100)
    (second,) = await machines.on(node, "second")
    assert minors(second) == [1 - sick]
    await machines.share("third")
    await machines.here.refused("third", "Insufficient GPU Devices")
    await machines.agree()
    await machines.report(node)
    (third,) = await machines.on(node, "third")
    assert minors(third) == [sick], "the half that nobody has"
    await machines.agree()
