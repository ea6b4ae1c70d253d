"""Admission webhooks called over TLS."""

import base64
import ssl

import aiohttp
import orjson
import pytest
from aiohttp import web

from certs import issue
from process.runtime import clock as clocks
from simulator.apiserver import apiserver

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "/api/v1/namespaces/default/pods"
SERVICE = ("koordinator-system", "koord-webhook")


class Hook:
    """Answers reviews with what the test put at the path that was called."""

    def __init__(self):
        self.answers = {}
        self.asked = []
        self.url = ""
        self.bundle = ""
        self.port = 0

    async def handle(self, request):
        review = orjson.loads(await request.read())["request"]
        name = request.path.strip("/")
        self.asked.append((name, review))
        answer = self.answers.get(name, {"allowed": True})
        if callable(answer):
            answer = answer(review)
        return web.json_response({"response": {"uid": review["uid"], **answer}})

    def hook(self, name, **changes):
        rule = {
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps", "pods", "pods/binding", "namespaces"],
        }
        return {
            "name": f"{name}.koord.sh",
            "clientConfig": {"url": f"{self.url}/{name}", "caBundle": self.bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **changes,
        }

    def calls(self, name):
        return [review for called, review in self.asked if called == name]


def adding(path, value):
    """Add a field unless it is there, as an idempotent webhook does."""

    def answer(review):
        keys = path.strip("/").split("/")
        present = review["object"]
        for key in keys:
            present = present.get(key) if present else None
        operations = [] if present == value else [{"op": "add", "path": path, "value": value}]
        return patching(*operations)

    return answer


def patching(*operations):
    patch = base64.b64encode(orjson.dumps(list(operations))).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


@pytest.fixture
async def hook(tmp_path):
    made = Hook()
    now = clocks.SystemClock().now()
    authority = issue.authority("hook", now)
    subject = issue.Subject("hook", dns=(f"{SERVICE[1]}.{SERVICE[0]}.svc",), ips=("127.0.0.1",))
    pair = issue.leaf(authority, subject, now)
    file = tmp_path / "pair.pem"
    file.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    app = web.Application()
    app.router.add_post("/{path:.*}", made.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    made.port = runner.addresses[0][1]
    made.url = f"https://127.0.0.1:{made.port}"
    made.bundle = base64.b64encode(authority.certificate).decode()
    yield made
    await runner.cleanup()


async def install(api, *hooks, path=MUTATING, name="hooks"):
    await api.must("POST", path, {"metadata": {"name": name}, "webhooks": list(hooks)})


def config_map(name="a", **labels):
    return {"metadata": {"name": name, "labels": labels}, "data": {"zero": "0"}}


def pod(name="p"):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_a_hook_is_asked_again_after_later_changes_if_it_wishes(api, hook, maps):
    hook.answers = {"one": adding("/data/one", "1"), "two": adding("/data/two", "2")}
    first = hook.hook("one", reinvocationPolicy="IfNeeded")
    await install(api, first, hook.hook("two"))
    made = await api.must("POST", maps, config_map())
    assert made["data"] == {"zero": "0", "one": "1", "two": "2"}
    assert [name for name, _ in hook.asked] == ["one", "two", "one"]
    assert hook.calls("one")[1]["object"]["data"] == {"zero": "0", "one": "1", "two": "2"}


async def test_an_idempotent_hook_settles(api, hook, maps):
    hook.answers = {"one": adding("/data/one", "1")}
    await install(api, hook.hook("one", reinvocationPolicy="IfNeeded"))
    await api.must("POST", maps, config_map())
    assert len(hook.asked) == 1


async def test_defaults_and_priority_follow_a_mutation(api, hook):
    container = {"name": "side", "image": "j:1"}
    operations = (
        {"op": "add", "path": "/spec/initContainers", "value": [container]},
        {"op": "add", "path": "/spec/priorityClassName", "value": "system-node-critical"},
        {"op": "replace", "path": "/spec/priority", "value": 2_000_001_000},
    )
    hook.answers = {"one": patching(*operations)}
    await install(api, hook.hook("one"))
    made = await api.must("POST", PODS, pod())
    assert made["spec"]["initContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["spec"]["priority"] == 2_000_001_000
    (review,) = hook.calls("one")
    assert review["object"]["spec"]["priority"] == 0
    assert review["object"]["status"]["phase"] == "Pending"


async def test_a_priority_that_a_hook_forgot_is_forbidden(api, hook):
    operation = {"op": "add", "path": "/spec/priorityClassName", "value": "system-node-critical"}
    hook.answers = {"one": patching(operation)}
    await install(api, hook.hook("one"))
    answer = await api.call("POST", PODS, pod())
    assert answer.status == 403
    assert "must not be provided in pod spec" in answer.message


async def test_warnings_reach_the_client(api, hook, maps):
    hook.answers = {"one": {"allowed": True, "warnings": ['say "hi"']}}
    await install(api, hook.hook("one"))
    await install(api, hook.hook("one"), path=VALIDATING)
    answer = await api.call("POST", maps, config_map())
    assert answer.warnings == ['299 - "say \\"hi\\""']


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        pytest.param({}, 400, "denied the request without explanation", id="nothing"),
        pytest.param({"reason": "Nope"}, 400, "denied the request: Nope", id="reason"),
        pytest.param(
            {"message": "why", "code": 403}, 403, "denied the request: why", id="message and code"
        ),
        pytest.param({"message": "why", "code": 200}, 400, "denied the request: why", id="success"),
    ],
)
async def test_a_denial_is_worded_as_by_a_real_server(api, hook, maps, status, code, words):
    hook.answers = {"one": {"allowed": False, "status": status}}
    await install(api, hook.hook("one"), path=VALIDATING)
    answer = await api.call("POST", maps, config_map())
    assert answer.status == code
    assert answer.message == f'admission webhook "one.koord.sh" {words}'


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    ("answer", "client"),
    [
        pytest.param({"uid": "other", "allowed": True}, {}, id="wrong uid"),
        pytest.param({}, {"caBundle": ""}, id="untrusted"),
        pytest.param({}, {"url": "https://127.0.0.1:1/x"}, id="nobody there"),
        pytest.param(
            {}, {"url": None, "service": {"namespace": "x", "name": "y"}}, id="unknown service"
        ),
    ],
)
async def test_a_call_that_fails_follows_the_policy(api, hook, maps, answer, client, policy):
    hook.answers = {"one": answer}
    entry = hook.hook("one", failurePolicy=policy)
    entry["clientConfig"] |= client
    await install(api, entry)
    got = await api.call("POST", maps, config_map())
    assert got.status == (201 if policy == "Ignore" else 500)
    if policy == "Fail":
        words = 'Internal error occurred: failed calling webhook "one.koord.sh": '
        assert got.message.startswith(words)


