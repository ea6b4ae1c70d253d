"""Nobody grants himself anything: tenants and our own accounts, every route, real API server."""

import asyncio
import json

import pytest
import pytest_asyncio

from api import names, resources
from api.koordinator.metadata import protected_metadata
from tests.planes import raw
from tests.planes.admission import admitting
from tests.planes.install import policed

TENANT = "protected-tenant"
# It is there, lest the controllers collect its pods.
NODE = "protected-node"
UNREVIEWED = "protected-unreviewed"
PODS = resources.PODS.path(TENANT)
ANNOTATIONS = (
    *protected_metadata.NEVER_CREATED,
    *protected_metadata.RECORDS,
    *protected_metadata.REQUESTS,
)
# Nobody may carry the other one, not even an administrator.
CARRIED = tuple(key for key in ANNOTATIONS if key != names.ANNOTATION_RESERVE_POD)
BEFORE, AFTER = '{"cpuset":"0"}', '{"cpuset":"0-14"}'
BATCH = {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
CLASSES = {names.LABEL_QOS: "BE", names.LABEL_PRIORITY_CLASS: "koord-batch"}
pytestmark = pytest.mark.since(1, 30, reason="ValidatingAdmissionPolicies")


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stand(real_plane, tmp_path_factory):
    """The webhook, the manager, and what the chart says about accounts and policies."""
    if real_plane.release < (1, 30):
        pytest.skip("needs Kubernetes 1.30: ValidatingAdmissionPolicies")
    folder = tmp_path_factory.mktemp("protected")
    async with (
        raw.connected(real_plane.server, real_plane.ca, real_plane.token) as api,
        admitting.standing(real_plane, api, folder) as standing,
        policed.standing(api, "beside"),
    ):
        await api.post(resources.NODES.path(), {"metadata": {"name": NODE}})
        await policed.namespace(api, TENANT)
        await policed.namespace(api, UNREVIEWED, **{names.LABEL_CONTROL_PLANE: "yes"})
        standing.tenant = await policed.tenant(api, TENANT, "editor")
        standing.powerful = await policed.tenant(api, TENANT, "powerful", parts=True)
        standing.unreviewed = await policed.tenant(api, UNREVIEWED, "editor")
        try:
            yield standing
        finally:
            await api.delete(resources.NODES.path(name=NODE))
            for name in (TENANT, UNREVIEWED):
                await api.delete(resources.NAMESPACES.path(name=name))


def pod(name, annotations=None, labels=None, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": BATCH, "limits": BATCH}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": annotations or {},
            "labels": {**CLASSES, **(labels or {})},
        },
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def marks(found):
    annotations = found["metadata"].get("annotations") or {}
    return {key: annotations[key] for key in ANNOTATIONS if key in annotations}


@pytest_asyncio.fixture(loop_scope="session")
async def bound(stand):
    """A running pod with every protected annotation, as a scheduler left it; deleted afterwards."""
    path = f"{PODS}/bound"
    await stand.api.post(PODS, pod("bound", nodeName=NODE))
    await stand.api.patch(path, {"metadata": {"annotations": dict.fromkeys(CARRIED, BEFORE)}})
    yield path
    await stand.api.delete(path, gracePeriodSeconds="0")


def asked(kind, metadata):
    """One change of metadata in each way that the API knows; a function of the present pod."""
    merge = {"metadata": metadata}

    def whole(found):
        parts = {
            part: {
                k: v
                for k, v in {**found["metadata"].get(part, {}), **changes}.items()
                if v is not None
            }
            for part, changes in metadata.items()
        }
        return {**found, "metadata": {**found["metadata"], **parts}}

    def steps(_found):
        return [
            {"op": "remove" if value is None else "add", "path": f"/metadata/{part}/{escaped(key)}"}
            | ({} if value is None else {"value": value})
            for part, changes in metadata.items()
            for key, value in changes.items()
        ]

    return {
        "update": ("PUT", "application/json", whole),
        "merge patch": ("PATCH", raw.MERGE_PATCH, lambda _: merge),
        "strategic patch": ("PATCH", raw.STRATEGIC_PATCH, lambda _: merge),
        "JSON patch": ("PATCH", raw.JSON_PATCH, steps),
    }[kind]


def escaped(key):
    return key.replace("~", "~0").replace("/", "~1")


WAYS = ("update", "merge patch", "strategic patch", "JSON patch")
SUBRESOURCES = ("", "/status", "/ephemeralcontainers", "/resize")


async def written(user, path, way, metadata, subresource=""):
    """Change metadata of a pod by one route; returns the answer and the pod afterwards."""
    found = await user.get(path)
    method, kind, body = asked(way, metadata)
    answer = await user.call(method, f"{path}{subresource}", body(found), kind=kind)
    return answer, await user.get(path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("subresource", SUBRESOURCES, ids=lambda part: part or "pod")
async def test_a_tenant_changes_and_removes_no_protected_annotation_of_a_pod(
    stand, bound, subresource, way
):
    before = await stand.api.get(bound)
    passed = []
    for key in CARRIED:
        for value in (AFTER, None):
            change = {"annotations": {key: value}}
            answer, after = await written(stand.powerful, bound, way, change, subresource)
            assert marks(after) == marks(before), (key, value)
            if answer.status < 400:
                passed.append(key)
            elif answer.status == 403:
                assert key in answer.message
    # These parts have no metadata of their own: what is said there is dropped, not refused.
    assert not passed or subresource in ("/ephemeralcontainers", "/resize")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("subresource", ["", "/status"], ids=("pod", "status"))
async def test_a_tenant_sets_no_protected_annotation_on_a_pod(stand, subresource, way):
    path = f"{PODS}/plain-{WAYS.index(way)}-{len(subresource)}"
    body = pod(path.rpartition("/")[2], {"mine": "x"}, nodeName=NODE)
    await stand.api.post(PODS, body)
    before = await stand.api.get(path)
    for key in (*protected_metadata.NEVER_CREATED, *protected_metadata.REQUESTS):
        change = {"annotations": {key: AFTER}}
        answer, after = await written(stand.powerful, path, way, change, subresource)
        assert (answer.status, marks(after)) == (403, marks(before)), key
        assert "only schedulers and admission may write" in answer.message


async def test_a_tenant_applies_no_protected_annotation(stand, bound):
    before = marks(await stand.api.get(bound))
    query = {"fieldManager": "tenant", "force": "true"}
    for key in ANNOTATIONS:
        metadata = {"name": "bound", "annotations": {key: AFTER}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        for part in ("", "/status"):
            answer = await stand.powerful.call(
                "PATCH", f"{bound}{part}", body, kind=raw.APPLY_PATCH, query=query
            )
            assert answer.status == 403, (key, part, answer.message)
    assert marks(await stand.api.get(bound)) == before


@pytest.mark.parametrize("label", protected_metadata.CLASSES)
async def test_a_tenant_changes_no_class_of_a_running_pod(stand, bound, label):
    for value in ("LSE", None):
        answer, after = await written(
            stand.powerful, bound, "merge patch", {"labels": {label: value}}, "/status"
        )
        assert answer.status == 403
        assert after["metadata"]["labels"][label] == CLASSES[label]


async def test_a_tenant_binds_no_pod_with_protected_annotations(stand):
    await stand.api.post(PODS, pod("waiting"))
    await stand.api.patch(f"{PODS}/waiting", {"metadata": {"labels": {"a": "b"}}})
    for path in (f"{PODS}/waiting/binding", f"/api/v1/namespaces/{TENANT}/bindings"):
        for part, keys in (("annotations", ANNOTATIONS), ("labels", protected_metadata.CLASSES)):
            for key in keys:
                metadata = {"name": "waiting", part: {key: AFTER if part != "labels" else "BE"}}
                target = {"kind": "Node", "name": NODE}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata}
                answer = await stand.powerful.call("POST", path, body | {"target": target})
                assert answer.status == 403, (path, key, answer.message)
                assert "koord-pods" in answer.message
    found = await stand.api.get(f"{PODS}/waiting")
    assert "nodeName" not in found["spec"]


async def test_the_role_edit_binds_no_pod_and_writes_no_part_of_one(stand, bound):
    body = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n"}}
    for path in (f"{bound}/binding", f"/api/v1/namespaces/{TENANT}/bindings"):
        assert (await stand.tenant.call("POST", path, body)).status == 403
    for part in ("/status", "/ephemeralcontainers"):
        change = {"metadata": {"annotations": {"mine": "x"}}}
        answer = await stand.tenant.call("PATCH", f"{bound}{part}", change, kind=raw.MERGE_PATCH)
        assert answer.status == 403
        assert "cannot patch resource" in answer.message


async def test_a_pod_created_with_everything_keeps_what_the_webhook_computes(stand):
    body = pod("restored", dict.fromkeys(CARRIED, AFTER))
    answer = await stand.tenant.call("POST", PODS, body)
    assert answer.status == 201, answer.message
    assert "only schedulers write" in answer.headers["Warning"]
    found = marks(await stand.api.get(f"{PODS}/restored"))
    record = {"containers": {"c": {"limits": BATCH, "requests": BATCH}}}
    assert json.loads(found.pop(names.ANNOTATION_EXTENDED_RESOURCE_SPEC)) == record
    # What it asks for is its own; who changed it is noted by nobody but those who did.
    assert found.keys() <= {*protected_metadata.REQUESTS, *protected_metadata.RECORDS}


@pytest.mark.parametrize("key", protected_metadata.NEVER_CREATED)
async def test_what_the_webhook_did_not_see_is_refused(stand, key):
    path = resources.PODS.path(UNREVIEWED)
    answer = await stand.unreviewed.call("POST", path, pod("x", {key: AFTER}))
    assert answer.status == 403
    assert key in answer.message


async def test_a_record_without_batch_resources_is_refused_where_no_webhook_computes_it(stand):
    body = pod("x", {names.ANNOTATION_EXTENDED_RESOURCE_SPEC: AFTER})
    path = resources.PODS.path(UNREVIEWED)
    assert (await stand.unreviewed.call("POST", path, body, query={"dryRun": "All"})).status == 201
    body["spec"]["containers"][0]["resources"] = {}
    answer = await stand.unreviewed.call("POST", path, body)
    assert answer.status == 403
    assert "the pod asks for none" in answer.message


async def test_a_static_pod_has_no_mirror_with_protected_annotations(stand):
    """A kubelet copies the annotations of a manifest on its node to the pod that stands for it."""
    node = stand.api.acting(f"system:node:{NODE}", "system:nodes", "system:authenticated")
    mirror = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
    body = pod("static", {**dict.fromkeys(CARRIED, AFTER), **mirror}, nodeName=NODE)
    answer = await node.call("POST", PODS, body, query={"dryRun": "All"})
    assert answer.status == 201, answer.message
    assert marks(answer.body).keys() <= {*protected_metadata.REQUESTS, *protected_metadata.RECORDS}
    answer = await node.call("POST", resources.PODS.path(UNREVIEWED), body)
    assert answer.status == 403
    assert "koord-pods" in answer.message


def workloads():
    """A workload of each kind, whose template carries everything."""

    def template(name, **spec):
        made = pod(name, dict.fromkeys(CARRIED, AFTER), {"workload": name}, **spec)
        return {"metadata": {k: made["metadata"][k] for k in ("annotations", "labels")}} | {
            "spec": made["spec"]
        }

    def selected(name, **spec):
        selector = {"matchLabels": {"workload": name}}
        return {"selector": selector, "template": template(name), **spec}

    job = {"template": template("job", restartPolicy="Never")}
    cron = {"template": template("cronjob", restartPolicy="Never")}
    return {
        "cronjob": (
            "batch/v1",
            "CronJob",
            {"schedule": "* * * * *", "jobTemplate": {"spec": cron}},
        ),
        "job": ("batch/v1", "Job", job),
        "deployment": ("apps/v1", "Deployment", selected("deployment")),
        "replicaset": ("apps/v1", "ReplicaSet", selected("replicaset")),
        "statefulset": ("apps/v1", "StatefulSet", selected("statefulset", serviceName="none")),
        "daemonset": ("apps/v1", "DaemonSet", selected("daemonset")),
        "replicationcontroller": (
            "v1",
            "ReplicationController",
            {"selector": {"workload": "replicationcontroller"}}
            | {"template": template("replicationcontroller")},
        ),
    }


async def test_pods_of_every_kind_of_workload_carry_none_of_it(stand, here):
    await here.node("a")
    await stand.api.patch(resources.NODES.path(name=here.nodes[0]), {"spec": {"taints": None}})

    async def pods_of(name, version, kind, spec):
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        path = f"{base}/namespaces/{TENANT}/{kind.lower()}s"
        await stand.tenant.post(path, body)

        async def there():
            found = await stand.api.get(PODS, labelSelector=f"workload={name}")
            return found["items"]

        found = await raw.eventually(there, 90.0)
        await stand.tenant.delete(f"{path}/{name}", propagationPolicy="Background")
        return found

    made = await asyncio.gather(*(pods_of(name, *one) for name, one in workloads().items()))
    for found in made:
        for one in found:
            left = marks(one)
            record = json.loads(left.pop(names.ANNOTATION_EXTENDED_RESOURCE_SPEC))
            assert record == {"containers": {"c": {"limits": BATCH, "requests": BATCH}}}
            assert left.keys() <= {*protected_metadata.REQUESTS, *protected_metadata.RECORDS}


async def test_a_template_is_refused_pods_where_no_webhook_strips_them(stand):
    version, kind, spec = workloads()["replicaset"]
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "r"}, "spec": spec}
    path = f"/apis/apps/v1/namespaces/{UNREVIEWED}/replicasets"
    await stand.unreviewed.post(path, body)

    def refused(found):
        conditions = found.get("status", {}).get("conditions", ())
        return any(one["reason"] == "FailedCreate" for one in conditions)

    found = await stand.api.wait_until(f"{path}/r", refused, admitting.PATIENCE)
    (condition,) = found["status"]["conditions"]
    assert "koord-pods" in condition["message"]
    assert (await stand.api.get(resources.PODS.path(UNREVIEWED)))["items"] == []


