"""What the chart installs, under RBAC: it works, is refused nothing and is granted nothing in vain.

Each process runs with the arguments, settings and account of its pod template. A life of the
installation is lived once for each way to install; the tests look at what it left behind.
"""

import asyncio
import contextlib
import dataclasses
import json
import secrets

import aiohttp
import pytest
import pytest_asyncio
import yaml

from api import durations, names, resources
from cli import in_place_files
from extender import settings as extender_settings
from kube import access as accesses
from kube import client as clients
from kube import errors, recorder, token_renewal
from process import clock as clocks
from process import supervise
from simulator.processes import binaries as planes
from tests.e2e import binaries as builds
from tests.planes import audit, chart, connections, grants, installation, installed, raw
from tests.planes import kubectl as kubectls

PATIENCE = 60.0
NAMESPACE = names.NAMESPACE
USERS = "installation-test"
PODS = resources.PODS.path(USERS)
ONLINE = "default"
HOT = "hot"
WORKER = installation.WORKER
PREFIX = f"system:serviceaccount:{NAMESPACE}:"
VALUES = (
    "image.repository=registry.example.com/koord",
    "namespace.create=true",
    "clusterSettings.colocation.enable=true",
    "clusterSettings.colocation.metricReportIntervalSeconds=2",
    "clusterSettings.colocation.metricAggregateDurationSeconds=10",
    "clusterSettings.resourceThreshold.clusterStrategy.enable=true",
    "agent.devices.enabled=true",
    "agent.settings.devices.intervalSeconds=1",
)
PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": USERS},
    "spec": {
        "namespaceSelector": {"matchLabels": {names.LABEL_NAMESPACE_NAME: USERS}},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "schedulerName": "koord-scheduler",
    },
}
IN_PLACE = chart.DEPLOY / "scheduler" / "in-place.yaml"
ON_THE_HOST = {"beside": (), "in-place": (f"--scheduler-config={IN_PLACE}",)}
# The fixture installs, lives and uninstalls; on a busy machine that takes its time.
whole_life = pytest.mark.timeout(300)
ACCOUNTS = {
    "beside": ("agent", "manager", "scheduler", "uninstall", "webhook"),
    "in-place": ("agent", "extender", "uninstall", "webhook"),
}
# The kubelet asks the API server whether the agent may; the agent itself never calls this.
ASKED_BY_KUBELETS = ("nodes/pods", "nodes/configz", "nodes/proxy")


@dataclasses.dataclass(frozen=True)
class Life:
    """What happened from the first apply to the last delete."""

    mode: str
    documents: list
    mutated: dict
    bound: dict
    findings: dict
    calls: list
    called: dict
    removed: str
    left: list


