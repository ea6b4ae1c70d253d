"""A small company's cluster with something on every page of the console."""

from api import names, resources
from api.wire import durations
from domain.daily_sums import effects, sums
from tests.manager.console import conftest as consoles

NODES = 60
DAY_SECONDS = 86_400.0
GIB = "Gi"


def name(number):
    return f"node-{number:02}"


async def play(world):
    """Create everything but what agents report."""
    await world.configure(colocation_config={"enable": True})
    for number in range(NODES):
        labels = {"topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}"}
        await _node(world, number, labels)
        for part in range(3):
            cpu = str(6 + (number * 5 + part * 3) % 11)
            pod = consoles.pod(f"web-{number}-{part}", node=name(number), cpu=cpu)
            await create(world, resources.PODS, pod, "team-a")
        cpu = str(2 + number % 9)
        batch = consoles.pod(f"report-{number}", node=name(number), batch=True, cpu=cpu)
        await create(world, resources.PODS, batch, "team-b")
    await _waiting(world)
    await _quotas(world)
    await _gang(world)
    await _devices(world)
    await _moves(world)
    await _days(world)


async def _days(world):
    """What agents did: three days of observing, then enforced; the fewer throttled."""
    days, now = (), world.clock.now()
    for ago in reversed(range(6)):
        date, watched = durations.moment(now - ago * DAY_SECONDS)[:10], NODES * DAY_SECONDS
        busy, enforced = 0.1 + 0.02 * ago, 0.0 if ago > 2 else 1.0
        held = 300.0 * busy * 3600
        did = effects.Effects(
            watched=watched, enforced=enforced * watched, known=watched, over=busy * watched,
            suppressed=held * enforced, would_suppress=held * (1 - enforced), measured=watched,
            throttled=(0.031 - 0.014 * enforced) * watched, evicted=(2 + ago) * enforced,
            evicted_online=0.0, would_evict=(9 + ago) * (1 - enforced),
            reasons={"memory-evict": effects.Reason(
                (2 + ago) * enforced, (9 + ago) * (1 - enforced))},
        )  # fmt: skip
        days = sums.added(days, date, sums.Rates(sums.Cluster(1.0), {}), DAY_SECONDS)
        days = sums.with_effects(days, date, did)
    body = {"metadata": {"name": names.CONFIG_MAP_REPORT}, "data": {sums.KEY: sums.text(days)}}
    await create(world, resources.CONFIG_MAPS, body, names.NAMESPACE)


async def measured(world):
    """Let agents report, and the manager lend."""
    for number in range(NODES):
        # Two nodes have not reported yet.
        if number % 29 != 11:
            await _report(world, number)
    await world.quiet()
    await world.clock.advance(1.0)
    await world.quiet()


async def _node(world, number, labels):
    await world.node(name(number), labels=labels)
    ready = {"type": "Ready", "status": "False" if number == 23 else "True"}
    await _status(world, resources.NODES, name(number), {"conditions": [ready]})


async def _report(world, number):
    """Report as the agent does: three online pods, one batch pod, and what the system uses."""
    online = [1 + (number * 7 + part * 5) % 16 for part in range(3)]
    batch = 1 + number % 5
    pods = [(f"web-{number}-{part}", "team-a", "koord-prod", cpu, cpu * 2)
            for part, cpu in enumerate(online)]  # fmt: skip
    pods.append((f"report-{number}", "team-b", "koord-batch", batch, batch * 4))
    figures = [
        {"namespace": namespace, "name": pod, "priority": band,
         "podUsage": {"resources": {"cpu": str(cpu), "memory": f"{memory}Gi"}}}
        for pod, namespace, band, cpu, memory in pods
    ]  # fmt: skip
    whole = {"cpu": str(sum(online) + batch + 1), "memory": f"{2 * sum(online) + 4 * batch + 6}Gi"}
    status = {
        "updateTime": durations.moment(world.clock.now()),
        "nodeMetric": {
            "nodeUsage": {"resources": whole},
            "systemUsage": {"resources": {"cpu": "1", "memory": "6Gi"}},
        },
        "podsMetric": figures,
    }
    await _status(world, resources.NODE_METRICS, name(number), status)


async def create(world, resource, body, namespace=""):
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return await world.admin.create(resource, {**head, **body}, namespace)


async def _status(world, resource, object_name, status, namespace=""):
    await world.admin.patch(
        resource, object_name, {"status": status}, namespace=namespace, subresource="status"
    )


