"""What the chart installs, under RBAC: it works, is refused nothing and is granted nothing in vain.

Each process runs with the arguments, settings and account of its pod template. A life of the
installation is lived once for each way to install; the tests look at what it left behind.
"""

import asyncio
import json

import pytest
import pytest_asyncio
import yaml

from api import names, resources
from simulator.processes import binaries as planes
from tests.e2e import binaries as builds
from tests.planes import raw
from tests.planes.install import chart, grants, installation, installed
from tests.planes.install.lives import days, whole
from tests.planes.processes import connections
from tests.planes.programs import kubectl as kubectls

NAMESPACE = names.NAMESPACE
PREFIX = f"system:serviceaccount:{NAMESPACE}:"
# The fixture installs, lives and uninstalls; on a busy machine that takes its time.
whole_life = pytest.mark.timeout(300)
ACCOUNTS = {
    "beside": ("agent", "descheduler", "manager", "scheduler", "test", "uninstall", "webhook"),
    "in-place": ("agent", "extender", "test", "uninstall", "webhook"),
}
# The kubelet asks the API server whether the agent may; the agent itself never calls this.
ASKED_BY_KUBELETS = ("nodes/pods", "nodes/configz", "nodes/proxy")
# Older releases do not serve the version that is watched.
DYNAMIC_RESOURCES = {"deviceclasses", "resourceslices", "resourceclaims"}
DYNAMIC_RESOURCES_SINCE = 34
# The version of PodGroups of Kubernetes itself, by minor release; nothing serves them by default.
# Nobody installs OpenKruise here, and a life is shorter than jobs are kept.
NOT_HERE = {("watch", "apps.kruise.io"), ("list", "apps.kruise.io")}
LATER = ("delete", "podmigrationjobs")
POD_GROUPS = {36: "v1alpha2", 37: "v1beta1"}


def _minor():
    return int(builds.version().split(".")[1])


def _flags(minor):
    """Newer API servers stream lists inside watches; the permission to list is for all others."""
    gates = "--feature-gates=WatchList=false"
    if minor not in POD_GROUPS:
        return (gates,)
    served = f"--runtime-config=scheduling.k8s.io/{POD_GROUPS[minor]}=true"
    return (f"{gates},GenericWorkload=true", served)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own(control_plane_binaries, tmp_path_factory):
    """A control plane that writes down who calls what."""
    if not builds.can_build() or builds.kubectl() is None:
        pytest.skip("needs kubectl, and Go to build Helm")
    options = planes.Options(audit=True, service_routing=True, apiserver_flags=_flags(_minor()))
    folder = tmp_path_factory.mktemp("installation") / "state"
    async with planes.running(control_plane_binaries, folder, options=options) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=chart.MODES)
async def life(request, own, tmp_path_factory):
    """A whole life of one way to install."""
    folder = tmp_path_factory.mktemp(request.param)
    kubectl = kubectls.Kubectl(builds.kubectl(), own.write_kubeconfig(folder / "admin.json"))
    yield await whole.lived(own, request.param, kubectl, folder, builds.version())


