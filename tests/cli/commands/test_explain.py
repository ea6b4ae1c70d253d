"""The command: what it reads from where, what it does without, and what it refuses."""

import asyncio
import json

import pytest
from aiohttp import web

from cli import main
from cli.commands import explain
from cli.explain import story_sources
from cli.quota import cluster
from kube.client import access, client
from process.runtime import clock
from simulator.processes import credentials
from tests.cli.commands import test_get as quotas

NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8"}}}
OURS = {"app.kubernetes.io/part-of": "koord"}


class Plane:
    """Answers from a table of paths; everything else is not there."""

    def __init__(self):
        self.answers = {}
        self.asked = []

    async def answer(self, request):
        self.asked.append(request.path_qs)
        found = self.answers.get(request.path)
        if isinstance(found, int):
            return web.json_response({"code": found, "message": "no"}, status=found)
        if found is None:
            return web.json_response({"code": 404}, status=404)
        return web.json_response(found)

    def list(self, path, *items):
        self.answers[path] = {"metadata": {"resourceVersion": "1"}, "items": list(items)}


@pytest.fixture
async def plane():
    made, app = Plane(), web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def kube(plane):
    async with client.Client(access.Access(server=plane.url), clock=clock.SystemClock()) as made:
        yield made


def ours(name, component):
    return {"metadata": {"name": name, "labels": OURS | {"app.kubernetes.io/component": component}}}


PODS = "/api/v1/namespaces/koordinator-system/pods"


async def test_processes_are_asked_through_the_api_server_replica_by_replica(plane, kube):
    plane.list(PODS, ours("s-1", "scheduler"), ours("m", "manager"), ours("s-2", "scheduler"))
    plane.answers[f"{PODS}/s-2:9212/proxy/debug/explain"] = {"pod": "d/p"}
    sources = story_sources.Sources(kube, clock.SystemClock(), story_sources.Options())
    found = await sources.page("extender", "debug/explain", {"pod": "d/p"})
    assert found == {"pod": "d/p"}
    assert sources.noted[-1].sentence() == "extender: s-2"
    assert f"{PODS}/s-1:9212/proxy/debug/explain?pod=d/p" in plane.asked


@pytest.mark.parametrize(
    ("status", "reached", "note"),
    [
        pytest.param(None, True, "s-1 knows nothing of it", id="not refused lately"),
        pytest.param(403, False, "s-1: 403", id="forbidden"),
    ],
)
async def test_why_a_process_says_nothing_is_noted(plane, kube, status, reached, note):
    plane.list(PODS, ours("s-1", "scheduler"))
    if status:
        plane.answers[f"{PODS}/s-1:9212/proxy/debug/explain"] = status
    sources = story_sources.Sources(kube, clock.SystemClock(), story_sources.Options())
    assert await sources.page("extender", "debug/explain") is None
    assert sources.noted[-1].reached is reached
    assert note in sources.noted[-1].note


async def test_an_address_that_is_given_is_asked_instead(plane, kube):
    plane.answers["/debug/nodes/n1"] = {"node": "n1", "sentence": "lends 3 cores"}
    options = story_sources.Options(urls={"manager": plane.url, "extender": f"{plane.url}/x"})
    sources = story_sources.Sources(kube, clock.SystemClock(), options)
    assert (await sources.lending(NODE))["sentence"] == "lends 3 cores"
    assert await sources.page("extender", "debug/explain") is None
    plane.answers["/x/debug/explain"] = 500
    assert await sources.page("extender", "debug/explain") is None
    assert "answers 500" in sources.noted[-1].note


async def test_the_answer_that_was_confirmed_last_counts(plane, kube):
    def answer(name, moment, pod="d/p"):
        status = {"lastUpdateTime": moment, "failedMessage": name}
        return {"metadata": {"name": name}, "spec": {"questionObjectKey": pod}, "status": status}

    path = "/apis/scheduling.koordinator.sh/v1alpha1/namespaces/d/scheduleexplanations"
    plane.list(path, answer("old", "2026-07-01T12:00:00Z"), answer("x", "2027", "d/other"),
               answer("new", "2026-07-01T13:00:00Z"))  # fmt: skip
    sources = story_sources.Sources(kube, clock.SystemClock(), story_sources.Options())
    found = await sources.explanation("d/p")
    assert found["metadata"]["name"] == "new"
    assert await sources.explanation("e/p") is None
    assert not sources.noted[-1].reached


def test_a_workload_is_tried_by_its_template(tmp_path):
    path = tmp_path / "w.yaml"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    path.write_text(json.dumps({"metadata": {"name": "w"}, "spec": {"template": template}}))
    read = explain.read(path)
    assert (read["kind"], read["metadata"]["name"]) == ("Pod", "w")
    path.write_text(json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}))
    assert explain.read(path)["metadata"]["name"] == "p"


