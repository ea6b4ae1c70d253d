"""The examples of quotas that users bring along, step by step."""

import copy
import pathlib

import pytest
import yaml

from tests.planes import raw

FOLDER = pathlib.Path(__file__).parent.parent.parent / "manifests"
pytestmark = pytest.mark.timeout(120)


def example(name):
    (document,) = [d for d in yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()) if d]
    return document


def placeable(here, pod):
    """A pod, or the template of one, for the nodes of this test, which no kubelet stops."""
    changed = copy.deepcopy(pod)
    changed["spec"] |= {
        "nodeSelector": {"world": here.id},
        "tolerations": [
            {"key": "world", "operator": "Equal", "value": here.id, "effect": "NoSchedule"}
        ],
        "terminationGracePeriodSeconds": 0,
    }
    return changed


async def create(teams, name):
    """Create what an example says, in its own namespace."""
    document = example(name)
    if document["kind"] == "Pod":
        document = placeable(teams.here, document)
    if document["kind"] == "Deployment":
        document["spec"]["template"] = placeable(teams.here, document["spec"]["template"])
    return await teams.apply(document)


def address(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


@pytest.mark.parametrize("kind", ["label", "namespace"])
async def test_the_second_pod_waits_until_the_first_one_is_deleted(teams, kind):
    quota = example(f"004-{kind}-isolation-quota")
    await teams.here.node("a")
    if kind == "namespace":
        await create(teams, "support-namespace-quota-by-namespace")
    await create(teams, f"004-{kind}-isolation-quota")
    await teams.known(quota["metadata"]["name"])
    first = address(await create(teams, f"004-{kind}-isolation-pod-1"))
    await teams.api.wait_until(first, lambda pod: pod["spec"].get("nodeName"))
    second = address(await create(teams, f"004-{kind}-isolation-pod-2"))
    place = quota["metadata"]
    path = (
        "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/"
        f"{place['namespace']}/elasticquotas/{place['name']}"
    )
    await teams.used(path, cpu="60m", memory="60Mi")
    sentence = await teams.told(second)
    assert "Insufficient quotas" in sentence
    assert f"quotaName: {place['name']}" in sentence
    began = teams.now()
    await teams.api.delete(first, gracePeriodSeconds="0")
    await teams.api.wait_until(second, lambda pod: pod["spec"].get("nodeName"))
    # On quiet cores it takes a fraction of that.
    assert teams.now() - began < 10


async def test_a_high_priority_pod_takes_the_place_of_one_low_one_of_its_quota(teams):
    await teams.here.node("a")
    await teams.here.node("b")
    for name in ("priorityclass-low", "priorityclass-high", "quota"):
        await create(teams, f"004-label-preemption-{name}")
    await teams.known("quota-preemption")
    outside = await teams.quota("outside", min={"memory": "30Mi"}, max={"memory": "30Mi"})
    await teams.usable("quota-low")
    await teams.usable("quota-high")
    bystander = {"priorityClassName": "quota-low", "requests": {"memory": "10Mi"}}
    await teams.pods(outside, "bystander", 1, "0", **bystander)
    await create(teams, "004-label-preemption-deployment-low")
    await teams.settled(**{"quota-preemption": 3}, namespace="default")
    await create(teams, "004-label-preemption-pod-high")
    path = "/api/v1/namespaces/default/pods/quota-preemption-high"
    await teams.api.wait_until(path, lambda pod: pod["spec"].get("nodeName"))
    await teams.settled(**{"quota-preemption": 3}, namespace="default")
    bound = await teams.bound("quota-preemption", "default")
    assert len([name for name in bound if name.startswith("quota-preemption-low")]) == 2
    assert "quota-preemption-high" in bound

    # The replacement of the Deployment waits; nobody of another quota was touched.
    async def replaced():
        pods = await teams.api.get("/api/v1/namespaces/default/pods")
        listed = {pod["metadata"]["name"] for pod in pods["items"]}
        return {name for name in listed if name.startswith("quota-preemption-low")} - set(bound)

    (waiting,) = await raw.eventually(replaced, raw.PATIENCE)
    sentence = await teams.told(f"/api/v1/namespaces/default/pods/{waiting}")
    assert "quotaName: quota-preemption" in sentence
    assert await teams.bound(outside) == ["bystander-0"]