async def used(it):
    """What people do every day; returns a pod as it was created and as it ran."""
    await it.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": USERS}})
    account = resources.SERVICE_ACCOUNTS.path(USERS, "default")
    await it.api.wait_until(account, lambda found: found is not None, PATIENCE)
    profile = resources.COLOCATION_PROFILES.path()
    await it.api.post(profile, PROFILE)
    node = resources.NODES.path(name=WORKER)
    await it.api.wait_until(node, lent, PATIENCE)

    async def changed():
        # The webhook may not know the profile yet.
        pod = await it.api.post(PODS, pod_body("job", {"cpu": "1", "memory": "1Gi"}))
        if pod["spec"].get("priorityClassName") == "koord-batch":
            return pod
        await it.api.delete(f"{PODS}/job", gracePeriodSeconds="0")
        return None

    mutated = await raw.eventually(changed, PATIENCE)
    bound = await it.api.wait_until(
        f"{PODS}/job", lambda pod: pod and pod["status"].get("phase") == "Running", PATIENCE
    )
    slo = resources.NODE_SLOS.path(name=WORKER)
    await it.api.wait_until(slo, lambda found: found and found.get("status"), PATIENCE)
    # The settings of the cluster change, and what nodes enforce follows.
    path = resources.CONFIG_MAPS.path(NAMESPACE, names.CONFIG_MAP_SLO)
    text = json.dumps({"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 71}})
    await it.api.patch(path, {"data": {"resource-threshold-config": text}})

    def follows(found):
        percent = found["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"]
        return percent == 71

    await it.api.wait_until(slo, follows, PATIENCE)
    return mutated, bound


async def rare(it, mode):
    """What happens seldom, so that every permission is shown to be needed."""
    await hot_node(it)
    await foreign_bind(it)
    await strangers_to_the_extender(it)
    await repeated_event(it, "scheduler")
    await repeated_event(it, "agent")
    await strangers_to_the_agent(it)
    await silent_kubelet(it)
    await devices(it)
    await unfinished(it)
    await topology(it)
    if mode == "in-place":
        await renewed_token(it)
    if mode == "beside":
        # All others but the extender are the same in both.
        await objects_of_no_node(it)
        await numa_zones(it)
        await node_group(it)
        await advice(it)
        await repeated_event(it, "manager")
        await silent_webhook(it)


async def silent_webhook(it):
    """A webhook that nobody hears is withdrawn by the manager."""
    path = resources.MUTATING_WEBHOOKS.path(name="koord-webhook")
    (webhook,) = it.nodes.processes[it.pods["webhook"]]
    webhook.pause()
    await it.api.wait_until(
        path, lambda found: not any(one.get("rules") for one in found["webhooks"]), PATIENCE
    )
    webhook.resume()


async def unfinished(it):
    """What an uninstall in the middle of a reservation, or after a change of mode, finds."""
    body = pod_body("stand-in", {"cpu": "1"}, nodeName=WORKER)
    body["metadata"]["labels"] = {names.LABEL_STAND_IN: "true"}
    await it.api.post(resources.PODS.path(NAMESPACE), body)
    # As if written in the last moment, about a pod that is still there.
    kind = resources.SCHEDULE_EXPLANATIONS
    why = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "job", "labels": {names.LABEL_CREATED_BY: "koord-extender"}},
        "spec": {"questionObjectKey": f"{USERS}/job"},
    }
    await it.api.post(kind.path(USERS), why)
    lease = {"metadata": {"name": "koord-scheduler"}, "spec": {}}
    await it.api.call("POST", resources.LEASES.path(NAMESPACE), lease)


async def renewed_token(it):
    """The extender in place exchanges its token for a fresh one, bound to the same Secret."""
    node = in_place_files.Node("koord:1", it.plane.server, NAMESPACE)
    await it.api.post(
        resources.SECRETS.path(NAMESPACE), yaml.safe_load(in_place_files.login_secret(node))
    )
    file = it.folder / "token"
    file.write_text(it.tokens["scheduler"])
    chosen = extender_settings.TokenSettings()
    wanted = token_renewal.Wanted(NAMESPACE, chosen.account, chosen.secret, chosen.seconds)
    clock = clocks.SystemClock()
    access = accesses.Access(it.plane.server, it.plane.ca, accesses.TokenFile(file))
    async with clients.Client(access, clock=clock) as client:
        renewal = token_renewal.TokenRenewal(client, clock, file, wanted)
        await renewal.renew()
        assert file.read_text() != it.tokens["scheduler"]
        assert renewal.warning() is None
        # Requests go on with the new token, and deleting the Secret ends it.
        await client.current_version(resources.PODS)
        await it.api.delete(resources.SECRETS.path(NAMESPACE, chosen.secret))

        async def refused():
            try:
                await client.current_version(resources.PODS)
            except errors.Unauthorized:
                return True
            return False

        await raw.eventually(refused, PATIENCE)


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
    await it.api.wait_until(metric, lambda found: found is not None, PATIENCE)
    now = clocks.SystemClock().now()
    usage = {"nodeUsage": {"resources": {"cpu": "15500m", "memory": "60Gi"}}}
    report = {"updateTime": durations.moment(now), "nodeMetric": usage}
    await it.api.patch(f"{metric}/status", {"status": report})

    async def told():
        path = resources.EVENTS.path(ONLINE)
        found = (await it.api.get(path))["items"]
        return [e for e in found if e["reason"] == "NodesRefused"]

    async def refused():
        # Again and again: the extender may hear of the report after the pod.
        name = f"late-{clocks.SystemClock().now():.3f}"
        spec = {"nodeSelector": labels, "schedulerName": "koord-scheduler"}
        body = pod_body(name, {"cpu": "1", "memory": "1Gi"}, **spec)
        await it.api.post(resources.PODS.path(ONLINE), body)
        with contextlib.suppress(TimeoutError):
            return await raw.eventually(told, 3.0)
        return []

    await raw.eventually(refused, PATIENCE)
    await explained_and_woken(it, metric, report)
    await it.api.delete(resources.NODES.path(name=HOT))
    for resource in (resources.NODE_METRICS, resources.NODE_SLOS):
        path = resource.path(name=HOT)
        await it.api.wait_until(path, lambda found: found is None, PATIENCE)


