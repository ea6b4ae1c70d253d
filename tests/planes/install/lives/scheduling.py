"""What the extender does seldom: it refuses for load, wakes pods, and renews its token."""

import contextlib

import aiohttp
import yaml

from api import names, resources
from api.wire import durations
from cli.install import in_place_files
from extender import settings as extender_settings
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors, token_renewal
from process.runtime import clock as clocks
from tests.planes import raw
from tests.planes.install.lives import days

ONLINE = "default"
HOT = "hot"


async def hot_node(it):
    """A node that load refuses, which the extender says in an event; then the node goes."""
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
    labels = {names.LABEL_HOSTNAME: HOT}
    # It lends nothing, so its status never changes, which would wake pods as well.
    notes = {names.ANNOTATION_COLOCATION_STRATEGY: '{"enable": false}'}
    metadata = {"name": HOT, "labels": labels, "annotations": notes}
    body = {"metadata": metadata, "status": status}
    await it.api.post(resources.NODES.path(), body)
    metric = resources.NODE_METRICS.path(name=HOT)
    await it.api.wait_until(metric, lambda found: found is not None, days.PATIENCE)
    # Where the scheduler itself tries again first, nobody has to wake the pod.
    while not await nudged(it, metric, labels):
        pass
    await it.api.delete(resources.NODES.path(name=HOT))
    for resource in (resources.NODE_METRICS, resources.NODE_SLOS):
        path = resource.path(name=HOT)
        await it.api.wait_until(path, lambda found: found is None, days.PATIENCE)


async def reported(it, metric, cpu, memory):
    """Say as the node's agent what it uses now."""
    now = durations.moment(clocks.SystemClock().now())
    usage = {"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}}
    status = {"updateTime": now, "nodeMetric": usage}
    await it.api.patch(f"{metric}/status", {"status": status})


async def nudged(it, metric, labels):
    """Refuse a pod, let the node cool, and say whether the extender woke the pod."""
    await reported(it, metric, "15500m", "60Gi")
    path, pods = resources.EVENTS.path(ONLINE), resources.PODS.path(ONLINE)

    async def refused():
        # Again and again: the extender may hear of the report after the pod.
        name = f"late-{clocks.SystemClock().now():.3f}"
        spec = {"nodeSelector": labels, "schedulerName": "koord-scheduler"}
        body = days.pod_body(name, {"cpu": "1", "memory": "1Gi"}, **spec)
        made = await it.api.post(pods, body)

        async def told():
            found = (await it.api.get(path))["items"]
            mine = [e for e in found if e["regarding"].get("uid") == made["metadata"]["uid"]]
            return [e for e in mine if e["reason"] == "NodesRefused"]

        with contextlib.suppress(TimeoutError):
            return await raw.eventually(told, 3.0)
        return []

    await raw.eventually(refused, days.PATIENCE)
    return await explained_and_woken(it, metric)


async def explained_and_woken(it, metric):
    """Why the pod waits is written down; a cooler node wakes it, and the answer goes with it."""
    path, pods = resources.SCHEDULE_EXPLANATIONS.path(ONLINE), resources.PODS.path(ONLINE)

    async def answered():
        found = (await it.api.get(path))["items"]
        return [e for e in found if "nearest miss" in e.get("status", {}).get("failedMessage", "")]

    (why, *_) = await raw.eventually(answered, days.PATIENCE)
    await reported(it, metric, "1", "1Gi")
    pod = await it.api.wait_until(
        f"{pods}/{why['metadata']['name']}",
        lambda pod: pod["spec"].get("nodeName") == HOT,
        days.PATIENCE,
    )
    for one in (await it.api.get(pods))["items"]:
        await it.api.delete(f"{pods}/{one['metadata']['name']}", gracePeriodSeconds="0")

    async def ended():
        return not (await it.api.get(path))["items"]

    await raw.eventually(ended, days.PATIENCE)
    return names.ANNOTATION_NUDGE in pod["metadata"].get("annotations", {})


async def foreign_bind(it):
    """A bind of a pod that the watch cannot know is looked up before it is refused."""
    body = {"PodName": "job", "PodNamespace": days.USERS, "PodUID": "another", "Node": days.WORKER}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{it.extender}/bind", json=body) as answer,
    ):
        assert (await answer.json())["Error"]
    # The view was proven current before the answer.
    own = await it.api.get(resources.PODS.path(days.NAMESPACE, it.own_pod))
    assert names.ANNOTATION_BARRIER in own["metadata"]["annotations"]


