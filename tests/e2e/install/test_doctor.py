"""`koord doctor` on a whole installation: nothing to say about a healthy one, the truth otherwise.

The manifests are those that people apply; pods run on simulated kubelets, and our processes in
this event loop.
"""

import base64
import io
import json
import tarfile

import pytest_asyncio

from api import names, resources
from api.wire import durations
from certs import issue
from cli.commands import doctor
from cli.doctor import installed, support_bundle, survey
from cli.doctor.checkup import findings
from tests.planes import raw
from tests.planes.install import patients

NAMESPACE = names.NAMESPACE
NODES, SHOP, PATIENCE = patients.NODES, patients.SHOP, patients.PATIENCE


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def patient(control_plane_binaries, tmp_path_factory):
    """A control plane of its own with everything installed and running."""
    folder = tmp_path_factory.mktemp("doctor")
    async with patients.installed(control_plane_binaries, folder) as it:
        yield it


async def test_a_healthy_installation_has_nothing_to_say(patient):
    await patient.exactly()
    found = await patient.findings()
    assert doctor.checks.exit_code(found, "warning") == 0
    assert {f.check for f in found if f.severity is findings.Severity.OK} >= {
        "crd", "workload", "certificate", "webhook", "scheduler", "rbac", "agent",
        "manager", "neighbour",
    }  # fmt: skip


async def wrong(patient, **changes):
    """What `koord doctor installation` finds wrong, by name."""
    asked = {"components": installed.COMPONENTS[:5], "extenders": (patient.extender,), **changes}
    found = await installed.examine(patient.kube, installed.Options(**asked))
    return {f.check: f.sentence for f in found if f.severity.rank > findings.Severity.INFO.rank}


async def test_few_rights_are_enough_to_see_that_the_parts_work(patient):
    await patient.exactly()
    assert await wrong(patient) == {}
    missing = await wrong(patient, components=("device-daemon",))
    assert "no workload with" in missing["workload.missing"]
    silent = await wrong(patient, extenders=("http://127.0.0.1:1",))
    assert "does not answer" in silent["extender.silent"]
    # The webhook leaves its own namespace out.
    unseen = await wrong(patient, probe_namespace=NAMESPACE)
    assert unseen.keys() == {"webhook.mutation-unreached", "webhook.validation-unreached"}


async def test_a_missing_definition_is_named(patient):
    name = resources.RECOMMENDATIONS.review_name()
    before = await patient.api.get(resources.CRDS.path(name=name))
    await patient.api.delete(resources.CRDS.path(name=name))
    told = await patient.exactly("crd.missing")
    assert told["crd.missing"].object == name
    before.pop("status")
    await patient.put(resources.CRDS, before)


async def test_an_ignorable_bind_is_found(patient):
    path = resources.CONFIG_MAPS.path(NAMESPACE, "koord-scheduler")
    before = (await patient.api.get(path))["data"]
    changed = {
        key: text.replace("ignorable: false", "ignorable: true") for key, text in before.items()
    }
    await patient.api.patch(path, {"data": changed})
    told = await patient.exactly("scheduler.ignorable-bind", "scheduler.ignorable-filter")
    assert told["scheduler.ignorable-bind"].severity is findings.Severity.ERROR
    await patient.api.patch(path, {"data": before})


async def test_a_webhook_that_everybody_may_call_is_found(patient):
    await patient.callers()
    told = await patient.exactly("webhook.open-to-all")
    assert "networkPolicy.apiServerBlocks" in told["webhook.open-to-all"].remedy
    # The remedy helps.
    await patient.callers(*patients.API_SERVERS)
    await patient.exactly()


async def test_a_lost_role_is_found(patient):
    resource = resources.CLUSTER_ROLE_BINDINGS
    before = await patient.api.get(resource.path(name="koord-manager"))
    await patient.api.delete(resource.path(name="koord-manager"))
    told = await patient.exactly("rbac.lacking")
    assert told["rbac.lacking"].sentence.startswith("koord-manager may not list nodes")
    await patient.put(resource, before)


async def test_a_node_without_an_agent_and_one_that_fell_silent_are_found(patient):
    name = "doctor-silent"
    await patient.api.post(resources.NODES.path(), {"metadata": {"name": name}})
    told = await patient.exactly("agent.missing")
    assert told["agent.missing"].object == name
    path = resources.NODE_METRICS.path(name=name)
    await patient.api.wait_until(path, lambda found: found is not None, PATIENCE)
    long_ago = durations.moment(patient.clock.now() - 3600)
    await patient.api.patch(f"{path}/status", {"status": {"updateTime": long_ago}})
    # What it wrote is an hour before the moment of the write: its clock is wrong as well.
    await patient.exactly("agent.stale", "clock.node-far")
    await patient.api.delete(resources.NODES.path(name=name))