async def explained_and_woken(it, metric, report):
    """Why the pod waits is written down; a cooler node wakes it, and the answer goes with it."""
    path, pods = resources.SCHEDULE_EXPLANATIONS.path(ONLINE), resources.PODS.path(ONLINE)

    async def answered():
        found = (await it.api.get(path))["items"]
        return [e for e in found if "nearest miss" in e.get("status", {}).get("failedMessage", "")]

    (why, *_) = await raw.eventually(answered, PATIENCE)
    usage = {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}}
    moment = durations.moment(clocks.SystemClock().now())
    cooler = {**report, "updateTime": moment, "nodeMetric": usage}
    await it.api.patch(f"{metric}/status", {"status": cooler})

    def woken(pod):
        notes = pod["metadata"].get("annotations") or {}
        return names.ANNOTATION_NUDGE in notes and pod["spec"].get("nodeName") == HOT

    await it.api.wait_until(f"{pods}/{why['metadata']['name']}", woken, PATIENCE)
    for pod in (await it.api.get(pods))["items"]:
        await it.api.delete(f"{pods}/{pod['metadata']['name']}", gracePeriodSeconds="0")

    async def ended():
        return not (await it.api.get(path))["items"]

    await raw.eventually(ended, PATIENCE)


async def objects_of_no_node(it):
    for resource in (resources.NODE_METRICS, resources.NODE_SLOS):
        body = {"apiVersion": resource.api_version, "kind": resource.kind}
        body["metadata"] = {"name": "nowhere"}
        await it.api.post(resource.path(), body | {"spec": {}})
        path = resource.path(name="nowhere")
        await it.api.wait_until(path, lambda found: conditions(found), PATIENCE)
        await it.api.delete(path)


async def node_group(it):
    """A profile sizes the quota of its nodes, and does it again when it changes."""
    profiles = resources.ELASTIC_QUOTA_PROFILES
    spec = {"quotaName": "workers", "nodeSelector": {}, "resourceRatio": "0.5"}
    body = {"apiVersion": profiles.api_version, "kind": profiles.kind, "spec": spec}
    await it.api.post(profiles.path(USERS), body | {"metadata": {"name": "workers"}})
    quota = resources.ELASTIC_QUOTAS.path(USERS, "workers")
    half = await it.api.wait_until(quota, bool, PATIENCE)
    change = {"spec": {"resourceRatio": "1"}}
    await it.api.patch(profiles.path(USERS, "workers"), change)
    smaller = half["spec"]["min"]["memory"]
    await it.api.wait_until(quota, lambda q: q["spec"]["min"]["memory"] != smaller, PATIENCE)
    for path in (profiles.path(USERS, "workers"), quota):
        await it.api.delete(path)


async def advice(it):
    """Whoever asks what a workload should request is told that nothing is known of it."""
    resource = resources.RECOMMENDATIONS
    target = {"type": "podSelector", "podSelector": {"matchLabels": {"app": "nobody"}}}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": {"target": target}}
    await it.api.post(resource.path(USERS), body | {"metadata": {"name": "advice"}})
    path = resource.path(USERS, "advice")

    def told(found):
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any(c["type"] == "NoObjectsMatched" and c["status"] == "True" for c in conditions)

    await it.api.wait_until(path, told, PATIENCE)
    await it.api.delete(path)


def offers(found):
    listed = [item["name"] for zone in found["zones"] for item in zone.get("resources", ())]
    return names.BATCH_CPU in listed


async def numa_zones(it):
    """A node whose agent says how it is built lends by zone, and the agent leaves that alone."""
    path = resources.NODE_RESOURCE_TOPOLOGIES.path(name=WORKER)
    await it.api.wait_until(path, offers, PATIENCE)
    await topology(it)
    assert offers(await it.api.get(path))


