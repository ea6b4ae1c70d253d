"""Status, binding and eviction: the writes that have a path of their own."""

import pytest
import pytest_asyncio

from tests.planes import raw


def binding(pod, node, **changes):
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {**meta, **changes},
        "target": {"kind": "Node", "name": node},
    }


async def bound(here, name, node, pod):
    """Bind a pod, and wait until the API server deletes it as one that has a node.

    The API server tries a deletion on its cached copy first. As long as that has no node, the
    grace period becomes zero, and stays so when it tries again on the newest version.
    """
    path = here.path("pods", name)
    await here.api.post(f"{path}/binding", binding(pod, node))
    written = await here.api.get(path)
    # Answered from the watch cache, once it holds that version.
    await here.api.get(path, resourceVersion=written["metadata"]["resourceVersion"])


async def test_a_binding_places_the_pod_and_merges_annotations(here):
    node = await here.node("a")
    pod = await here.pod("web", annotations={"mine": "kept"}, schedulerName="nobody")
    body = binding(pod, node, uid=pod["metadata"]["uid"], annotations={"koord.sh/placement": "{}"})
    await here.api.post(here.path("pods", "web", "binding"), body)
    bound = await here.api.get(here.path("pods", "web"))
    assert bound["spec"]["nodeName"] == node
    assert bound["metadata"]["annotations"] == {"mine": "kept", "koord.sh/placement": "{}"}
    (condition,) = [c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert condition["status"] == "True"


async def test_a_binding_replaces_an_annotation_that_the_pod_has(here):
    """So the record of a plan is that of the extender that has bound the pod."""
    node = await here.node("a")
    pod = await here.pod("web", annotations={"koord.sh/plan": "a"}, schedulerName="nobody")
    body = binding(pod, node, uid=pod["metadata"]["uid"], annotations={"koord.sh/plan": "b"})
    await here.api.post(here.path("pods", "web", "binding"), body)
    bound = await here.api.get(here.path("pods", "web"))
    assert bound["metadata"]["annotations"] == {"koord.sh/plan": "b"}


async def test_a_bound_pod_cannot_be_bound_again(here):
    node = await here.node("a")
    pod = await here.pod("web", schedulerName="nobody")
    path = here.path("pods", "web", "binding")
    await here.api.post(path, binding(pod, node))
    answer = await here.api.call("POST", path, binding(pod, node))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f'pod web is already assigned to node "{node}"' in answer.message


async def test_a_binding_for_another_uid_conflicts(here):
    pod = await here.pod("web", schedulerName="nobody")
    body = binding(pod, "somewhere", uid="11111111-1111-1111-1111-111111111111")
    answer = await here.api.call("POST", here.path("pods", "web", "binding"), body)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_binding_of_nothing_is_not_found(here):
    ghost = {"metadata": {"name": "ghost", "namespace": here.namespace}}
    answer = await here.api.call(
        "POST", here.path("pods", "ghost", "binding"), binding(ghost, "somewhere")
    )
    assert answer.status == 404


async def test_a_gated_pod_cannot_be_bound(here):
    pod = await here.pod("web", schedulingGates=[{"name": "koord.sh/quota"}])
    answer = await here.api.call(
        "POST", here.path("pods", "web", "binding"), binding(pod, "somewhere")
    )
    assert answer.status == 409


async def test_status_and_spec_are_written_apart(here):
    node = await here.node("a")
    path = f"/api/v1/nodes/{node}"
    body = {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "999"}}}
    main = await here.api.patch(path, body)
    assert main["spec"]["unschedulable"] is True
    assert main["status"]["capacity"]["cpu"] == "8"
    body = {"spec": {"unschedulable": False}, "status": {"allocatable": {"cpu": "4"}}}
    status = await here.api.patch(f"{path}/status", body)
    assert status["spec"]["unschedulable"] is True
    assert status["status"]["allocatable"]["cpu"] == "4"


