"""The shell of `koord uninstall`: looks, does, looks again, and tells the truth about it."""

import asyncio
import contextlib
import io
import json
import sys

import pytest
import pytest_asyncio

from api import names, resources
from api.kubernetes import crds
from api.wire import durations
from cli import main
from cli.commands import uninstall
from cli.install import apply, process_pods, releasing, removal
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from simulator import cluster
from simulator.processes import credentials
from tests.planes.install import checkups

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
NAMESPACE = names.NAMESPACE
NODE = "n"
DEFINED = (f"{resources.GROUP_SLO}_", f"{resources.GROUP_CONFIG}_")


class Installed:
    """A simulated cluster in which our processes have left their traces and run no more."""

    def __init__(self, plane, kube):
        self.plane = plane
        self.kube = kube
        self.clock = clocks.SystemClock()

    def uninstaller(self, *, timeout=5.0, **options):
        chosen = removal.Options(**options)
        return uninstall.Uninstaller(self.kube, self.clock, chosen, timeout)

    async def names(self, resource, namespace=""):
        listing = await self.kube.list(resource, namespace)
        return {item["metadata"]["name"] for item in listing.items}


@pytest_asyncio.fixture
async def it():
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plane = await enter(cluster.running(cluster.Options(with_kubelets=False)))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        kube = await enter(clients.Client(access, clock=clock))
        for name, definition in crds.documents().items():
            if name.startswith(DEFINED):
                await apply.one(kube, definition)
        await apply.everything(kube, apply.documents("foundation.yaml"))
        await traces(kube)
        yield Installed(plane, kube)


async def traces(kube):
    # An API server manages the fields of what was made with some, as every kubelet makes its node.
    labels = {"kubernetes.io/hostname": NODE}
    await kube.create(resources.NODES, {"metadata": {"name": NODE, "labels": labels}})
    lent = {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
    body = {
        "metadata": {"annotations": {names.ANNOTATION_ORIGIN_ALLOCATABLE: "{}"}},
        "status": {"capacity": lent, "allocatable": lent},
    }
    await kube.patch(
        resources.NODES, NODE, body, subresource="status", field_manager="koord-manager"
    )
    ours = {names.LABEL_CREATED_BY: "koord-manager"}
    report = {
        "apiVersion": resources.NODE_METRICS.api_version,
        "kind": "NodeMetric",
        "metadata": {"name": NODE, "labels": ours},
    }
    await kube.create(resources.NODE_METRICS, report)
    secret = {"metadata": {"name": removal.SECRET}}
    await kube.create(resources.SECRETS, secret, NAMESPACE)
    deployment = checkups.deployment("manager", replicas=0)
    deployment["metadata"].pop("namespace")
    await kube.create(resources.DEPLOYMENTS, deployment, NAMESPACE)


async def hold(kube, clock, holder="by-hand"):
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "renewTime": durations.precise_moment(clock.now()),
    }
    body = {"metadata": {"name": "koordinator-manager"}, "spec": spec}
    await kube.create(resources.LEASES, body, NAMESPACE)


async def test_all_traces_go_and_what_people_made_stays(it, capsys):
    await hold(it.kube, it.clock, holder="")
    assert await it.uninstaller().run()
    told = capsys.readouterr().out
    assert "delete Deployment koordinator-system/koord-manager" in told
    assert "take kubernetes.io/batch-cpu, kubernetes.io/batch-memory, node.koord" in told
    node = await it.kube.get(resources.NODES, NODE)
    # An API server does not write a map that is empty.
    left = node["status"].get("allocatable", {})
    assert not {names.BATCH_CPU, names.BATCH_MEMORY} & set(left)
    assert not node["metadata"].get("annotations")
    assert await it.names(resources.NODE_METRICS) == set()
    assert await it.names(resources.SECRETS, NAMESPACE) == set()
    assert await it.names(resources.LEASES, NAMESPACE) == set()
    assert await it.names(resources.DEPLOYMENTS, NAMESPACE) == set()
    assert names.CONFIG_MAP_SLO in await it.names(resources.CONFIG_MAPS, NAMESPACE)
    assert len(await it.names(resources.CRDS)) == 3
    assert await it.uninstaller().run()
    assert "delete" not in capsys.readouterr().out.replace("kubectl delete", "")