async def _waiting(world):
    refusal = (
        "0/60 nodes are available: 58 Insufficient kubernetes.io/batch-cpu, "
        "2 node(s) had untolerated taint(s)."
    )
    for number in range(4):
        pod = f"whale-{number}"
        await create(world, resources.PODS, consoles.pod(pod, batch=True), "team-b")
        await _refused(world, pod, "team-b", refusal)
    await create(world, resources.PODS, consoles.pod("latecomer"), "team-a")
    load = "0/60 nodes are available: 60 node cpu usage exceeds the load-aware threshold."
    await _refused(world, "latecomer", "team-a", load)
    await create(world, resources.PODS, consoles.pod("newcomer"), "team-a")


async def _refused(world, pod, namespace, message):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [{**condition, "message": message}]
    await _status(world, resources.PODS, pod, {"conditions": conditions}, namespace)


async def _quotas(world):
    parents = (("company", "", "2600", "3600"), ("team-a", "company", "1600", "2800"),
               ("team-b", "company", "900", "1200"))  # fmt: skip
    for quota, parent, least, most in parents:
        labels = {names.LABEL_QUOTA_IS_PARENT: "true" if quota == "company" else "false"}
        if parent:
            labels[names.LABEL_QUOTA_PARENT] = parent
        spec = {
            "min": {"cpu": least, "memory": least + GIB},
            "max": {"cpu": most, "memory": most + GIB},
        }
        body = {"metadata": {"name": quota, "labels": labels}, "spec": spec}
        place = quota if parent else names.NAMESPACE
        await create(world, resources.ELASTIC_QUOTAS, body, place)


async def _gang(world):
    body = {"metadata": {"name": "train"}, "spec": {"minMember": 4}}
    await create(world, resources.POD_GROUPS, body, "team-a")
    for number in range(4):
        pod = consoles.pod(f"train-{number}", node=name(number) if number < 2 else "")
        pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"] = "train"
        await create(world, resources.PODS, pod, "team-a")


async def _devices(world):
    whole = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"}
    for number in range(6):
        listed = [
            {"type": "gpu", "minor": minor, "id": f"GPU-{number}-{minor}",
             "health": (number, minor) != (2, 5), "resources": whole}
            for minor in range(8)
        ]  # fmt: skip
        labels = {names.LABEL_GPU_MODEL: "H100" if number < 3 else "A100"}
        body = {"metadata": {"name": name(number), "labels": labels}, "spec": {"devices": listed}}
        await create(world, resources.DEVICES, body)
    for number, (minor, share) in enumerate(((0, 100), (1, 50), (5, 100))):
        pod = consoles.pod(f"gpu-{number}", node=name(2))
        amounts = {names.GPU_CORE: str(share), names.GPU_MEMORY_RATIO: str(share)}
        asked = pod["spec"]["containers"][0]["resources"]
        for part in ("requests", "limits"):
            asked[part] = {**asked[part], **amounts}
        held = f'{{"gpu":[{{"minor":{minor},"resources":{{"{names.GPU_CORE}":"{share}",'
        held += f'"{names.GPU_MEMORY_RATIO}":"{share}"}}}}]}}'
        pod["metadata"]["annotations"] = {names.ANNOTATION_DEVICE_ALLOCATED: held}
        await create(world, resources.PODS, pod, "team-a")


async def _moves(world):
    template = {"spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "8", "memory": "16Gi"}}}
    ]}}  # fmt: skip
    owners = [{"labelSelector": {"matchLabels": {"app": "nightly"}}}]
    spec = {"template": template, "owners": owners, "ttl": "24h"}
    for reserved in ("nightly", "nightly-large"):
        body = {"metadata": {"name": reserved}, "spec": spec}
        await create(world, resources.RESERVATIONS, body)
    status = {
        "phase": "Available", "nodeName": name(3), "allocatable": {"cpu": "8", "memory": "16Gi"},
        "allocated": {"cpu": "2", "memory": "4Gi"},
        "currentOwners": [{"namespace": "team-b", "name": "nightly-x", "uid": "x"}],
    }  # fmt: skip
    await _status(world, resources.RESERVATIONS, "nightly", status)
    moves = (("Succeeded", "", ""), ("Running", "WaitForPodEvict", "the pod is being evicted"),
             ("Failed", "Timeout", "no node had room for it within 5 minutes"))  # fmt: skip
    for number, (phase, reason, message) in enumerate(moves):
        body = {
            "metadata": {"name": f"move-{number}"},
            "spec": {"podRef": {"namespace": "team-a", "name": f"web-{number}-0"}},
        }
        await create(world, resources.POD_MIGRATION_JOBS, body)
        stated = {"phase": phase, "reason": reason, "message": message, "nodeName": name(9)}
        await _status(world, resources.POD_MIGRATION_JOBS, f"move-{number}", stated)
