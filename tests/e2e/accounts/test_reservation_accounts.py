"""Who may create stand-ins and write what Reservations hold, on a real API server."""

import copy
import functools

import pytest
import pytest_asyncio

from api import names, resources
from api.koordinator.metadata import protected_metadata
from manager.reservations import priorities, stand_in
from tests.manager.reservations import reserved
from tests.planes import definitions, raw
from tests.planes.install import policed

USERS = "reservation-accounts"
PODS = resources.PODS.path(USERS)
KIND, CLASSES = resources.RESERVATIONS, resources.PRIORITY_CLASSES
DRY = {"dryRun": "All"}
NOW = {"gracePeriodSeconds": "0"}
PRIORITY = priorities.Priority(7000, preempts=False)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def installed(real_plane):
    """The accounts and policies of the chart, a pod of a tenant, and a Reservation."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        policed.standing(api, "beside") as it,
    ):
        await policed.namespace(api, USERS)
        await definitions.serve(api, "Reservation")
        await api.call("POST", CLASSES.path(), PRIORITY.body())
        await policed.account(api, policed.NAMESPACE, "koord-manager")
        await policed.account(api, policed.NAMESPACE, "koord-scheduler")
        await policed.uninstaller(api)
        await api.call("POST", CLASSES.path(), {"metadata": {"name": "koord-prod"}, "value": 9500})
        for name, labels in (("plain", {}), ("standing", {names.LABEL_STAND_IN: "r"})):
            body = {"metadata": {"name": name, "labels": labels}, "spec": pod()["spec"]}
            await raw.eventually(functools.partial(stored, api, body))
        raw_reservation = reserved.raw()
        reservation = {**raw_reservation, "metadata": {"name": "guarded"}}
        await api.call("POST", KIND.path(), reservation)
        try:
            yield it
        finally:
            for name in ("plain", "standing"):
                await api.call("DELETE", f"{PODS}/{name}", query=NOW)
            await api.call("DELETE", KIND.path(name="guarded"))
            for name in (PRIORITY.name, "koord-prod"):
                await api.call("DELETE", CLASSES.path(name=name))
            await policed.remove(api, policed.hook_of_uninstall())
            await api.call("DELETE", f"{RBAC}/clusterroles/reserving")
            await api.call("DELETE", f"{RBAC}/clusterrolebindings/reserving")


async def stored(api, body):
    """Create a pod, once admission knows its priority class; tell whether it is there."""
    return (await api.call("POST", PODS, body)).status in (201, 409)


def pod():
    found = reserved.read(template={"metadata": {"namespace": USERS}, **reserved.template()})
    return stand_in.body(found, stand_in.Place(USERS, "none", PRIORITY))


def changed(*path, value):
    body = copy.deepcopy(pod())
    inside = body
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return body


FORGED = {
    "no label": changed("metadata", "labels", value={}),
    "another image": changed("spec", "containers", 0, "image", value="registry.example/x:1"),
    "a file of the node": changed(
        "spec", "volumes", value=[{"name": "v", "hostPath": {"path": "/"}}]
    ),
    "a token": changed("spec", "automountServiceAccountToken", value=True),
    "a node": changed("spec", "nodeName", value="n1"),
    "the network": changed("spec", "hostNetwork", value=True),
    "cpus": changed(
        "metadata", "annotations", names.ANNOTATION_RESOURCE_STATUS, value='{"cpuset":"0"}'
    ),
}


async def test_the_manager_creates_stand_ins(installed):
    manager = await installed.user("koord-manager")
    answer = await manager.call("POST", PODS, pod(), query=DRY)
    assert answer.status == 201, answer.message
    other = priorities.Priority(7001, preempts=True)
    answer = await manager.call("POST", CLASSES.path(), other.body(), query=DRY)
    assert answer.status == 201, answer.message


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED)
async def test_the_manager_creates_no_pod_that_runs(installed, body):
    manager = await installed.user("koord-manager")
    answer = await manager.call("POST", PODS, body, query=DRY)
    assert answer.status in (403, 422), answer.message
    assert "koord-" in answer.message


CLASS = {
    "a foreign name": {"metadata": {"name": "gold"}},
    "the default": {"globalDefault": True},
}


@pytest.mark.parametrize("change", CLASS.values(), ids=CLASS)
async def test_the_manager_creates_no_other_priority_class(installed, change):
    manager = await installed.user("koord-manager")
    body = {**priorities.Priority(7002, preempts=False).body(), **change}
    answer = await manager.call("POST", CLASSES.path(), body, query=DRY)
    assert answer.status in (403, 422), answer.message


@pytest.mark.parametrize("account", ["koord-manager", "koord-uninstall"])
async def test_stand_ins_alone_are_deleted(installed, account):
    caller = await installed.user(account)
    for name, allowed in (("plain", False), ("standing", True)):
        answer = await caller.call("DELETE", f"{PODS}/{name}", query=DRY)
        assert (answer.status < 300) is allowed, (name, answer.message)


async def test_the_hook_of_an_uninstall_deletes_classes_of_stand_ins_alone(installed):
    caller = await installed.user("koord-uninstall")
    for name, allowed in (("koord-prod", False), (PRIORITY.name, True)):
        answer = await caller.call("DELETE", CLASSES.path(name=name), query=DRY)
        assert (answer.status < 300) is allowed, (name, answer.message)
        assert answer.status != 404


async def test_a_tenant_creates_no_stand_in(installed):
    user = await policed.tenant(installed.api, USERS, "editor")
    answer = await user.call("POST", PODS, pod(), query=DRY)
    assert answer.status == 403
    assert "koord-pods" in answer.message


async def test_a_writer_of_reservations_writes_neither_status_nor_records(installed):
    rules = [{"apiGroups": [KIND.group], "resources": ["*"], "verbs": ["*"]}]
    role = {"metadata": {"name": "reserving"}, "rules": rules}
    await installed.api.call("POST", f"{RBAC}/clusterroles", role)
    await policed.account(installed.api, USERS, "reserving")
    subject = {"kind": "ServiceAccount", "name": "reserving", "namespace": USERS}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    binding = {
        "metadata": {"name": "reserving"},
        "subjects": [subject],
        "roleRef": {**reference, "name": "reserving"},
    }
    await installed.api.call("POST", f"{RBAC}/clusterrolebindings", binding)
    user = installed.api.as_user(await policed.accounts.token(installed.api, USERS, "reserving"))
    path = KIND.path(name="guarded")
    await policed.granted(user, "patch", KIND.plural, group=KIND.group)
    await user.patch(path, {"spec": {"ttl": "2h"}})
    for key in protected_metadata.RESERVATIONS:
        change = {"metadata": {"annotations": {key: "{}"}}}
        answer = await user.call("PATCH", path, change, kind=raw.MERGE_PATCH, query=DRY)
        assert answer.status == 403, (key, answer.message)
    status = {"status": {"phase": "Available", "nodeName": "n1"}}
    answer = await user.call("PATCH", f"{path}/status", status, kind=raw.MERGE_PATCH, query=DRY)
    assert answer.status == 403, answer.message
    for account in ("koord-manager", "koord-scheduler"):
        ours = await installed.user(account)
        answer = await ours.call("PATCH", f"{path}/status", status, kind=raw.MERGE_PATCH, query=DRY)
        assert answer.status == 200, (account, answer.message)