async def preempted(it):
    """In a full quota a pod takes the place of one of lower priority, by the extender's account."""
    kind, pods = resources.ELASTIC_QUOTAS, resources.PODS.path(ONLINE)
    one = {"min": {"cpu": "1"}, "max": {"cpu": "1"}}
    quota = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "contest"}}
    await it.api.post(kind.path(ONLINE), quota | {"spec": one})
    spec = {"schedulerName": "koord-scheduler"}
    for name, more in (("low", {}), ("high", {"priorityClassName": names.PRIORITY_CLASS_PROD})):
        body = days.pod_body(name, {"cpu": "1", "memory": "1Gi"}, **spec, **more)
        body["metadata"]["labels"] = {names.LABEL_QUOTA_NAME: "contest"}
        await it.api.post(pods, body)
        await it.api.wait_until(
            f"{pods}/{name}", lambda pod: pod and pod["spec"].get("nodeName"), days.PATIENCE
        )
    assert (await it.api.call("GET", f"{pods}/low")).status == 404
    await it.api.delete(f"{pods}/high", gracePeriodSeconds="0")
    await it.api.delete(kind.path(ONLINE, "contest"))


async def strangers_to_the_extender(it):
    """What an extender may patch by its role, and may not but for the one annotation."""
    extender, pod = it.api.as_user(it.tokens["scheduler"]), f"{days.PODS}/job"
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "y:1"}]
    marks = {"annotations": {names.PLACEMENT: None}}
    for body, kind, said in (
        ({"metadata": {"labels": {"mine": "now"}}}, raw.MERGE_PATCH, "may not change labels"),
        ({"metadata": marks}, raw.MERGE_PATCH, "koord.sh/fence only"),
        (image, raw.JSON_PATCH, "may not change the spec"),
    ):
        answer = await extender.call("PATCH", pod, body, kind=kind)
        assert answer.status == 422, (body, answer.status)
        assert said in answer.message


async def renewed_token(it):
    """The extender in place exchanges its token for a fresh one, bound to the same Secret."""
    node = in_place_files.Node("koord:1", it.plane.server, days.NAMESPACE)
    await it.api.post(
        resources.SECRETS.path(days.NAMESPACE), yaml.safe_load(in_place_files.login_secret(node))
    )
    file = it.folder / "token"
    file.write_text(it.tokens["scheduler"])
    chosen = extender_settings.TokenSettings()
    wanted = token_renewal.Wanted(days.NAMESPACE, chosen.account, chosen.secret, chosen.seconds)
    clock = clocks.SystemClock()
    access = accesses.Access(it.plane.server, it.plane.ca, accesses.TokenFile(file))
    async with clients.Client(access, clock=clock) as client:
        renewal = token_renewal.TokenRenewal(client, clock, file, wanted)
        await renewal.renew()
        assert file.read_text() != it.tokens["scheduler"]
        assert renewal.warning() is None
        # Requests go on with the new token, and deleting the Secret ends it.
        await client.current_version(resources.PODS)
        await it.api.delete(resources.SECRETS.path(days.NAMESPACE, chosen.secret))

        async def refused():
            try:
                await client.current_version(resources.PODS)
            except errors.Unauthorized:
                return True
            return False

        await raw.eventually(refused, days.PATIENCE)


async def reserved(it, scheduler):
    """A Reservation is placed, ends and is removed."""
    kind = resources.RESERVATIONS
    path = resources.CONFIG_MAPS.path(days.NAMESPACE, names.CONFIG_MAP_SCHEDULER)
    before = (await it.api.get(path))["data"]
    document = yaml.safe_load(before[names.CONFIG_MAP_SCHEDULER])
    for profile in document["profiles"]:
        plugins = [{"name": "Reservation", "args": {"gcDurationSeconds": 1}}]
        profile["pluginConfig"] = [*profile.get("pluginConfig", ()), *plugins]
    text = yaml.safe_dump(document)
    await it.api.patch(path, {"data": {names.CONFIG_MAP_SCHEDULER: text}})
    pod = days.pod_body("template", {"cpu": "100m"}, schedulerName=scheduler)
    template = {"metadata": {"namespace": ONLINE}, "spec": pod["spec"]}
    owners = [{"labelSelector": {"matchLabels": {"reserved": "yes"}}}]
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "reserved"}}
    spec = {"template": template, "owners": owners, "ttl": "0s"}
    await it.api.post(kind.path(), body | {"spec": spec})
    where = kind.path(name="reserved")
    await it.api.wait_until(where, _available, days.PATIENCE)
    await it.api.patch(where, {"spec": {"ttl": "1s"}})
    await it.api.wait_until(where, lambda found: found is None, days.PATIENCE)
    await it.api.patch(path, {"data": before})


async def waiting_reservation(it):
    """A Reservation that fits nowhere has a stand-in that waits, of a class made for it."""
    kind = resources.RESERVATIONS
    pod = days.pod_body("template", {"cpu": "100m"}, nodeSelector={"fits": "nowhere"})
    template = {"metadata": {"namespace": ONLINE}, "spec": pod["spec"]}
    owners = [{"labelSelector": {"matchLabels": {"reserved": "yes"}}}]
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": days.WAITING}}
    await it.api.post(kind.path(), body | {"spec": {"template": template, "owners": owners}})

    async def stands():
        pods = await it.api.get(resources.PODS.path(ONLINE), labelSelector=names.LABEL_STAND_IN)
        return pods["items"]

    await raw.eventually(stands, days.PATIENCE)


def _available(found):
    return (found or {}).get("status", {}).get("phase") == "Available"
