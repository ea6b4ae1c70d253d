"""Whose cpu time the kernel favours where it has no group identity, measured on one cpu."""

import os
import pathlib
import sys

import pytest_asyncio

from agent.model import cgroup_layout
from tests.planes.host import kubepods

F = cgroup_layout.File
SECONDS = 1.5 if kubepods.version() == 1 else 4
IDENTITY = {
    "lsClass": {"cpuQOS": {"enable": True, "groupIdentity": 2}},
    "beClass": {"cpuQOS": {"enable": True, "groupIdentity": -1}},
}
THREADS = (
    "import threading, time\n"
    "for _ in range(2): threading.Thread(target=time.sleep, args=(1000,)).start()\n"
    "print(flush=True)\n"
)


@pytest_asyncio.fixture
async def node(tmp_path):
    groups = kubepods.Groups(f"koord-identity-{os.getpid()}")
    node = kubepods.Node(groups, tmp_path)
    try:
        yield node
        node.uninstall()
    finally:
        await groups.remove()


@pytest_asyncio.fixture
async def rivals(node):
    """An online and a best-effort container that both want all of one cpu."""
    cpu = kubepods.all_cpus().replace("-", ",").split(",")[-1]
    found = {}
    for name, kind in (("online", "Burstable"), ("batch", "BestEffort")):
        _, found[name] = node.pod(name, kind)
        node.groups.write(F.CPUSET, found[name], cpu)
        node.groups.burn(found[name])
    return found


async def share(node, rivals):
    """Return the part of the cpu time of both that the online container got over a while."""
    before = {name: node.groups.cpu_seconds(group) for name, group in rivals.items()}
    await node.clock.sleep(SECONDS)
    got = {name: node.groups.cpu_seconds(group) - before[name] for name, group in rivals.items()}
    return got["online"] / sum(got.values())


def weigh(node, kind, shares):
    first = node.groups.version == 1
    text = str(shares) if first else str(max(shares * 100 // 1024, 1))
    node.groups.write(F.CPU_SHARES, node.groups.layout.qos_group(kind), text)


def policies(node, group):
    """Return the policy of every thread in a group."""
    name = "tasks" if node.groups.version == 1 else "cgroup.threads"
    threads = pathlib.Path(node.groups.layout.folder(F.CPU_SHARES, group), name).read_text().split()
    return [os.sched_getscheduler(int(thread)) for thread in threads]


async def test_an_idle_class_leaves_the_cpu_to_online_work_and_gets_it_back(node, rivals):
    class_ = node.groups.layout.qos_group("BestEffort")
    equal = await share(node, rivals)
    batch = {**IDENTITY["beClass"]["cpuQOS"], "schedIdle": 1}
    node.enforce(resourceQOSStrategy={**IDENTITY, "beClass": {"cpuQOS": batch}})
    await node.seconds(1)
    assert node.groups.text(F.CPU_IDLE, class_) == "1"
    held = await share(node, rivals)
    node.uninstall()
    assert node.groups.text(F.CPU_IDLE, class_) == "0"
    # What it ran while it was idle counts a hundredfold, and the kernel first makes up for that.
    again = held
    for _ in range(10):
        if again > 0.75:
            again = await share(node, rivals)
    print(
        f"share of online work: {equal:.3f} with equal weights, {held:.3f} with an idle class, "
        f"{again:.3f} after undo"
    )
    assert 0.3 < equal < 0.7
    assert held > 0.9
    assert 0.25 < again <= 0.75


async def test_the_idle_policy_leaves_what_groups_get_to_their_weights(node, rivals):
    """It ranks threads within a group; between groups it is the kubelet's weights that count."""
    node.enforce(resourceQOSStrategy=IDENTITY)
    await node.seconds(1)
    assert set(policies(node, rivals["batch"])) == {os.SCHED_IDLE}
    equal = await share(node, rivals)
    weigh(node, "BestEffort", 2)
    weighed = await share(node, rivals)
    print(
        f"share of online work with best effort under the idle policy: {equal:.3f} with equal "
        f"weights, {weighed:.3f} with those of a kubelet"
    )
    assert 0.3 < equal < 0.7
    assert weighed > 0.9


async def test_every_thread_has_the_policy_until_undo(node):
    _, batch = node.pod("batch", "BestEffort")
    _, online = node.pod("online", "Burstable")
    for group in (batch, online):
        node.groups.start(group, f"exec {sys.executable} -S -E -c '{THREADS}'")
    await node.until(lambda: len(policies(node, batch)) == 3, 60)
    await node.until(lambda: len(policies(node, online)) == 3, 60)
    node.enforce(resourceQOSStrategy=IDENTITY)
    await node.seconds(1)
    assert policies(node, batch) == [os.SCHED_IDLE] * 3
    assert policies(node, online) == [os.SCHED_OTHER] * 3
    node.uninstall()
    assert policies(node, batch) == [os.SCHED_OTHER] * 3
