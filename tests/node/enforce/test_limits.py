"""What the agent sets for real pods, read back from their containers' own groups."""

import contextlib

import pytest_asyncio

from tests.planes import raw
from tests.planes.node import node_cluster, node_groups, node_standing


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def calm(cluster, enforcing):
    """Nothing is suppressed or evicted here, and nobody may burst unless a test says so."""
    await cluster.strategy(enable=False)
    await cluster.strategy("cpu-burst", policy="none")


async def stand(cluster, expected):
    """Wait until files hold what was worked out by hand."""
    with contextlib.suppress(TimeoutError):

        async def check():
            return node_standing.values(cluster, expected) == expected

        await raw.eventually(check, node_cluster.PATIENCE)
    assert node_standing.values(cluster, expected) == expected


async def test_batch_resources_become_shares_quota_and_memory_limit(cluster, standing):
    await stand(cluster, standing.batch())
    for (role, group), value in standing.batch().items():
        print(f"{role} {value} of {group.rpartition('/')[2][:16]}")


async def test_under_a_quota_for_the_class_its_pods_have_none(cluster, standing):
    quotas = {key: "-1" for key in standing.batch() if key[0] == "cpu-quota"}
    await cluster.strategy(**node_cluster.HOLD | {"cpuSuppressThresholdPercent": 90})
    await stand(cluster, quotas)


async def test_the_memory_limit_is_real(cluster, standing):
    """For its kubelet the container has no limit; the kernel ends it where the agent set one."""
    limit = 32 * node_standing.MEBIBYTE
    own = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
    words = (
        f'until [ "$(cat {own})" = {limit} ]; do sleep 0.2; done; '
        "exec dd if=/dev/zero of=/dev/null bs=96M count=1"
    )
    asked = {"cpu": "20m", "memory": "32Mi"}
    await cluster.create(
        "hungry",
        labels=node_cluster.ENABLE,
        resources={"requests": asked, "limits": asked},
        container={"command": ["sh", "-c", words]},
        restartPolicy="Never",
    )
    try:
        found = await cluster.api.wait_until(
            f"{node_cluster.PODS}/hungry",
            lambda pod: pod["status"].get("phase") in ("Failed", "Succeeded"),
            node_cluster.PATIENCE,
        )
        (status,) = found["status"]["containerStatuses"]
        ended = status["state"]["terminated"]
        print(f"with a limit of {limit} bytes: {ended['reason']}, exit code {ended['exitCode']}")
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    finally:
        await cluster.remove("hungry")


async def test_a_bound_pod_runs_on_its_cpus_and_nobody_else_does(cluster, standing):
    await stand(cluster, standing.cpusets())
    online = standing.group("online", "main")
    for name, group in (("bound", standing.group("bound", "main")), ("online", online)):
        allowed = [standing.cpus[-1]] if name == "bound" else standing.cpus[:-1]
        folder = cluster.node.group("cpuacct", group)
        begin = spent(folder)

        async def worked(folder=folder, begin=begin):
            return sum(spent(folder)) - sum(begin) > 100_000_000

        await raw.eventually(worked, node_cluster.PATIENCE)
        used = [after - before for before, after in zip(begin, spent(folder), strict=True)]
        print(f"{name} used {[round(one / 1e6) for one in used]} ms of the cpus")
        assert all(one == 0 for cpu, one in enumerate(used) if cpu not in allowed)


def spent(folder):
    """Nanoseconds that a group has worked on each cpu."""
    return [int(word) for word in (folder / "cpuacct.usage_percpu").read_text().split()]


async def throttled(cluster, group, seconds, least=0.0):
    """How long a group worked, at least so long, and was held meanwhile, at least so long too."""
    usage, stat = (cluster.node.group(name, group) for name in ("cpuacct", "cpu"))

    def now():
        held = node_groups.fields(stat, "cpu.stat")["throttled_time"]
        return node_groups.figure(usage, "cpuacct.usage") / 1e9, held / 1e9

    begin = now()

    async def enough():
        worked, held = (end - start for end, start in zip(now(), begin, strict=True))
        return (worked, held) if worked > seconds and held >= least else None

    return await raw.eventually(enough, node_cluster.PATIENCE)


async def test_bursts_save_a_spiky_online_container_from_being_held(cluster, standing):
    group, beats = standing.group("online", "main"), 12
    none = dict.fromkeys(standing.bursts(), "0")
    await stand(cluster, none)
    # Where others keep it from the cpu it is held less, so that this takes more beats.
    seconds = beats * node_standing.BEAT_SECONDS
    worked, without = await throttled(cluster, group, seconds, least=0.1)
    await cluster.strategy("cpu-burst", policy="auto")
    await stand(cluster, standing.bursts())
    again, with_burst = await throttled(cluster, group, worked)
    ratio = (with_burst / again) / (without / worked)
    print(f"held {without:.3f} s while it worked {worked:.2f} s, with burst {with_burst:.3f} s")
    print(f"while it worked {again:.2f} s: ratio {ratio:.3f}")
    assert ratio < 1
    await cluster.strategy("cpu-burst", policy="none")
    limits = {("cpu-quota", standing.group("online", one)): "30000" for one in (None, "main")}
    await stand(cluster, none | limits)