async def test_fields_that_koordinator_left_are_told_and_the_remedy_helps(patient):
    path = resources.NODE_SLOS.path(name=NODES[0])
    spec = {"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 50}}}
    # Koordinator's manager writes under the same name as ours, and does not apply.
    await patient.api.patch(path, spec, fieldManager="koord-manager")
    await patient.exactly("agent.fields-held")
    held = await patient.api.get(path)
    await patient.api.delete(path)
    anew = await patient.api.wait_until(
        path,
        lambda found: found and found["metadata"]["uid"] != held["metadata"]["uid"],
        PATIENCE,
    )
    assert anew["spec"]["resourceUsedThresholdWithBE"]["cpuSuppressThresholdPercent"] == 65
    await patient.exactly()


async def test_a_second_writer_is_named(patient):
    path = resources.NODES.path(name=NODES[0])
    claim = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODES[0]}}

    async def claims():
        # Of one mind with the manager, so that both stay owners until it computes another amount.
        node = await patient.api.get(path)
        amounts = {names.BATCH_CPU: node["status"]["capacity"][names.BATCH_CPU]}
        await claimed(patient, {**claim, "status": {"capacity": amounts}})

    told = await patient.exactly("neighbour.second-writer", first=claims)
    assert "rival writes" in told["neighbour.second-writer"].sentence
    await claimed(patient, claim)
    await patient.exactly()


async def claimed(patient, node):
    """Say as a rival what a node's status shall be; what is not named any more is given up."""
    options = {"fieldManager": "rival", "force": "true"}
    path = f"{resources.NODES.path(name=NODES[0])}/status"
    await patient.api.patch(path, node, kind="application/apply-patch+yaml", **options)


async def in_shop(patient, kind, spec):
    resource = {"ResourceQuota": resources.RESOURCE_QUOTAS, "LimitRange": resources.LIMIT_RANGES}
    path = resource[kind].path(SHOP)
    await patient.api.post(path, {"metadata": {"name": "doctor"}, "spec": spec})
    return f"{path}/doctor"