async def test_a_service_is_called_where_it_listens(clock, connect, hook, maps):
    options = apiserver.Options(services={SERVICE: ("127.0.0.1", hook.port)})
    service = {"namespace": SERVICE[0], "name": SERVICE[1], "path": "/one"}
    entry = hook.hook("one", clientConfig={"service": service, "caBundle": hook.bundle})
    async with apiserver.running(clock=clock, options=options) as server, connect(server) as api:
        await install(api, entry)
        await api.must("POST", maps, config_map())
    assert len(hook.calls("one")) == 1


async def test_selectors_and_rules_decide_who_is_asked(api, hook, maps):
    label = "kubernetes.io/metadata.name"
    elsewhere = {"matchExpressions": [{"key": label, "operator": "NotIn", "values": ["default"]}]}
    updates = [{**hook.hook("x")["rules"][0], "operations": ["UPDATE"]}]
    cluster = [{**hook.hook("x")["rules"][0], "scope": "Cluster"}]
    await install(
        api,
        hook.hook("all"),
        hook.hook("space", namespaceSelector=elsewhere),
        hook.hook("object", objectSelector={"matchLabels": {"a": "b"}}),
        hook.hook("updates", rules=updates),
        hook.hook("cluster", rules=cluster),
    )
    await api.must("POST", maps, config_map())
    assert {name for name, _ in hook.asked} == {"all"}
    await api.must("POST", maps, config_map("b", a="b"))
    assert len(hook.calls("object")) == 1
    await api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "default2"}})
    assert {"space", "cluster"} <= {name for name, _ in hook.asked}