@whole_life
async def test_a_batch_pod_is_changed_placed_and_run(life):
    requests = life.mutated["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
    assert life.mutated["spec"]["schedulerName"] == "koord-scheduler"
    placement = json.loads(life.bound["metadata"]["annotations"][names.PLACEMENT])
    assert placement["node"] == life.bound["spec"]["nodeName"] == days.WORKER


@whole_life
async def test_the_doctor_misses_nothing_but_what_does_not_run_here(life):
    # The control node has no agent, and beside, second replicas find no scheduler. Plain manifests
    # name no version of kube-scheduler, so they leave choices to it.
    assert life.findings.keys() <= {"workload.partly-ready", "agent.missing", "decisions.left"}
    assert life.findings["agent.missing"]


@whole_life
async def test_helm_test_sees_that_the_parts_work(life):
    assert "0 errors" in life.tested
    assert "the API server calls the webhook" in life.tested
    asked = "the extender answers" if life.mode == "beside" else "installed in place"
    assert asked in life.tested


@whole_life
async def test_nobody_of_ours_is_refused(life):
    assert grants.refused(life.calls, PREFIX, life.documents) == []


@whole_life
async def test_nothing_is_granted_in_vain(life):
    given = {g for g in grants.granted(life.documents) if g.resource not in ASKED_BY_KUBELETS}
    if _minor() < DYNAMIC_RESOURCES_SINCE:
        given = {grant for grant in given if grant.resource not in DYNAMIC_RESOURCES}
    if _minor() not in POD_GROUPS:
        native = "scheduling.k8s.io", "podgroups"
        given = {grant for grant in given if (grant.group, grant.resource) != native}
    given = {
        grant
        for grant in given
        if (grant.verb, grant.group) not in NOT_HERE
        and ((grant.verb, grant.resource) != LATER or not grant.account.endswith("descheduler"))
    }
    if life.mode == "in-place":
        shorter = {f"{PREFIX}koord-{name}" for name in ("manager", "descheduler")}
        given = {grant for grant in given if grant.account not in shorter}
    accounts = {grant.account for grant in given}
    assert accounts == {f"{PREFIX}koord-{name}" for name in ACCOUNTS[life.mode]}
    assert [str(grant) for grant in grants.unused(given, life.calls)] == []


@whole_life
async def test_every_process_calls_whom_its_network_policy_allows(life):
    """A connection elsewhere would be cut, a rule that nobody needs would be a hole."""
    ports = {connections.API_SERVER: (443, 6443), connections.KUBELET: 10250}
    # No process asks for names here, and the extender in place has the network of its node.
    unseen = {connections.NAMES}
    components = {"agent", "descheduler", "manager", "webhook"} | (
        {"scheduler"} & {*ACCOUNTS[life.mode]}
    )
    for component in components:
        allowed = connections.allowed(life.documents, component, ports)
        assert life.called[component] <= allowed, component
        if life.mode == "beside":
            # The other life is shorter, and a probe that ends between two looks is not seen.
            assert life.called[component] == allowed - unseen, component
    assert connections.allowed(life.documents, "uninstall", ports) == {connections.API_SERVER}
    asked = {connections.EXTENDER} if life.mode == "beside" else set()
    assert connections.allowed(life.documents, "test", ports) == {connections.API_SERVER, *asked}


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
    values = ("--set", whole.VALUES[0], "--set", "agent.kubeletAccess=pods")
    notes = await helm("install", "koord", str(chart.CHART), "--create-namespace", *values)
    assert "koord doctor cluster" in notes
    documents = chart.documents(chart.template(whole.VALUES[0]))
    async with raw.connected(own.server, own.ca, own.token) as api:
        await installed.served(api, documents)
    await kubectl("create", "-f", "-", stdin=json.dumps(days.PROFILE))
    assert await workers() is None
    change = ("--reuse-values", "--set", "manager.settings.workers=4")
    await helm("upgrade", "koord", str(chart.CHART), *change)
    assert await workers() == 4
    await helm("rollback", "koord", "1")
    assert await workers() is None
    await answered_by_helm(own, helm, kubectl)
    # There is no kubelet here that would run the hook's Job.
    await helm("uninstall", "koord", "--no-hooks", "--wait")
    assert await kubectl("get", "crd", "-l", installation.MINE, "-o", "name")
    assert await kubectl("get", "clustercolocationprofile", days.USERS, "-o", "name")
    deployed = await kubectl("get", "deploy,ds,cm,secret,sa", "-A", "-l", installation.MINE)
    assert not deployed.strip()


async def answered_by_helm(own, helm, kubectl):
    """There is no kubelet here: say that the pod of `helm test` has ended well."""

    async def ends():
        async with raw.connected(own.server, own.ca, own.token) as api:
            path = resources.PODS.path(NAMESPACE, "koord-test")
            await api.wait_until(path, lambda found: found is not None, 60.0)
            await api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})

    said, _ = await asyncio.gather(helm("test", "koord", "--timeout=60s"), ends())
    assert "Phase:          Succeeded" in said
    left = await kubectl("get", "pod,sa,role,rolebinding", "-A", "-o", "name")
    assert "koord-test" not in left


async def purged(login):
    """Take away what is left on purpose, definitions with all their objects."""
    words = ("uninstall", "--yes", "--purge", f"--kubeconfig={login}")
    status, said = await installed.ended(*installed.OURS, *words)
    assert status == 0, said