async def create(patient, namespace=SHOP):
    """Create a pod as people do; nothing is kept."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "c", "image": "x:1", "resources": {"requests": amounts}}
    body = {"metadata": {"name": "trial"}, "spec": {"containers": [container]}}
    path = resources.PODS.path(namespace)
    return await patient.api.call("POST", path, body, query={"dryRun": "All"})


async def changed(patient):
    """Wait until the profile changes what is created in the shop."""

    async def is_batch():
        answer = await create(patient)
        return answer.status == 201 and names.BATCH_CPU in requests(answer) and answer

    return await raw.eventually(is_batch, PATIENCE)


def requests(answer):
    return answer.body["spec"]["containers"][0]["resources"]["requests"]


async def test_what_is_said_about_quotas_is_true(patient):
    assert requests(await changed(patient)) == {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
    path = await in_shop(patient, "ResourceQuota", {"hard": {"requests.cpu": "10"}})
    told = await patient.exactly("colocation.resource-quota")
    assert "requests.cpu" in told["colocation.resource-quota"].sentence

    async def refused():
        answer = await create(patient)
        return answer.status == 403 and answer.message

    message = await raw.eventually(refused, PATIENCE)
    assert "must specify requests.cpu" in message
    await patient.api.delete(path)
    # The remedies: a scope that leaves such pods out, or to count what they ask for.
    spec = {"hard": {"requests.cpu": "10"}, "scopes": ["NotBestEffort"]}
    path = await in_shop(patient, "ResourceQuota", spec)
    await patient.exactly()
    await changed(patient)
    await patient.api.delete(path)
    counted = {"hard": {f"requests.{names.BATCH_CPU}": "1"}}
    path = await in_shop(patient, "ResourceQuota", counted)
    await patient.exactly("colocation.quota-without-effect")
    # A thousand times as much is asked for.
    await changed(patient)
    await patient.api.delete(path)
    spec = {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}
    path = await in_shop(patient, "ResourceQuota", spec)
    assert "exceeded quota" in await raw.eventually(refused, PATIENCE)
    await patient.api.delete(path)


async def test_what_is_said_about_limit_ranges_is_true(patient):
    await changed(patient)
    defaults = {"type": "Container", "defaultRequest": {"cpu": "100m"}}
    path = await in_shop(patient, "LimitRange", {"limits": [defaults]})
    await patient.exactly("colocation.limit-range-default")

    async def both():
        answer = await create(patient)
        return answer.status == 201 and "cpu" in requests(answer) and requests(answer)

    asked = await raw.eventually(both, PATIENCE)
    assert asked["cpu"] == "100m"
    assert asked[names.BATCH_CPU] == "1k"
    await patient.api.delete(path)
    least = {"type": "Container", "min": {"cpu": "10m"}}
    path = await in_shop(patient, "LimitRange", {"limits": [least]})
    await patient.exactly("colocation.limit-range-default")
    assert (await raw.eventually(both, PATIENCE))["cpu"] == "10m"
    await patient.api.delete(path)
    # Where a container has bounds the API server makes defaults of them; a pod has none.
    bounds = {"type": "Pod", "min": {"cpu": "10m"}}
    path = await in_shop(patient, "LimitRange", {"limits": [bounds]})
    await patient.exactly("colocation.limit-range-bounds")

    async def refused():
        answer = await create(patient)
        return answer.status == 403 and answer.message

    assert "minimum cpu usage per Pod" in await raw.eventually(refused, PATIENCE)
    await patient.api.delete(path)
    await patient.exactly()


async def test_limits_for_lent_resources_reach_online_pods(patient):
    most = {"type": "Container", "max": {names.BATCH_CPU: "1k"}}
    body = {"metadata": {"name": "doctor"}, "spec": {"limits": [most]}}
    await patient.api.post(resources.LIMIT_RANGES.path("default"), body)
    await patient.exactly("colocation.limit-range-lent")

    async def refused():
        answer = await create(patient, "default")
        return answer.status >= 400 and answer.message

    # No profile is for this pod, and yet it now asks for batch-cpu, which it must not.
    message = await raw.eventually(refused, PATIENCE)
    assert "a pod that requests batch resources must carry" in message
    await patient.api.delete(resources.LIMIT_RANGES.path("default", "doctor"))


async def test_the_bundle_tells_much_and_nothing_secret(patient):
    secret = "hunter2-is-nobodys-business"
    value = base64.b64encode(secret.encode()).decode()
    body = {"metadata": {"name": "foreign"}, "data": {"password": value}}
    await patient.api.post(resources.SECRETS.path(NAMESPACE), body)
    options = survey.Options()
    packed = await support_bundle.collect(
        patient.kube, patient.clock, options, await patient.findings()
    )
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    assert {"koord-bundle/findings.json", "koord-bundle/objects/pods.yaml"} <= set(files)
    about = json.loads(files["koord-bundle/bundle.json"])
    # Simulated kubelets keep no logs and serve no pages; that is said.
    assert any(problem.startswith("logs/koord-manager") for problem in about["leftOut"])
    everything = b"\n".join(files.values())
    held = await patient.api.get(resources.SECRETS.path(NAMESPACE, "koord-webhook-certificates"))
    keys = [text for name, text in held["data"].items() if name.endswith(".key")]
    assert keys
    for text in (secret, value, *keys, *(base64.b64decode(key).decode() for key in keys)):
        assert text.encode() not in everything
    assert b"PRIVATE KEY-----" not in everything


async def test_the_end_of_the_processes_is_found(patient):
    await patient.exactly()
    await patient.processes.aclose()
    told = await patient.exactly(*UNREACHED)
    assert told["manager.no-leader"].severity is findings.Severity.ERROR


UNREACHED = ("webhook.mutation-unreached", "webhook.validation-unreached", "manager.no-leader")


async def test_a_wrong_bundle_is_found(patient):
    stranger = issue.authority("stranger", patient.clock.now())
    bundle_text = base64.b64encode(stranger.certificate).decode()
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        path = resource.path(name="koord-webhook")
        configuration = await patient.api.get(path)
        for hook in configuration["webhooks"]:
            hook["clientConfig"]["caBundle"] = bundle_text
        await patient.api.put(path, configuration)
    told = await patient.exactly(*UNREACHED, "certificate.untrusted")
    assert told["certificate.untrusted"].severity is findings.Severity.ERROR


async def test_an_ended_certificate_is_found(patient):
    path = resources.SECRETS.path(NAMESPACE, "koord-webhook-certificates")
    then = patient.clock.now() - 100 * issue.DAY
    subject = issue.Subject("webhook", dns=("localhost",))
    leaf = issue.leaf(issue.authority("koord-old", then), subject, then, seconds=10 * issue.DAY)
    old = {"webhook.crt": base64.b64encode(leaf.certificate).decode()}
    await patient.api.patch(path, {"data": old})
    told = await patient.exactly(*UNREACHED, "certificate.untrusted", "certificate.expired")
    assert "ended 90.0 days ago" in told["certificate.expired"].sentence