async def topology(it):
    """The agent says which cpus are shared, and says it again when they change."""
    node = resources.NODES.path(name=WORKER)
    path = resources.NODE_RESOURCE_TOPOLOGIES.path(name=WORKER)

    def first(cpu):
        def begins(found):
            notes = (found or {"metadata": {}})["metadata"].get("annotations") or {}
            pools = json.loads(notes.get(names.ANNOTATION_CPU_SHARED_POOLS, "null"))
            return bool(pools) and pools[0]["cpuset"].startswith(cpu)

        return begins

    await it.api.wait_until(path, first("0"), PATIENCE)
    await it.api.patch(node, reserving('{"reservedCPUs":"0"}'))
    await it.api.wait_until(path, first("1"), PATIENCE)
    await it.api.patch(node, reserving(None))
    await it.api.wait_until(path, first("0"), PATIENCE)


def reserving(written):
    return {"metadata": {"annotations": {names.ANNOTATION_NODE_RESERVATION: written}}}


async def foreign_bind(it):
    """A bind of a pod that the watch cannot know is looked up before it is refused."""
    body = {"PodName": "job", "PodNamespace": USERS, "PodUID": "another", "Node": WORKER}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{it.extender}/bind", json=body) as answer,
    ):
        assert (await answer.json())["Error"]


async def strangers_to_the_agent(it):
    """What an agent may patch by its role, and may not where it is not its own."""
    own = resources.NODES.path(name=WORKER)
    await it.api.wait_until(own, lambda node: strategies(node), PATIENCE)
    agent = it.api.as_user(it.tokens["agent"])
    note = {"metadata": {"annotations": {names.ANNOTATION_STRATEGIES: "{}"}}}
    other = next(name for name in installation.MACHINES if name != WORKER)
    await it.api.call(
        "POST",
        resources.NODE_METRICS.path(),
        {
            "apiVersion": resources.NODE_METRICS.api_version,
            "kind": resources.NODE_METRICS.kind,
            "metadata": {"name": "someone-elses"},
            "spec": {},
        },
    )
    metric = f"{resources.NODE_METRICS.path(name='someone-elses')}/status"
    for path, body, said in (
        (resources.NODES.path(name=other), note, "may not write objects of node"),
        (own, {"metadata": {"labels": {"mine": "now"}}}, "koord.sh/strategies only"),
        (own, {"metadata": {"annotations": {"mine": "now"}}}, "koord.sh/strategies only"),
        (own, {"spec": {"unschedulable": True}}, "koord.sh/strategies only"),
        (metric, {"status": {"updateTime": "2026-01-01T00:00:00Z"}}, "may not write objects"),
    ):
        answer = await agent.call("PATCH", path, body, kind="application/merge-patch+json")
        assert answer.status == 422, (path, body, answer.status)
        assert said in answer.message
    await it.api.delete(resources.NODE_METRICS.path(name="someone-elses"))
    kind = resources.NODE_RESOURCE_TOPOLOGIES
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": other}}
    answer = await agent.call("POST", kind.path(), body | {"topologyPolicies": [], "zones": []})
    assert answer.status == 422, answer.status
    assert "may not write objects of node" in answer.message


async def silent_kubelet(it):
    """A kubelet that refuses its agent; the API server tells the pods instead."""
    it.kubelet_token.write_text("nobody")
    await it.page("agent", 'koord_agent_pods_source{source="api-server"} 1.0')
    it.kubelet_token.write_text("agent")
    await it.page("agent", 'koord_agent_pods_source{source="kubelet"} 1.0')


async def devices(it):
    """What a node has is told in an object of its own, follows, and is offered by the node."""
    path, node = resources.DEVICES.path(name=WORKER), resources.NODES.path(name=WORKER)

    def healthy(found):
        return bool(found) and [one["health"] for one in found["spec"]["devices"]]

    await it.api.wait_until(path, lambda found: healthy(found) == [True], PATIENCE)
    await it.api.wait_until(
        node, lambda found: found["status"]["allocatable"].get(names.RDMA) == "100", PATIENCE
    )
    it.nodes.port.write_text("1: DOWN\n")
    await it.api.wait_until(path, lambda found: healthy(found) == [False], PATIENCE)
    kind = resources.DEVICES
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": {"devices": []}}
    body["metadata"] = {"name": next(name for name in installation.MACHINES if name != WORKER)}
    answer = await it.api.as_user(it.tokens["agent"]).call("POST", kind.path(), body)
    assert answer.status == 422, answer.status
    assert "may not write objects of node" in answer.message


