"""How an API server calls admission webhooks."""

import asyncio
import contextlib

import pytest

from tests.planes import raw

GROUP = "/apis/admissionregistration.k8s.io/v1"


@contextlib.asynccontextmanager
async def installed(here, hook, kind="Mutating", **changes):
    """Install the hook and wait until the API server calls it."""
    name = here.name(kind.lower())
    path = f"{GROUP}/{kind.lower()}webhookconfigurations"
    await here.api.post(path, hook.configuration(name, kind, **changes))
    try:
        yield name
    finally:
        await here.api.delete(f"{path}/{name}")


def config_map(label, name="a"):
    return {"metadata": {"name": name, "labels": {"hooked": label}}, "data": {"x": "1"}}


async def noticed(here, hook, label):
    """Write probes until the API server has read the configuration."""
    for number in range(200):
        await here.api.call("POST", here.path("configmaps"), config_map(label, f"probe-{number}"))
        if hook.requests:
            hook.requests.clear()
            return
        await here.api.wait_until(here.path("configmaps", f"probe-{number}"), bool)
    raise AssertionError("the webhook was never called")


async def test_a_patch_is_applied_before_the_object_is_stored(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        hook.answer = hook.patching({"op": "add", "path": "/data/y", "value": "2"})
        made = await here.api.post(here.path("configmaps"), config_map(name))
    assert made["data"] == {"x": "1", "y": "2"}
    (request,) = hook.requests
    assert request["operation"] == "CREATE"
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["namespace"] == here.namespace
    assert request["name"] == "a"
    assert request["object"]["data"] == {"x": "1"}
    assert request["oldObject"] is None
    assert request["dryRun"] is False
    assert request["userInfo"]["username"]


async def test_an_update_shows_both_objects(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        await here.api.post(here.path("configmaps"), config_map(name))
        hook.requests.clear()
        await here.api.patch(here.path("configmaps", "a"), {"data": {"x": "2"}})
    (request,) = hook.requests
    assert request["operation"] == "UPDATE"
    assert request["object"]["data"] == {"x": "2"}
    assert request["oldObject"]["data"] == {"x": "1"}


async def test_a_denial_tells_its_reason(here, hook):
    async with installed(here, hook, "Validating") as name:
        await noticed(here, hook, name)
        hook.answer = hook.denying("the label is wrong", 403)
        answer = await here.api.call("POST", here.path("configmaps"), config_map(name))
    assert answer.status == 403
    expected = f'admission webhook "{name}.example.koord.sh" denied the request: the label is wrong'
    assert answer.message == expected
    assert (await here.api.call("GET", here.path("configmaps", "a"))).status == 404


async def test_validation_sees_what_mutation_made(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        hook.answer = hook.patching({"op": "add", "path": "/data/y", "value": "2"})
        validating = hook.configuration(name, "Validating")
        path = f"{GROUP}/validatingwebhookconfigurations"
        validating["webhooks"][0]["clientConfig"]["url"] += "/again"
        await here.api.post(path, validating)
        try:
            for number in range(200):
                hook.requests.clear()
                body = config_map(name, f"both-{number}")
                await here.api.call("POST", here.path("configmaps"), body)
                if len(hook.requests) == 2:
                    break
        finally:
            await here.api.delete(f"{path}/{name}")
    assert hook.requests[1]["object"]["data"] == {"x": "1", "y": "2"}


async def test_what_the_selector_leaves_out_is_not_asked_about(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        await here.api.post(here.path("configmaps"), config_map("other"))
    assert not hook.requests


async def test_a_namespace_can_be_left_out(here, hook):
    label = "kubernetes.io/metadata.name"
    expression = {"key": label, "operator": "NotIn", "values": [here.namespace]}
    selector = {"matchExpressions": [expression]}
    async with installed(here, hook, namespaceSelector=selector) as name:
        path = "/api/v1/namespaces/default/configmaps"
        for number in range(200):
            probe = here.name(f"probe-{number}")
            await here.api.call("POST", path, config_map(name, probe))
            await here.api.delete(f"{path}/{probe}")
            if hook.requests:
                break
        hook.requests.clear()
        await here.api.post(here.path("configmaps"), config_map(name))
    assert not hook.requests


@pytest.mark.parametrize(
    ("policy", "status"),
    [pytest.param("Ignore", 201, id="ignore"), pytest.param("Fail", 500, id="fail")],
)
async def test_an_unreachable_hook_follows_its_policy(here, hook, policy, status):
    async with installed(here, hook, failurePolicy=policy) as name:
        await noticed(here, hook, name)
        dead = {"clientConfig": {"url": "https://127.0.0.1:1/admit"}}
        path = f"{GROUP}/mutatingwebhookconfigurations/{name}"
        found = await here.api.get(path)
        found["webhooks"][0] |= dead
        await here.api.put(path, found)
        for number in range(200):
            hook.requests.clear()
            body = config_map(name, f"dead-{number}")
            answer = await here.api.call("POST", here.path("configmaps"), body)
            if not hook.requests:
                break
    assert answer.status == status
    if status == 500:
        assert answer.message.startswith(
            f'Internal error occurred: failed calling webhook "{name}.example.koord.sh": '
        )


async def test_a_hook_that_is_too_slow_follows_its_policy(here, hook):
    done = asyncio.Event()

    async def hang(request):
        await done.wait()
        return {"allowed": False}

    async with installed(here, hook, failurePolicy="Ignore", timeoutSeconds=1) as name:
        await noticed(here, hook, name)
        hook.answer = hang
        answer = await here.api.call("POST", here.path("configmaps"), config_map(name))
        done.set()
    assert answer.status == 201


async def test_a_hook_with_side_effects_is_skipped_or_refused_on_a_dry_run(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        await here.api.post(here.path("configmaps"), config_map(name), dryRun="All")
    (request,) = hook.requests
    assert request["dryRun"] is True


EVERYTHING = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}


def meanwhile(hook, operation, act):
    """Let something happen while the hook is asked about the first write of this kind."""
    hook.requests.clear()
    acts = [act]

    async def answer(request):
        if request["operation"] == operation and acts:
            await acts.pop()()
        return {"allowed": True}

    hook.answer = answer


async def test_a_deletion_is_judged_again_when_the_object_has_changed_meanwhile(here, hook):
    async with installed(here, hook, "Validating", rules=[EVERYTHING]) as name:
        await noticed(here, hook, name)
        await here.api.post(here.path("configmaps"), config_map(name))
        path = here.path("configmaps", "a")
        meanwhile(hook, "DELETE", lambda: here.api.patch(path, {"data": {"x": "2"}}))
        await here.api.delete(path)
    asked = [one["oldObject"]["data"]["x"] for one in hook.requests if one["operation"] == "DELETE"]
    assert asked == ["1", "2"]


async def test_a_mutating_hook_may_deny_a_deletion(here, hook):
    async with installed(here, hook, rules=[EVERYTHING]) as name:
        await noticed(here, hook, name)
        await here.api.post(here.path("configmaps"), config_map(name))
        hook.answer = hook.denying("it stays")
        answer = await here.api.call("DELETE", here.path("configmaps", "a"))
    assert answer.status == 403
    assert "it stays" in answer.message


async def test_an_apply_merges_with_what_was_created_meanwhile(here, hook):
    async with installed(here, hook) as name:
        await noticed(here, hook, name)
        meanwhile(hook, "CREATE", lambda: here.api.post(here.path("configmaps"), config_map(name)))
        labels = {"hooked": name}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": labels},
        }
        answer = await here.api.call(
            "PATCH",
            here.path("configmaps", "a"),
            {**body, "data": {"y": "1"}},
            kind=raw.APPLY_PATCH,
            query={"fieldManager": "test"},
        )
    assert answer.status == 200, answer.message
    assert answer.body["data"] == {"x": "1", "y": "1"}
