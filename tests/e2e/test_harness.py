"""What the harness promises to those who break things with it."""

import pytest

from api.kubernetes import scheduler_config
from tests.planes import raw
from tests.planes.admission import admission
from tests.planes.processes import accounts, audit, services

PATIENCE = 60.0


@pytest.fixture
def own(real_plane):
    return real_plane.binaries


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest.fixture
def admin(api):
    return api


async def test_a_bound_token_is_its_account(own, admin):
    pods = "/api/v1/namespaces/default/pods"
    body = {"metadata": {"name": "holder"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    await admin.post(pods, body)
    token = await accounts.token(admin, "default", "default", pod="holder")
    # The API server believes a token that it has seen for ten seconds more.
    unseen = await accounts.token(admin, "default", "default", pod="holder")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    who = (await admin.as_user(token).post(path, review))["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:default"
    assert who["extra"]["authentication.kubernetes.io/pod-name"] == ["holder"]
    await admin.delete(f"{pods}/holder", gracePeriodSeconds="0")

    async def refused():
        return (await admin.as_user(unseen).call("POST", path, review)).status == 401

    await raw.eventually(refused, PATIENCE)


async def test_calls_are_written_down_with_their_answers(own, admin):
    start = audit.mark(own.audit_log)
    token = await accounts.token(admin, "default", "default")
    assert (await admin.as_user(token).call("GET", "/api/v1/nodes/n1")).status == 403

    async def written():
        calls = audit.read(own.audit_log, start)
        return [c for c in calls if c.user == "system:serviceaccount:default:default"]

    (call,) = await raw.eventually(written, PATIENCE)
    assert (call.verb, call.group, call.resource, call.name) == ("get", "", "nodes", "n1")
    assert call.code == 403
    assert "cannot get resource" in call.message


async def test_a_webhook_is_found_behind_its_service(own, admin, tmp_path):
    address = services.own_address()
    async with admission.listening(tmp_path, "hook.default.svc", address=address) as hook:
        await services.point(admin, "default", "hook", hook.port)
        target = hook.behind("default", "hook")
        configuration = hook.configuration("routed", "Mutating", clientConfig=target)
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        await admin.post(path, configuration)

        async def called():
            body = {"metadata": {"generateName": "x-", "labels": {"hooked": "routed"}}}
            await admin.call("POST", "/api/v1/namespaces/default/configmaps", body)
            return hook.requests

        await raw.eventually(called, PATIENCE)
        await admin.delete(f"{path}/routed")


async def test_two_schedulers_take_turns(own, admin):
    config = scheduler_config.render(scheduler_config.Options("", leader_elect=True))
    config["leaderElection"] |= {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "1s"}
    await own.start_scheduler(config, name="one")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
    first = await admin.wait_until(lease, holder, PATIENCE)
    await own.start_scheduler(config, name="two")
    assert own.url("one") != own.url("two")
    await own.kill("one")
    await admin.wait_until(lease, lambda found: holder(found) != holder(first), PATIENCE)
    await own.stop_scheduler("one")
    await own.stop_scheduler("two")
    assert not {"one", "two"} & set(own.pids())


def holder(lease):
    return (lease or {}).get("spec", {}).get("holderIdentity")