async def test_what_has_nothing_to_do_with_it_goes_on(stand, bound):
    """Unrelated writes, finalizers and deletion of a pod that carries everything."""
    change = {"metadata": {"annotations": {"mine": "x"}, "labels": {"team": "a"}}}
    await stand.tenant.patch(bound, change)
    status = {"status": {"phase": "Running"}}
    await stand.powerful.patch(f"{bound}/status", status)
    finalizers = {"metadata": {"finalizers": ["example.com/a"]}}
    await stand.tenant.patch(bound, finalizers)
    await stand.tenant.delete(bound, gracePeriodSeconds="0")
    await stand.tenant.patch(bound, {"metadata": {"finalizers": None}})
    assert (await stand.api.call("GET", bound)).status == 404
    await stand.api.post(PODS, pod("bound", nodeName=NODE))


async def test_a_pod_with_as_much_as_fits_is_judged_within_the_budget(stand, bound):
    """The policy fails closed, so what it costs must not depend on what a pod carries."""
    large = "x" * (250 << 10)
    every = {names.ANNOTATION_RESOURCE_STATUS: large}
    await stand.api.patch(bound, {"metadata": {"annotations": {**every, "mine": "x"}}})
    labels = {f"example.com/{number}": "x" for number in range(500)}
    await stand.tenant.patch(bound, {"metadata": {"labels": labels}})
    change = {"annotations": {names.ANNOTATION_RESOURCE_STATUS: large[:-1] + "y"}}
    answer, _ = await written(stand.tenant, bound, "merge patch", change)
    assert answer.status == 403
    assert "only schedulers and admission may write" in answer.message


async def test_an_administrator_repairs_a_pod(stand, bound):
    change = {"metadata": {"annotations": {names.ANNOTATION_RESOURCE_STATUS: None}}}
    after = await stand.api.patch(bound, change)
    assert names.ANNOTATION_RESOURCE_STATUS not in after["metadata"]["annotations"]