@pytest_asyncio.fixture(loop_scope="session")
async def budget(here):
    await here.node("a")
    pod = await here.pod("web", labels={"app": "web"}, schedulerName="nobody")
    await here.api.post(here.path("pods", "web", "binding"), binding(pod, here.nodes[0]))
    ready = {"type": "Ready", "status": "True"}
    running = {"status": {"phase": "Running", "conditions": [ready]}}
    await here.api.patch(here.path("pods", "web", "status"), running)
    path = here.path("poddisruptionbudgets", group="policy/v1")
    selector = {"matchLabels": {"app": "web"}}
    spec = {"minAvailable": 1, "selector": selector}
    await here.api.post(path, {"metadata": {"name": "web"}, "spec": spec})
    return await here.api.wait_until(
        f"{path}/web", lambda found: found.get("status", {}).get("expectedPods") == 1
    )


def eviction(here):
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": here.namespace},
    }


async def test_a_budget_forbids_an_eviction(here, budget):
    answer = await here.api.call("POST", here.path("pods", "web", "eviction"), eviction(here))
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert (await here.api.get(here.path("pods", "web")))["metadata"].get(
        "deletionTimestamp"
    ) is None


async def test_a_budget_forbids_a_dry_run_of_an_eviction_too(here, budget):
    body = {**eviction(here), "deleteOptions": {"dryRun": ["All"]}}
    answer = await here.api.call("POST", here.path("pods", "web", "eviction"), body)
    assert (answer.status, answer.reason) == (429, "TooManyRequests")


async def test_an_eviction_without_a_budget_deletes_the_pod(here):
    await here.pod("web", schedulerName="nobody")
    await here.api.post(here.path("pods", "web", "eviction"), eviction(here))
    await here.wait("web", lambda pod: pod is None)


@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_an_eviction_may_be_of_the_pod_as_it_was_read_only(here, phase):
    node = await here.node("a")
    pod = await here.pod("web", schedulerName="nobody", terminationGracePeriodSeconds=30)
    path = here.path("pods", "web")
    await bound(here, "web", node, pod)
    await here.api.patch(f"{path}/status", {"status": {"phase": phase}})
    read = await here.api.get(path)
    conditions = {"uid": read["metadata"]["uid"]}
    for version, status in (
        (pod["metadata"]["resourceVersion"], 409),
        (read["metadata"]["resourceVersion"], 201),
        # The eviction has moved it: of two who read the same pod one evicts it.
        (read["metadata"]["resourceVersion"], 409),
    ):
        options = {"preconditions": {**conditions, "resourceVersion": version}}
        body = {**eviction(here), "deleteOptions": options}
        answer = await here.api.call("POST", f"{path}/eviction", body)
        assert answer.status == status, (version, answer.message)
    assert "deletionTimestamp" in (await here.api.get(path))["metadata"]


async def test_a_dry_run_eviction_keeps_the_pod(here):
    await here.pod("web", schedulerName="nobody")
    body = {**eviction(here), "deleteOptions": {"dryRun": ["All"]}}
    await here.api.post(here.path("pods", "web", "eviction"), body)
    pod = await here.api.get(here.path("pods", "web"))
    assert "deletionTimestamp" not in pod["metadata"]


async def test_deletion_of_a_running_pod_waits_for_its_kubelet(here):
    node = await here.node("a")
    pod = await here.pod("web", schedulerName="nobody", terminationGracePeriodSeconds=60)
    await bound(here, "web", node, pod)
    await here.api.delete(here.path("pods", "web"))
    held = await here.api.get(here.path("pods", "web"))
    assert held["metadata"]["deletionGracePeriodSeconds"] == 60
    await here.remove("web")
    assert (await here.api.call("GET", here.path("pods", "web"))).status == 404


async def test_deletion_of_a_waiting_pod_is_immediate(here):
    await here.pod("web", schedulerName="nobody", terminationGracePeriodSeconds=60)
    await here.api.delete(here.path("pods", "web"))
    assert (await here.api.call("GET", here.path("pods", "web"))).status == 404


async def test_an_unknown_subresource_is_not_found(here):
    await here.pod("web", schedulerName="nobody")
    answer = await here.api.call(
        "PATCH", here.path("pods", "web", "nothing"), {}, kind=raw.MERGE_PATCH
    )
    assert answer.status == 404
