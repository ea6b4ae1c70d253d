"""What each of our accounts may write and nothing else: account, field and verb."""

import base64

import pytest
import pytest_asyncio

from api import names, resources
from api.koordinator.metadata import protected_metadata
from tests.planes import definitions, raw
from tests.planes.install import policed
from webhook import settings
from webhook.registration import configurations

USERS = "accounts-test"
PODS = resources.PODS.path(USERS)
OURS = ("koord-scheduler", "koord-extender", "koord-manager", "koord-webhook", "koord-agent")
GATE = "manager.settings.featureGates.ColocationProfileController=true"
FOREIGN = f"system:serviceaccount:{USERS}:koordinator"
VALUE = '{"cpuset":"0-14"}'
EVERYTHING = (
    *protected_metadata.NEVER_CREATED,
    *protected_metadata.RECORDS,
    *protected_metadata.REQUESTS,
)
NUDGE = names.ANNOTATION_NUDGE
END = {"terminationGracePeriodSeconds": 0}
DRY = {"dryRun": "All"}
NODE = "accounts-node"
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=("beside", "in-place"))
async def installed(request, real_plane):
    """What the chart says about accounts and policies, a bound pod, a waiting one and a node."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    trusted = f"protection.accounts={{{FOREIGN}}}"
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, request.param, GATE, trusted) as it,
    ):
        await policed.namespace(api, USERS)
        await api.call("POST", resources.NODES.path(), {"metadata": {"name": NODE}})
        for name, spec in (("bound", {"nodeName": NODE}), ("waiting", {})):
            await api.call("POST", PODS, pod(name, spec))
        await policed.tenant(api, USERS, "koordinator", parts=True)
        try:
            yield it
        finally:
            for name in ("bound", "waiting"):
                await api.call("DELETE", f"{PODS}/{name}", query={"gracePeriodSeconds": "0"})
            await api.call("DELETE", resources.NODES.path(name=NODE))


def pod(name, spec):
    container = {"name": "c", "image": "i"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **END, **spec}}


async def tried(user, verb, key, part="annotations"):
    """Try to write one field of a pod by one verb; nothing is stored."""
    change = {"metadata": {part: {key: VALUE if part == "annotations" else "BE"}}}
    if verb == "create pods":
        body = pod("new", {})
        body["metadata"] |= change["metadata"]
        return await user.call("POST", PODS, body, query=DRY)
    if verb == "create pods/binding":
        body = {"metadata": {"name": "waiting", **change["metadata"]}}
        body["target"] = {"kind": "Node", "name": NODE}
        return await user.call("POST", f"{PODS}/waiting/binding", body, query=DRY)
    if verb == "patch waiting pods":
        return await user.call("PATCH", f"{PODS}/waiting", change, kind=raw.MERGE_PATCH, query=DRY)
    path = f"{PODS}/bound{verb.removeprefix('patch pods')}"
    return await user.call("PATCH", path, change, kind=raw.MERGE_PATCH, query=DRY)


VERBS = (
    "create pods",
    "create pods/binding",
    "patch waiting pods",
    "patch pods",
    "patch pods/status",
    "patch pods/resize",
    "patch pods/ephemeralcontainers",
)
FIELDS = (*EVERYTHING, NUDGE, names.ANNOTATION_FENCE, names.ANNOTATION_BARRIER, "example.com/other")
BOUND_WITH = {*protected_metadata.ALLOCATIONS, *protected_metadata.REQUESTS}
FOLLOWED = {*FIELDS} - {*protected_metadata.NEVER_CREATED, names.ANNOTATION_EXTENDED_RESOURCE_SPEC}
# Account and verb to the annotations it may write; what is not named here is refused.
EXTENDER = {
    "create pods/binding": BOUND_WITH,
    "patch waiting pods": {
        *(NUDGE, names.ANNOTATION_FENCE, names.ANNOTATION_PREEMPTION, names.ANNOTATION_PLAN)
    },
    "patch pods": {NUDGE, names.ANNOTATION_FENCE, names.ANNOTATION_PREEMPTION},
}
ALLOWED = {
    "beside": {"koord-scheduler": EXTENDER},
    "in-place": {"koord-extender": EXTENDER},
}
# The gate lets it follow profiles, which may set any annotation but those of schedulers.
MANAGER = {"koord-manager": {"patch waiting pods": FOLLOWED}}


@pytest.mark.parametrize("account", OURS)
async def test_each_account_writes_its_own_annotations_of_pods_and_no_others(installed, account):
    allowed = (ALLOWED[installed.mode] | MANAGER).get(account, {})
    await policed.account(installed.api, policed.NAMESPACE, account)
    user = await installed.user(account)
    wrong = []
    for verb in VERBS:
        for key in FIELDS:
            answer = await tried(user, verb, key)
            if (answer.status < 300) is not (key in allowed.get(verb, ())):
                wrong.append((verb, key, answer.status, answer.message))
    assert wrong == []


@pytest.mark.parametrize("key", [names.ANNOTATION_BARRIER, NUDGE, "example.com/other"])
async def test_the_extender_writes_its_barrier_on_pods_of_its_own_namespace(installed, key):
    account = "koord-scheduler" if installed.mode == "beside" else "koord-extender"
    await policed.account(installed.api, policed.NAMESPACE, account)
    user = await installed.user(account)
    path = resources.PODS.path(policed.NAMESPACE)
    made = await installed.api.call("POST", path, pod("own", {"schedulerName": "none"}))
    assert made.status in (201, 409), made.message
    change = {"metadata": {"annotations": {key: VALUE}}}
    answer = await user.call("PATCH", f"{path}/own", change, kind=raw.MERGE_PATCH, query=DRY)
    await installed.api.call("DELETE", f"{path}/own", query={"gracePeriodSeconds": "0"})
    assert (answer.status < 300) is (key != "example.com/other"), answer.message


@pytest.mark.parametrize("account", OURS)
async def test_no_account_of_ours_changes_the_class_of_a_bound_pod(installed, account):
    await policed.account(installed.api, policed.NAMESPACE, account)
    user = await installed.user(account)
    for verb in ("create pods/binding", *VERBS[3:]):
        for label in protected_metadata.CLASSES:
            assert (await tried(user, verb, label, "labels")).status in (403, 422), (verb, label)


async def test_a_listed_account_of_an_installed_koordinator_does_what_a_scheduler_does(installed):
    token = await policed.accounts.token(installed.api, USERS, "koordinator")
    user = installed.api.as_user(token)
    for verb in ("create pods/binding", "patch pods", "patch pods/status"):
        for key in EVERYTHING:
            assert (await tried(user, verb, key)).status < 300, (verb, key)


# --- owners and finalizers ----------------------------------------------------------------------

GONE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
LEFT = {"owner": {"ownerReferences": [GONE]}, "finalizer": {"finalizers": ["example.com/a"]}}


@pytest.mark.parametrize("metadata", LEFT.values(), ids=LEFT)
async def test_no_account_gives_a_pod_an_owner_that_is_gone_or_a_finalizer(installed, metadata):
    for account in (*ALLOWED[installed.mode], *MANAGER):
        user = await installed.user(account)
        path = f"{PODS}/waiting"
        answer = await user.call("PATCH", path, {"metadata": metadata}, kind=raw.MERGE_PATCH)
        assert answer.status == 422, (account, answer.message)
        assert "owner references" in answer.message


async def test_nobody_of_ours_runs_something_else_in_a_pod(installed):
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "y:1"}]
    for account in (*ALLOWED[installed.mode], *MANAGER):
        user = await installed.user(account)
        answer = await user.call("PATCH", f"{PODS}/waiting", image, kind=raw.JSON_PATCH)
        assert answer.status == 422, (account, answer.message)


async def test_each_account_opens_its_own_gate_of_a_pod(installed):
    opened = (names.GATE_GANG, names.GATE_QUOTA, "example.com/wait")
    gates = [{"name": name} for name in opened]
    made = await installed.api.call("POST", PODS, pod("gated", {"schedulingGates": gates}))
    assert made.status == 201, made.message
    found = {}
    for account in (*ALLOWED[installed.mode], *MANAGER):
        user = await installed.user(account)
        found[account] = []
        for name in opened:
            left = {"spec": {"schedulingGates": [one for one in gates if one["name"] != name]}}
            path = f"{PODS}/gated"
            answer = await user.call("PATCH", path, left, kind=raw.MERGE_PATCH, query=DRY)
            assert answer.status in (200, 422), answer.message
            found[account] += [name] if answer.status == 200 else []
    await installed.api.call("DELETE", f"{PODS}/gated", query={"gracePeriodSeconds": "0"})
    assert found.pop("koord-manager") == [names.GATE_QUOTA]
    assert list(found.values()) == [[names.GATE_GANG]]


@pytest.mark.parametrize("metadata", LEFT.values(), ids=LEFT)
async def test_neither_agent_nor_manager_gives_a_node_an_owner_or_a_finalizer(installed, metadata):
    for account, part in (("koord-agent", ""), ("koord-manager", "/status")):
        user = await agent(installed) if account == "koord-agent" else await installed.user(account)
        path = f"{resources.NODES.path(name=NODE)}{part}"
        answer = await user.call("PATCH", path, {"metadata": metadata}, kind=raw.MERGE_PATCH)
        assert answer.status == 422, (account, answer.message)
        assert "owner" in answer.message


async def agent(installed):
    """The agent of the node, by a token that was issued for its pod."""
    path = resources.PODS.path(policed.NAMESPACE)
    spec = {"nodeName": NODE, "serviceAccountName": "koord-agent"}
    await installed.api.call("POST", path, pod("agent", spec))
    return await installed.user("koord-agent", pod="agent")


async def test_an_agent_notes_its_strategies_on_its_node(installed):
    user = await agent(installed)
    change = {"metadata": {"annotations": {names.ANNOTATION_STRATEGIES: "{}"}}}
    await user.patch(resources.NODES.path(name=NODE), change)


# --- what nodes lend ----------------------------------------------------------------------------

LENT = {names.BATCH_CPU: "1000", names.MID_MEMORY: "1Gi", names.GPU_CORE: "100"}
LENT |= {names.FPGA: "100", names.NETWORK_BANDWIDTH: "1G"}
PUBLISHED = {
    "metadata": {
        "annotations": {
            names.ANNOTATION_ORIGIN_ALLOCATABLE: "{}",
            names.ANNOTATION_DEVICES_OFFERED: "true",
        },
        "labels": {names.LABEL_GPU_MODEL: "a"},
    },
    "status": {"capacity": LENT, "allocatable": LENT},
}
READY = {"type": "Ready", "status": "False", "reason": "x", "message": "x"}
FORGED = {
    "cpu": {"status": {"allocatable": {"cpu": "1000"}}},
    "a foreign resource": {"status": {"capacity": {"nvidia.com/gpu": "8"}}},
    "a condition": {"status": {"conditions": [READY]}},
    "an address": {"status": {"addresses": [{"type": "InternalIP", "address": "6.6.6.6"}]}},
    "the port of the kubelet": {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}},
    "a label": {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}},
    "an annotation": {"metadata": {"annotations": {"example.com/a": "x"}}},
}


async def test_the_manager_publishes_what_a_node_lends_and_takes_it_back(installed):
    user, path = await installed.user("koord-manager"), resources.NODES.path(name=NODE)
    await user.patch(f"{path}/status", PUBLISHED)
    taken = {part: dict.fromkeys(LENT) for part in ("capacity", "allocatable")}
    found = await user.patch(f"{path}/status", {"status": taken})
    assert LENT.keys().isdisjoint(found["status"].get("allocatable", {}))


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_the_manager_writes_nothing_else_of_a_node(installed, change):
    user, path = await installed.user("koord-manager"), resources.NODES.path(name=NODE)
    answer = await user.call("PATCH", f"{path}/status", change, kind=raw.MERGE_PATCH)
    assert answer.status == 422, answer.message
    assert "the manager may write" in answer.message


FORGED_DEVICES = {
    "the health of a device": {"spec": {"devices": [{"type": "gpu", "minor": 0, "health": True}]}},
    "a label": {"metadata": {"labels": {"example.com/a": "x"}}},
    "an annotation": {"metadata": {"annotations": {"koord.sh/discovery": "{}"}}},
    "an owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
        }
    },
}


async def test_the_manager_writes_the_status_of_a_device_alone(installed):
    await definitions.serve(installed.api, "Device")
    kind = resources.DEVICES
    path, user = kind.path(name=NODE), await installed.user("koord-manager")
    sick = [{"type": "gpu", "minor": 0, "id": "GPU-0", "health": False}]
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": NODE}}
    await installed.api.post(kind.path(), {**body, "spec": {"devices": sick}})
    try:
        share = {"pod": {"namespace": "a", "name": "b"}, "container": "c", "allocated": "50%"}
        held = {"device": {"deviceType": "gpu", "uuid": "GPU-0"}, "allocations": [share]}
        found = await user.patch(path, {"status": {"deviceAllocations": [held]}})
        assert found["status"]["deviceAllocations"] == [held]
        for name, change in FORGED_DEVICES.items():
            answer = await user.call("PATCH", path, change, kind=raw.MERGE_PATCH)
            assert answer.status == 422, (name, answer.message)
            assert "the manager may" in answer.message
    finally:
        await installed.api.call("DELETE", path)


# --- who is called ------------------------------------------------------------------------------

KINDS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
SECRETS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["secrets"],
}


def registration(kind):
    return configurations.document(
        kind.kind, settings.RegistrationSettings(), policed.NAMESPACE, b"bundle"
    )


def changed(**fields):
    def change(document):
        first, *rest = document["webhooks"]
        return {**document, "webhooks": [{**first, **fields}, *rest]}

    return change


def marked(**metadata):
    return lambda document: {**document, "metadata": {**document["metadata"], **metadata}}


def service(**fields):
    return {
        "service": {
            "namespace": policed.NAMESPACE,
            "name": "koord-webhook",
            "path": "/mutate-pod",
            "port": 443,
            **fields,
        }
    }


HIJACKED = {
    "a URL": changed(clientConfig={"url": "https://attacker.example.com/"}),
    "another namespace": changed(clientConfig=service(namespace=USERS)),
    "another service": changed(clientConfig=service(name="attacker")),
    "another path": changed(clientConfig=service(path="/metrics")),
    "secrets": changed(rules=[SECRETS]),
    "everything": changed(rules=[{**SECRETS, "resources": ["*/*"], "apiGroups": ["*"]}]),
    "kube-system": changed(namespaceSelector={}),
    "fail closed": changed(failurePolicy="Fail"),
    "long waits": changed(timeoutSeconds=30),
    "another name": changed(name="attacker.example.com"),
    "an owner": marked(ownerReferences=[GONE]),
    "a finalizer": marked(finalizers=["example.com/a"]),
    "an annotation": marked(annotations={"example.com/a": "x"}),
}
FORCED = {"fieldManager": "koord-webhook", "force": "true"}


@pytest_asyncio.fixture(loop_scope="session")
async def registered(installed):
    """The two configurations as the webhook writes them, by its own account."""
    user = await installed.user("koord-webhook")
    for kind in KINDS:
        path = kind.path(name="koord-webhook")
        await user.must("PATCH", path, registration(kind), kind=raw.APPLY_PATCH, query=FORCED)
    yield user
    for kind in KINDS:
        await installed.api.call("DELETE", kind.path(name="koord-webhook"))


@pytest.mark.parametrize("change", HIJACKED.values(), ids=HIJACKED)
async def test_neither_webhook_nor_manager_sends_reviews_elsewhere(installed, registered, change):
    manager = await installed.user("koord-manager")
    for kind in KINDS:
        path = kind.path(name="koord-webhook")
        wanted = change(registration(kind))
        answer = await registered.call(
            "PATCH", path, wanted, kind=raw.APPLY_PATCH, query=FORCED | DRY
        )
        assert answer.status == 422, answer.message
        assert "koord-registration" in answer.message
        body = {"metadata": wanted["metadata"], "webhooks": wanted["webhooks"]}
        answer = await manager.call("PATCH", path, body, kind=raw.MERGE_PATCH, query=DRY)
        assert answer.status == 422, answer.message


async def test_bundle_and_rules_are_theirs_to_change(installed, registered):
    manager = await installed.user("koord-manager")
    for kind in KINDS:
        path, document = kind.path(name="koord-webhook"), registration(kind)
        bundle = base64.b64encode(b"another bundle").decode()
        for one in document["webhooks"]:
            one["clientConfig"]["caBundle"] = bundle
        await registered.must("PATCH", path, document, kind=raw.APPLY_PATCH, query=FORCED)
        bare = configurations.without_rules(await installed.api.get(path))["webhooks"]
        note = {"annotations": {names.ANNOTATION_WITHDRAWN: "{}"}}
        await manager.patch(path, {"metadata": note, "webhooks": bare})
        note = {"annotations": {names.ANNOTATION_WITHDRAWN: None}}
        await manager.patch(path, {"metadata": note, "webhooks": document["webhooks"]})
        found = await installed.api.get(path)
        assert len(found["webhooks"]) == len(document["webhooks"])
        assert all(one["rules"] for one in found["webhooks"])
