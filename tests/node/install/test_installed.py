"""The chart on an empty cluster: every component is a ready pod of the image, in whatever order."""

import asyncio
import json
import random
import re

import pytest_asyncio

from api import names, resources
from deploy.image import build
from runtimeproxy.cri import messages
from tests.planes import raw
from tests.planes.node import node, node_cluster, node_release
from tests.runtimeproxy import stand_in

BAD = re.compile(r"^.*(?:level=error|Traceback).*$", re.MULTILINE)
SEED = 18
REVIEWS, AT_ONCE = 160, 16
PROBE = "default"
TENANTS = "tenants"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def release(programs, image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    async with node_release.running(folder, programs, (image, build.reference(image))) as made:
        yield made


async def test_components_become_ready_in_any_order_with_the_same_result(release):
    """Each starts before the next one is there; then, the other way round, all start at once."""
    order = random.Random(SEED).sample(node_release.PARTS, len(node_release.PARTS))
    pods = []
    for part in order:
        pods.append(await release.start(part))
        await release.runs(pods[-1])
    for pod in pods:
        await release.ready(pod)
    first = await release.result()
    await release.forget()
    pods = [await release.start(part) for part in reversed(order)]
    for pod in pods:
        await release.ready(pod)
    assert await release.result() == first
    for pod in pods:
        assert not BAD.findall(await release.said(pod))


async def test_the_proxy_answers_as_the_runtime_does(release):
    real = release.node
    path, answers = messages.path("ListContainers"), []
    for socket in (node_release.SOCKET, node.CONTAINERD):
        kubelet = stand_in.Kubelet(f"/proc/{real.pid}/root{socket}")
        found, _ = await kubelet.call(path, b"")
        kubelet.close()
        listed = messages.read("ListContainersResponse", found[0]).containers
        answers.append({one.id for one in listed})
    assert answers[0] == answers[1] != set()


async def test_replicas_of_the_webhook_share_the_load(release):
    pods = resources.PODS.path(PROBE)
    before = await release.figures("webhook", "koord_webhook_reviews_total")
    assert len(before) == 2
    gate = asyncio.Semaphore(AT_ONCE)

    async def create(number):
        async with gate:
            pod = node_cluster.pod(f"tried-{number}")
            await release.api.post(pods, pod, dryRun="All")

    await asyncio.gather(*map(create, range(REVIEWS)))
    after = await release.figures("webhook", "koord_webhook_reviews_total")
    shares = [late - early for early, late in zip(before, after, strict=True)]
    # Each is reviewed twice, to be changed and to be checked.
    assert sum(shares) >= 2 * REVIEWS
    assert min(shares) > REVIEWS / 20, shares


async def test_a_batch_pod_is_changed_placed_and_run_by_pods_alone(release):
    api = release.api
    await api.post(resources.NAMESPACES.path(), {"metadata": {"name": TENANTS}})
    account = resources.SERVICE_ACCOUNTS.path(TENANTS, "default")
    await api.wait_until(account, lambda found: found is not None, node_cluster.PATIENCE)
    profile = node_cluster.profile(node_cluster.ENABLE, "koord-batch")
    labels = {names.LABEL_NAMESPACE_NAME: TENANTS}
    profile["spec"]["namespaceSelector"]["matchLabels"] = labels
    profile["spec"]["schedulerName"] = "koord-scheduler"
    await node_cluster.apply(api, profile)
    small = {"cpu": "100m", "memory": "32Mi"}
    pods = resources.PODS.path(TENANTS)

    async def changed():
        body = node_cluster.pod(
            "batch", labels=node_cluster.ENABLE, resources={"requests": small, "limits": small}
        )
        pod = await api.post(pods, body)
        if pod["spec"]["schedulerName"] == "koord-scheduler":
            return True
        # The webhook has not heard of the profile yet.
        await api.delete(f"{pods}/batch", gracePeriodSeconds="0")
        return False

    await raw.eventually(changed, node_cluster.PATIENCE)
    pod = await api.wait_until(f"{pods}/batch", node_cluster.runs, node_cluster.PATIENCE)
    asked = pod["spec"]["containers"][0]["resources"]["requests"]
    assert asked == {names.BATCH_CPU: "100", names.BATCH_MEMORY: "32Mi"}
    placement = json.loads(pod["metadata"]["annotations"][names.PLACEMENT])
    assert placement["node"] == node_release.NODE
    assert pod["status"]["qosClass"] == "BestEffort"


async def test_helm_test_passes(release):
    told, said = await release.helm_with_pod("test", "test", node_release.RELEASE)
    assert told.count("Phase:          Succeeded") == told.count("TEST SUITE:")
    for fine in (
        "every part that was installed is ready",
        "the API server calls the webhook",
        "the extender answers",
    ):
        assert fine in said


async def test_helm_uninstall_leaves_nothing_of_ours(release):
    """The hook's Job runs in the cluster, out of the image."""
    await release.helm_with_pod("uninstall", "uninstall", node_release.RELEASE)
    api = release.api
    for resource in (*node_release.WEBHOOKS, resources.NODE_METRICS):
        listed = (await api.get(resource.path()))["items"]
        assert [one for one in listed if "koord" in one["metadata"]["name"]] == []
    found = await api.get(resources.NODES.path(name=node_release.NODE))
    assert not set(names.BATCH_RESOURCES) & set(found["status"]["allocatable"])