@pytest.mark.parametrize("text", ["[]", "a: [", "kind: Service", "spec: {template: 7}", ""])
def test_a_file_without_a_pod_is_refused_by_name(tmp_path, text, capsys):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(explain.ArgumentError, match=r"x\.yaml"):
        explain.read(path)


def test_pods_are_named_with_their_namespace():
    assert explain.key_of("p", "shop") == "shop/p"
    assert explain.key_of("a/p", "shop") == "a/p"
    with pytest.raises(explain.ArgumentError, match="name a pod"):
        explain.key_of("", "shop")
    for name in ("a/b/c", "/p", "a/"):
        with pytest.raises(explain.ArgumentError, match=f"{name}: write a name, or namespace/"):
            explain.key_of(name, "shop")


def test_of_several_documents_the_pod_is_tried_and_two_pods_are_refused(tmp_path):
    path = tmp_path / "x.yaml"
    pod = "kind: Pod\nmetadata: {name: p}\nspec: {}\n"
    path.write_text(f"kind: Namespace\n---\n{pod}")
    assert explain.read(path)["metadata"]["name"] == "p"
    path.write_text(f"{pod}---\n{pod}")
    with pytest.raises(explain.ArgumentError, match="holds 2 pods or workloads: leave one in it"):
        explain.read(path)


FORBIDDEN = {
    "gang": "/api/v1/pods",
    "migration": "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs",
    "reservation": "/apis/scheduling.koordinator.sh/v1alpha1/reservations",
    "quota": "/apis/scheduling.sigs.k8s.io/v1alpha1/elasticquotas",
}


@pytest.mark.parametrize("subject", FORBIDDEN)
async def test_what_may_not_be_read_is_not_said_to_be_absent(subject, plane, tmp_path, capsys):
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(credentials.kubeconfig(plane.url, b"", "t")))
    words = ["explain", subject, "x", f"--kubeconfig={file}"]
    for path in ("/api/v1/namespaces/koordinator-system/configmaps", FORBIDDEN[subject]):
        plane.list(path)
    assert await asyncio.to_thread(main.main, words) == 1
    assert "here is no" in capsys.readouterr().out
    plane.answers[FORBIDDEN[subject]] = 403
    assert await asyncio.to_thread(main.main, words) == 1
    told = capsys.readouterr()
    assert (told.out, "403" in told.err) == ("", True)


def test_a_quota_is_not_found_in_another_namespace():
    found = cluster.build(quotas.TEAMS)
    assert explain.quota(found, "team-a", "team-a").found
    assert explain.quota(found, "team-a/team-a").found
    story = explain.quota(found, "team-a", "shop")
    assert story.verdict == "There is no ElasticQuota shop/team-a: team-a is in team-a."
    assert not story.found


def test_a_cluster_that_cannot_be_reached_is_said(tmp_path, capsys):
    missing = tmp_path / "none"
    assert main.main(["explain", "node", "n1", f"--kubeconfig={missing}"]) == 1
    assert "koord explain: " in capsys.readouterr().err


async def test_the_layout_of_a_node_is_read_of_its_objects_and_pods(plane, kube):
    plane.answers["/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies/n1"] = {"zones": []}
    plane.list("/api/v1/pods", {"metadata": {"name": "p"}})
    sources = story_sources.Sources(kube, clock.SystemClock(), story_sources.Options())
    found = await sources.layout(NODE)
    assert (found.node, found.topology, found.device) == (NODE, {"zones": []}, None)
    assert [pod["metadata"]["name"] for pod in found.pods] == ["p"]
    assert any("fieldSelector=spec.nodeName%3Dn1" in path for path in plane.asked)
    assert [(one.name, one.note) for one in sources.noted] == [
        ("NodeResourceTopology", ""), ("Device", "there is none"), ("pods", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("output", ["text", "json"])
async def test_the_command_prints_the_layout_of_a_node(plane, tmp_path, capsys, output):
    plane.answers["/api/v1/nodes/n1"] = NODE
    plane.list("/api/v1/pods")
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": plane.url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    }  # fmt: skip
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))

    def run(node):
        return main.main(
            ["explain", "node", node, "--topology", "-o", output, f"--kubeconfig={path}"]
        )

    assert await asyncio.to_thread(run, "n1") == 0
    said = capsys.readouterr().out
    if output == "json":
        assert json.loads(said)["notReached"] == []
    else:
        assert said.startswith("Node n1: 0 CPUs, 0 sockets, 0 NUMA nodes.\n")
    assert await asyncio.to_thread(run, "n2") == 1
    assert "there is no node n2" in capsys.readouterr().err