def strategies(node):
    return node["metadata"].get("annotations", {}).get(names.ANNOTATION_STRATEGIES)


async def strangers_to_the_extender(it):
    """What an extender may patch by its role, and may not but for the one annotation."""
    extender, pod = it.api.as_user(it.tokens["scheduler"]), f"{PODS}/job"
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "y:1"}]
    marks = {"annotations": {names.PLACEMENT: None}}
    for body, kind, said in (
        ({"metadata": {"labels": {"mine": "now"}}}, raw.MERGE_PATCH, "may not change labels"),
        ({"metadata": marks}, raw.MERGE_PATCH, "koord.sh/nudge only"),
        (image, raw.JSON_PATCH, "may not change the spec"),
    ):
        answer = await extender.call("PATCH", pod, body, kind=kind)
        assert answer.status == 422, (body, answer.status)
        assert said in answer.message


async def repeated_event(it, component):
    """An event that repeats is counted half a minute later, which nobody waits for here."""
    plane, clock = it.plane, clocks.SystemClock()
    token = accesses.StaticToken(it.tokens[component])
    access = accesses.Access(plane.server, plane.ca, token)
    about = recorder.Regarding("v1", "Pod", "job", USERS)
    note = f"{component} {secrets.token_hex(4)}"
    async with (
        clients.Client(access, clock=clock) as client,
        supervise.Supervisor("events") as tasks,
    ):
        rates = recorder.Rates(rewrite_seconds=0.1)
        events = recorder.Recorder(client, component, clock, instance="test", rates=rates)
        events.start(tasks)
        events.event(about, "Normal", "Repeated", note)

        async def found():
            path = resources.EVENTS.path(USERS)
            return [e for e in (await it.api.get(path))["items"] if e["note"] == note]

        async def counted():
            events.event(about, "Normal", "Repeated", note)
            return [e for e in await found() if (e.get("series") or {}).get("count", 0) > 1]

        # Only what was written once can be counted in place.
        await raw.eventually(found, PATIENCE)
        await raw.eventually(counted, PATIENCE)


def lent(node):
    return int(node["status"]["allocatable"].get(names.BATCH_CPU, 0))


def conditions(found):
    return (found or {}).get("status", {}).get("conditions")


def pod_body(name, requests, **spec):
    container = {"name": "main", "image": "x:1"}
    container["resources"] = {"requests": requests, "limits": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own(control_plane_binaries, tmp_path_factory):
    """A control plane that writes down who calls what."""
    if not builds.can_build() or builds.kubectl() is None:
        pytest.skip("needs kubectl, and Go to build Helm")
    # Newer API servers stream lists inside watches; the permission to list is for all others.
    options = planes.Options(
        audit=True, service_routing=True, apiserver_flags=("--feature-gates=WatchList=false",)
    )
    folder = tmp_path_factory.mktemp("installation") / "state"
    async with planes.running(control_plane_binaries, folder, options=options) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=chart.MODES)
async def life(request, own, tmp_path_factory):
    """A whole life of one way to install."""
    folder = tmp_path_factory.mktemp(request.param)
    kubectl = kubectls.Kubectl(builds.kubectl(), own.write_kubeconfig(folder / "admin.json"))
    text = chart.template(*VALUES, f"scheduler.mode={request.param}", version=builds.version())
    start = audit.mark(own.audit_log)
    async with (
        raw.connected(own.server, own.ca, own.token) as api,
        contextlib.AsyncExitStack() as stack,
    ):
        it = installation.Installation(own, api, kubectl, folder, stack)
        await it.install(text, request.param)
        mutated, bound = await used(it)
        findings = await it.examined(*ON_THE_HOST[request.param])
        await rare(it, request.param)
        removed = await it.uninstall()
        left = await it.left()
        await cleared(it)
    calls = audit.read(own.audit_log, start)
    yield Life(
        request.param, it.documents, mutated, bound, findings, calls, it.called, removed, left
    )


async def cleared(it):
    """Take away what the users made, for the next life on the same control plane."""
    await it.api.delete(resources.COLOCATION_PROFILES.path(name=USERS))
    for pod in (await it.api.get(PODS))["items"]:
        await it.api.delete(f"{PODS}/{pod['metadata']['name']}", gracePeriodSeconds="0")
    for node in installation.MACHINES:
        await it.api.delete(resources.NODES.path(name=node))