async def test_bindings_are_asked_about(api, hook):
    await api.must("POST", PODS, pod())
    await install(api, hook.hook("one"), path=VALIDATING)
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    await api.must("POST", f"{PODS}/p/binding", body)
    (review,) = hook.calls("one")
    assert review["subResource"] == "binding"
    assert review["resource"]["resource"] == "pods"
    assert review["kind"] == {"group": "", "version": "v1", "kind": "Binding"}
    assert review["object"]["target"]["name"] == "n"


async def test_deletions_are_asked_about(api, hook, maps):
    await api.must("POST", maps, config_map())
    hook.answers = {"one": {"allowed": False, "status": {"message": "stay"}}}
    await install(api, hook.hook("one"), path=VALIDATING)
    assert (await api.call("DELETE", f"{maps}/a")).status == 400
    (review,) = hook.calls("one")
    assert (review["operation"], review["object"]) == ("DELETE", None)
    assert review["oldObject"]["metadata"]["name"] == "a"
    await api.must("GET", f"{maps}/a")


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        pytest.param(
            {"matchConditions": [{"name": "x", "expression": "true"}]}, 501, "matchConditions",
            id="match conditions",
        ),
        pytest.param({"sideEffects": ""}, 422, "sideEffects: Required", id="side effects"),
        pytest.param({"sideEffects": "Some"}, 422, "Unsupported value", id="side effects value"),
        pytest.param({"timeoutSeconds": 31}, 422, "between 1 and 30", id="timeout"),
        pytest.param({"clientConfig": {}}, 422, "clientConfig", id="no client"),
        pytest.param(
            {"clientConfig": {"url": "http://x"}}, 422, '"https" is the only allowed', id="plain"
        ),
        pytest.param(
            {"clientConfig": {"url": "https://x", "caBundle": "eA=="}},
            422,
            "unable to load root certificates",
            id="bundle",
        ),
    ],
)  # fmt: skip
async def test_configurations_are_checked(api, hook, change, status, words):
    body = {"metadata": {"name": "x"}, "webhooks": [hook.hook("one", **change)]}
    answer = await api.call("POST", MUTATING, body)
    assert answer.status == status
    assert words in answer.message


async def test_a_hook_cannot_lock_out_its_own_repair(api, hook):
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    hook.answers = {"one": {"allowed": False}}
    await install(api, hook.hook("one", rules=[rule]), path=VALIDATING)
    await api.must("DELETE", f"{VALIDATING}/hooks")
    assert hook.asked == []


class Trouble:
    """A fault seam that refuses pods once and breaks watches after two events."""

    def __init__(self):
        self.seen = []

    async def before(self, request_info):
        self.seen.append((request_info.verb, request_info.plural, request_info.name))
        return web.json_response({}, status=503) if request_info.plural == "pods" else None

    def stream_limit(self, request_info):
        return 2


async def test_trouble_comes_through_the_seam(clock, connect, maps):
    trouble = Trouble()
    options = apiserver.Options(faults=trouble)
    async with apiserver.running(clock=clock, options=options) as server, connect(server) as api:
        assert (await api.call("GET", PODS)).status == 503
        for name in "abc":
            await api.must("POST", maps, config_map(name))
        async with api.watch(maps) as following:
            assert (await following())["object"]["metadata"]["name"] == "a"
            assert (await following())["object"]["metadata"]["name"] == "b"
            with pytest.raises(aiohttp.ClientPayloadError):
                await following()
    assert trouble.seen[0] == ("list", "pods", "")
    assert trouble.seen[-1] == ("watch", "configmaps", "")