async def test_purge_takes_definitions_too(it):
    assert await it.uninstaller(purge=True).run()
    assert await it.names(resources.CRDS) == set()
    assert names.CONFIG_MAP_SLO not in await it.names(resources.CONFIG_MAPS, NAMESPACE)


async def test_a_manager_that_works_is_not_cleaned_up_behind(it, capsys):
    await hold(it.kube, it.clock)
    assert not await it.uninstaller(timeout=0.0).run()
    assert "by-hand, which holds Lease" in capsys.readouterr().out
    node = await it.kube.get(resources.NODES, NODE)
    assert names.BATCH_CPU in node["status"]["allocatable"]


OTHERS_GATE = "example.com/other"


async def wait_for_quota(kube, name, *gates, condition="False"):
    spec = {
        "containers": [{"name": "c", "image": "x:1"}],
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    await kube.create(resources.PODS, {"metadata": {"name": name}, "spec": spec}, "default")
    told = [{"type": kind, "status": condition} for kind in (names.CONDITION_QUOTA, "a.io/Other")]
    await kube.patch(
        resources.PODS,
        name,
        {"status": {"conditions": told}},
        namespace="default",
        kind=clients.Patch.STRATEGIC,
        subresource="status",
    )


async def waits_for(kube, name):
    pod = await kube.get(resources.PODS, name, "default")
    gates = {gate["name"] for gate in pod["spec"].get("schedulingGates") or ()}
    return gates, {one["type"] for one in pod["status"].get("conditions") or ()}


async def test_pods_that_wait_behind_our_gates_are_let_go(it, capsys):
    await wait_for_quota(it.kube, "a", names.GATE_QUOTA)
    await wait_for_quota(it.kube, "b", names.GATE_QUOTA, OTHERS_GATE)
    await wait_for_quota(it.kube, "c", OTHERS_GATE)
    assert await it.uninstaller().run()
    gates, conditions = await waits_for(it.kube, "a")
    assert gates == set()
    assert names.CONDITION_QUOTA not in conditions
    assert "a.io/Other" in conditions
    for name in ("b", "c"):
        gates, conditions = await waits_for(it.kube, name)
        assert gates == {OTHERS_GATE}
        assert names.CONDITION_QUOTA not in conditions
    told = capsys.readouterr().out
    assert "open our scheduling gates of 2 pods: default/a, default/b (2 writes, 0 refused)" in told
    assert told.index("delete Deployment") < told.index("open our scheduling gates")
    assert await it.uninstaller().run()
    assert uninstall.NOTHING in capsys.readouterr().out


async def test_gates_open_even_where_a_manager_cannot_be_stopped(it):
    await wait_for_quota(it.kube, "a", names.GATE_QUOTA)
    await hold(it.kube, it.clock)
    assert not await it.uninstaller(timeout=0.0).run()
    assert (await waits_for(it.kube, "a"))[0] == set()


class Refuses:
    """An API server that refuses this account one verb on one kind."""

    def __init__(self, kube, verb, kind):
        self._kube = kube
        self._verb = verb
        self._kind = kind
        self.asked = 0

    def __getattr__(self, name):
        real = getattr(self._kube, name)

        async def refused(resource, *given, **options):
            if resource == self._kind:
                self.asked += 1
                raise errors.Forbidden(403, "Forbidden", "not you")
            return await real(resource, *given, **options)

        return refused if name == self._verb else real


async def test_gates_that_may_not_be_opened_are_told_and_the_rest_goes_on(it, capsys):
    names_of_pods = [f"p{number}" for number in range(25)]
    for name in names_of_pods:
        body = {
            "metadata": {"name": name},
            "spec": {
                "containers": [{"name": "c", "image": "x:1"}],
                "schedulingGates": [{"name": names.GATE_QUOTA}],
            },
        }
        await it.kube.create(resources.PODS, body, "default")
    refusing = Refuses(it.kube, "patch", resources.PODS)
    uninstaller = uninstall.Uninstaller(refusing, it.clock, removal.Options(), 5.0)
    assert not await uninstaller.run()
    told = capsys.readouterr().out
    assert "failed: open koord.sh/quota of Pod default/p0: 403 Forbidden: not you" in told
    assert "left: open our scheduling gates of 25 pods" in told
    # Two passes, each of which gives up after as many refusals as it can meet at once.
    assert refusing.asked <= 2 * (releasing.MOST_FAILURES + releasing.AT_ONCE)
    assert await it.names(resources.SECRETS, NAMESPACE) == set()
    assert await it.uninstaller().run()
    assert (await waits_for(it.kube, "p24"))[0] == set()


async def a_pod_of_ours(kube, name, component):
    """Make a pod whose node has no kubelet: once it is deleted it is terminating for ever."""
    labels = {**checkups.OURS, names.LABEL_COMPONENT: component}
    spec = {"nodeName": NODE, "containers": [{"name": "c", "image": "x:1"}]}
    body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    await kube.create(resources.PODS, body, NAMESPACE)


async def test_pods_that_do_not_end_are_not_waited_for_for_ever(it, capsys):
    await a_pod_of_ours(it.kube, "stuck", "webhook")
    await it.kube.delete(resources.PODS, "stuck", NAMESPACE)
    assert await it.uninstaller(timeout=0.0).run()
    assert "going on without waiting for pod koordinator-system/stuck" in capsys.readouterr().out


async def test_behind_a_pod_that_nothing_ends_nothing_is_cleaned(it, capsys):
    await a_pod_of_ours(it.kube, "goes-on", "agent")
    assert not await it.uninstaller(timeout=0.0).run()
    told = capsys.readouterr().out
    assert "not cleaned: pod koordinator-system/goes-on would write again" in told
    assert f"note: the agent of 1 node is not ready and may leave limits behind: {NODE};" in told
    assert await it.names(resources.SECRETS, NAMESPACE)
    assert await it.names(resources.NODE_METRICS) == {NODE}


async def test_behind_a_workload_that_may_not_be_deleted_nothing_is_cleaned(it, capsys):
    refusing = Refuses(it.kube, "delete", resources.DEPLOYMENTS)
    uninstaller = uninstall.Uninstaller(refusing, it.clock, removal.Options(), 0.0)
    assert not await uninstaller.run()
    told = capsys.readouterr().out
    workload = f"Deployment {NAMESPACE}/koord-manager"
    assert f"failed: delete {workload}: 403 Forbidden: not you" in told
    assert f"not cleaned: {workload} would write again; stop it, then run this" in told
    assert "going on" not in told
    assert await it.names(resources.SECRETS, NAMESPACE)
    assert await it.names(resources.NODE_METRICS) == {NODE}


class EndsAnAgent(clocks.SystemClock):
    """Time in which the pod of an agent ends."""

    def __init__(self, kube, name):
        self._kube = kube
        self._name = name

    async def sleep(self, seconds):
        with contextlib.suppress(errors.NotFound):
            await self._kube.delete(resources.PODS, self._name, NAMESPACE, grace_seconds=0)


async def test_nodes_whose_agent_was_not_ready_are_named_once_all_is_gone(it, capsys):
    await a_pod_of_ours(it.kube, "koord-agent-x", "agent")
    clock = EndsAnAgent(it.kube, "koord-agent-x")
    assert await uninstall.Uninstaller(it.kube, clock, removal.Options(), 5.0).run()
    told = capsys.readouterr().out
    assert await it.names(resources.PODS, NAMESPACE) == set()
    assert f"note: the agent of 1 node is not ready and may leave limits behind: {NODE};" in told
    assert told.splitlines()[-1] == uninstall.NOTHING


async def test_it_can_be_interrupted_anywhere_and_run_again(it):
    plan = removal.plan(await it.uninstaller()._reader.inventory(), removal.Options())
    for number in range(1, len(plan.steps)):
        # Only so many steps are done before somebody pulls the plug.
        await it.uninstaller()._all(plan.steps[:number])
    assert await it.uninstaller().run()


async def test_what_may_not_be_removed_is_told_and_fails(it, capsys):
    refusing = Refuses(it.kube, "delete", resources.SECRETS)
    assert not await uninstall.Uninstaller(refusing, it.clock, removal.Options(), 5.0).run()
    told = capsys.readouterr().out
    assert f"failed: delete Secret {NAMESPACE}/{removal.SECRET}: 403 Forbidden: not you" in told
    assert f"left: delete Secret {NAMESPACE}/{removal.SECRET}" in told
    assert await it.names(resources.NODE_METRICS) == set()


async def test_a_static_pod_of_ours_stops_it_before_it_begins(it, capsys):
    labels = {**checkups.OURS, names.LABEL_COMPONENT: "scheduler"}
    annotations = {process_pods.MIRROR: "x"}
    metadata = {"name": "koord-extender-cp", "labels": labels, "annotations": annotations}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    await it.kube.create(resources.PODS, {"metadata": metadata, "spec": spec}, "kube-system")
    assert not await it.uninstaller().run()
    assert "cannot begin: the extender runs as a static pod" in capsys.readouterr().out
    assert await it.names(resources.DEPLOYMENTS, NAMESPACE)


@pytest.fixture
def command(it, tmp_path):
    config = tmp_path / "kubeconfig"
    login = credentials.kubeconfig(it.plane.server, it.plane.ca, it.plane.token)
    config.write_text(json.dumps(login))

    def run(*words):
        words = ("uninstall", f"--kubeconfig={config}", *words)
        return asyncio.to_thread(main.main, list(words))

    return run


async def test_the_command_shows_asks_and_does(it, command, capsys):
    assert await command("--dry-run") == 0
    told = capsys.readouterr().out
    assert "would delete Secret" in told
    assert told.startswith(f"cluster: {it.plane.server}, by ")
    assert f", namespace {NAMESPACE}\n" in told
    # Nobody sits at this terminal.
    assert await command() == 1
    assert "pass --yes" in capsys.readouterr().out
    assert await it.names(resources.SECRETS, NAMESPACE)
    assert await command("--yes", "--timeout=5") == 0
    assert "nothing of it is there any more" in capsys.readouterr().out
    assert await command("--dry-run") == 0
    assert uninstall.NOTHING in capsys.readouterr().out


async def test_who_is_asked_is_told_which_cluster_is_meant(it, command, capsys, monkeypatch):
    class Person(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Person("no\n"))
    assert await command() == 1
    told = capsys.readouterr().out
    assert f"carry it out on {it.plane.server}, by " in told
    assert await it.names(resources.SECRETS, NAMESPACE)


async def test_a_hook_leaves_to_the_installer_what_it_made(it, command):
    labels = dict(checkups.OURS)
    account = {"metadata": {"name": "koord-manager", "labels": labels}}
    await it.kube.create(resources.SERVICE_ACCOUNTS, account, NAMESPACE)
    assert await command("--yes", "--keep-installation") == 0
    assert "koord-manager" in await it.names(resources.SERVICE_ACCOUNTS, NAMESPACE)
    assert await command("--yes") == 0
    assert "koord-manager" not in await it.names(resources.SERVICE_ACCOUNTS, NAMESPACE)


def test_an_api_server_out_of_reach_is_said(tmp_path, capsys):
    assert main.main(["uninstall", "--yes", f"--kubeconfig={tmp_path / 'none'}"]) == 1
    assert "there is no kubeconfig" in capsys.readouterr().err