@whole_life
async def test_a_batch_pod_is_changed_placed_and_run(life):
    requests = life.mutated["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
    assert life.mutated["spec"]["schedulerName"] == "koord-scheduler"
    placement = json.loads(life.bound["metadata"]["annotations"][names.PLACEMENT])
    assert placement["node"] == life.bound["spec"]["nodeName"] == WORKER


@whole_life
async def test_the_doctor_misses_nothing_but_what_does_not_run_here(life):
    # The control node has no agent, and beside, second replicas find no scheduler.
    assert life.findings.keys() <= {"workload.partly-ready", "agent.missing"}
    assert life.findings["agent.missing"]


@whole_life
async def test_nobody_of_ours_is_refused(life):
    assert grants.refused(life.calls, PREFIX) == []


@whole_life
async def test_nothing_is_granted_in_vain(life):
    given = {g for g in grants.granted(life.documents) if g.resource not in ASKED_BY_KUBELETS}
    if life.mode == "in-place":
        given = {grant for grant in given if grant.account != f"{PREFIX}koord-manager"}
    accounts = {grant.account for grant in given}
    assert accounts == {f"{PREFIX}koord-{name}" for name in ACCOUNTS[life.mode]}
    assert [str(grant) for grant in grants.unused(given, life.calls)] == []


@whole_life
async def test_every_process_calls_whom_its_network_policy_allows(life):
    """A connection elsewhere would be cut, a rule that nobody needs would be a hole."""
    ports = {connections.API_SERVER: (443, 6443), connections.KUBELET: 10250}
    # No process asks for names here, and the extender in place has the network of its node.
    unseen = {connections.NAMES}
    components = {"agent", "manager", "webhook"} | ({"scheduler"} & {*ACCOUNTS[life.mode]})
    for component in components:
        allowed = connections.allowed(life.documents, component, ports)
        assert life.called[component] <= allowed, component
        if life.mode == "beside":
            # The other life is shorter, and a probe that ends between two looks is not seen.
            assert life.called[component] == allowed - unseen, component
    assert connections.allowed(life.documents, "uninstall", ports) == {connections.API_SERVER}


@whole_life
async def test_nothing_is_left_behind(life):
    assert life.left == []
    assert life.removed


@whole_life
async def test_helm_installs_upgrades_goes_back_and_leaves(own, tmp_path):
    login = own.write_kubeconfig(tmp_path / "admin.json")
    kubectl = kubectls.Kubectl(builds.kubectl(), login)
    place = ("--kubeconfig", str(login), "--namespace", NAMESPACE)

    async def helm(*words):
        return await asyncio.to_thread(chart.helm, *words, *place)

    async def workers():
        text = await kubectl("get", "configmap", "koord-manager", "-o", "yaml", "-n", NAMESPACE)
        return yaml.safe_load(yaml.safe_load(text)["data"]["settings.yaml"]).get("workers")

    await purged(login)
    values = ("--set", VALUES[0], "--set", "agent.kubeletAccess=pods")
    notes = await helm("install", "koord", str(chart.CHART), "--create-namespace", *values)
    assert "koord doctor cluster" in notes
    documents = chart.documents(chart.template(VALUES[0]))
    async with raw.connected(own.server, own.ca, own.token) as api:
        await installed.served(api, documents)
    await kubectl("create", "-f", "-", stdin=json.dumps(PROFILE))
    assert await workers() is None
    change = ("--reuse-values", "--set", "manager.settings.workers=4")
    await helm("upgrade", "koord", str(chart.CHART), *change)
    assert await workers() == 4
    await helm("rollback", "koord", "1")
    assert await workers() is None
    # There is no kubelet here that would run the hook's Job.
    await helm("uninstall", "koord", "--no-hooks", "--wait")
    assert await kubectl("get", "crd", "-l", installation.MINE, "-o", "name")
    assert await kubectl("get", "clustercolocationprofile", USERS, "-o", "name")
    deployed = await kubectl("get", "deploy,ds,cm,secret,sa", "-A", "-l", installation.MINE)
    assert not deployed.strip()


async def purged(login):
    """Take away what is left on purpose, definitions with all their objects."""
    words = ("uninstall", "--yes", "--purge", f"--kubeconfig={login}")
    status, said = await installed.ended(*installed.OURS, *words)
    assert status == 0, said
