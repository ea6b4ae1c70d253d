"""The shells of `koord doctor`: what they read, what they send, and what they print."""

import asyncio
import base64
import contextlib
import io
import json
import tarfile

import pytest
import pytest_asyncio

from api import names, resources
from cli import main
from cli.commands import doctor
from cli.dev import all_in_one
from cli.doctor import probes, support_bundle, survey
from cli.doctor.checkup import checks, facts, findings
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from simulator import cluster
from simulator.processes import credentials
from tests.planes.install import checkups

# Each test has an API server of its own, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(90)
KEY = "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIB\n-----END PRIVATE KEY-----"


class Sick:
    """A simulated cluster with our processes, and the clients of the doctor."""

    def __init__(self, plane, access, kube, clock):
        self.plane = plane
        self.access = access
        self.kube = kube
        self.clock = clock

    async def findings(self, **options):
        chosen = survey.Options(**options)
        found = await doctor.examine(self.kube, self.clock, chosen, lambda _text: None)
        return {finding.check: finding for finding in found}


@contextlib.asynccontextmanager
async def opened(folder, *, processes=True):
    clock = clocks.SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plane = await enter(cluster.running(cluster.Options(with_kubelets=False)))
        access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
        kube = await enter(clients.Client(access, clock=clock, limits=doctor.LIMITS))
        await apply.everything(kube, apply.documents("foundation.yaml"))
        if processes:
            await apply.definitions(kube, clock)
            await enter(all_in_one.running(all_in_one.Options(folder), access=access, clock=clock))
        yield Sick(plane, access, kube, clock)


@pytest_asyncio.fixture
async def sick(tmp_path):
    async with opened(tmp_path, processes=False) as it:
        yield it


async def test_a_development_cluster_is_examined_as_far_as_it_goes(tmp_path):
    async with opened(tmp_path) as it:
        found = await it.findings()
        while any(f.severity is findings.Severity.ERROR for f in found.values()):
            await asyncio.sleep(0.05)
            found = await it.findings()
    fine = {name for name, f in found.items() if f.severity is findings.Severity.OK}
    assert {"version", "crd", "certificate", "webhook", "clock", "manager"} <= fine
    unknown = {name for name, f in found.items() if f.severity is findings.Severity.UNKNOWN}
    assert unknown == {"workload", "rbac", "neighbour", "colocation"}
    assert all("501" in found[name].sentence for name in unknown)
    assert all("make it readable" not in found[name].remedy for name in unknown)


def test_a_scheduler_configuration_that_is_not_there_is_a_wrong_argument(tmp_path, capsys):
    absent = tmp_path / "absent.yaml"
    assert main.main(["doctor", f"--scheduler-config={absent}"]) == 2
    said = capsys.readouterr().err
    assert said == f"koord doctor: --scheduler-config {absent}: there is no such file\n"


async def test_schedulers_are_read_from_config_maps_and_files(sick, tmp_path):
    good = json.dumps(checkups.beside())
    bad = good.replace('"ignorable": false', '"ignorable": true')
    body = {"metadata": {"name": "koord-scheduler"}, "data": {"config.yaml": bad, "other": "x"}}
    await sick.kube.create(resources.CONFIG_MAPS, body, names.NAMESPACE)
    path = tmp_path / "in-place.yaml"
    path.write_text(good)
    absent = tmp_path / "absent.yaml"
    known = await survey.Surveyor(
        sick.kube, sick.clock, survey.Options(scheduler_configs=(path, absent)), lambda _text: None
    ).take()
    first, second, third = known.scheduler_configs
    assert (first.source, first.beside) == (str(path), False)
    assert isinstance(second.document, facts.Unknown)
    assert third.source == "ConfigMap koordinator-system/koord-scheduler (config.yaml)"
    assert third.beside
    told = {finding.check for finding in checks.examine(known)}
    assert {"scheduler.ignorable-bind", "scheduler.unreadable"} <= told


@pytest.mark.parametrize(
    ("text", "says"),
    [("a: [", "it is no YAML"), ("kind: Pod", "it is no KubeScheduler"), ("- 1", "it is no Kube")],
)
def test_what_is_no_scheduler_configuration_is_said(text, says):
    answer = survey.parse_config("here", text)
    assert isinstance(answer, facts.Unknown)
    assert says in answer.reason


async def test_only_certificates_are_read_out_of_the_secret(sick):
    authority, leaf = checkups.pair()
    files = {
        "webhook.crt": leaf.certificate, "webhook.key": KEY.encode(),
        "ca-1.crt": authority.certificate, "ca-1.key": KEY.encode(),
        "bundle.crt": authority.certificate, "rotation.json": b"{}",
    }  # fmt: skip
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    body = {"metadata": {"name": facts.OWN_CERTIFICATES}, "data": data}
    await sick.kube.create(resources.SECRETS, body, names.NAMESPACE)
    surveyor = survey.Surveyor(sick.kube, sick.clock, survey.Options(), lambda _text: None)
    known = await surveyor.take()
    assert known.certificates == facts.Certificates(
        facts.OWN_CERTIFICATES, leaf.certificate, (authority.certificate,)
    )
    assert "MHcCAQEEIB" not in repr(known)


@pytest.mark.parametrize("name", ["koord-webhook-tls", "my-tls"])
async def test_a_certificate_that_somebody_else_issues_is_found_under_its_name(sick, name):
    authority, leaf = checkups.pair()
    data = {"tls.crt": leaf.certificate, "ca.crt": authority.certificate}
    encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
    # The one that it issued itself before stays there.
    former, _ = checkups.pair()
    own = {"webhook.crt": base64.b64encode(former.certificate).decode()}
    for secret, content in ((facts.OWN_CERTIFICATES, own), (name, encoded)):
        body = {"metadata": {"name": secret}, "data": content}
        await sick.kube.create(resources.SECRETS, body, names.NAMESPACE)
    deployment = checkups.deployment("webhook")
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "tls", "secret": {"secretName": name}}]
    deployment["spec"]["template"]["spec"]["volumes"] = volumes
    await sick.kube.create(resources.DEPLOYMENTS, deployment, names.NAMESPACE)
    surveyor = survey.Surveyor(sick.kube, sick.clock, survey.Options(), lambda _text: None)
    assert (await surveyor.take()).certificates == facts.Certificates(
        name, leaf.certificate, (authority.certificate,)
    )


async def test_large_lists_are_read_page_by_page_and_cut_down(sick):
    for number in range(3):
        status = {"images": [{"names": ["x"] * 100}], "capacity": {"cpu": "4"}}
        body = {"metadata": {"name": f"n{number}"}, "status": status}
        await sick.kube.create(resources.NODES, body)
    surveyor = survey.Surveyor(sick.kube, sick.clock, survey.Options(), lambda _text: None)
    nodes = await surveyor.trimmed(resources.NODES, survey.node)
    assert [facts.name(node) for node in nodes] == ["n0", "n1", "n2"]
    assert set(nodes[0]["status"]) == {"capacity", "allocatable", "nodeInfo"}


async def test_without_a_webhook_the_trial_pods_pass_and_nothing_stays(sick):
    probe = await probes.webhook(sick.kube, "default")
    assert (probe.mutated, probe.refused) == (False, False)
    assert (await sick.kube.list(resources.PODS, "default")).items == []


async def test_trial_pods_that_somebody_else_refuses_prove_nothing(sick):
    probe = await probes.webhook(sick.kube, "no-such-namespace")
    assert isinstance(probe.mutated, facts.Unknown)
    assert "404" in probe.mutated.reason
    assert isinstance(probe.refused, facts.Unknown)


async def test_the_clock_of_the_api_server_is_read_off_a_dry_run(sick):
    clock = await probes.clock(sick.kube, sick.clock, names.NAMESPACE)
    assert abs(clock.ours - clock.server) < 60
    maps = await sick.kube.list(resources.CONFIG_MAPS, names.NAMESPACE)
    assert probes.NAME not in [facts.name(item) for item in maps.items]


async def test_the_bundle_holds_what_there_is_and_says_what_is_missing(sick):
    secret = {"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    await sick.kube.create(resources.SECRETS, secret, names.NAMESPACE)
    foreign = {"metadata": {"name": "theirs"}, "data": {"password": "hunter3"}}
    await sick.kube.create(resources.CONFIG_MAPS, foreign, names.NAMESPACE)
    variables = [{"name": "API_TOKEN", "value": "hunter4"}, {"name": "MODE", "value": "observe"}]
    labels = {**checkups.OURS, names.LABEL_COMPONENT: "manager"}
    container = {"name": "c", "image": "x:1", "env": variables}
    pod = {"metadata": {"name": "m-0", "labels": labels}, "spec": {"containers": [container]}}
    await sick.kube.create(resources.PODS, pod, names.NAMESPACE)
    found = [findings.Finding("c", findings.Severity.ERROR, f"a key: {KEY}")]
    packed = await support_bundle.collect(sick.kube, sick.clock, survey.Options(), found)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {
            member.name.removeprefix("koord-bundle/"): archive.extractfile(member).read().decode()
            for member in archive.getmembers()
        }
    everything = "\n".join(files.values())
    for hidden in ("hunter", "MHcCAQEEIB"):
        assert hidden not in everything
    assert "observe" in files["objects/pods.yaml"]
    assert "slo-controller-config" in files["objects/configmaps.yaml"]
    about = json.loads(files["bundle.json"])
    assert about["findings"].startswith("1 error,")
    left_out = "\n".join(about["leftOut"])
    assert "objects/daemonsets.apps.yaml: 501" in left_out
    assert "logs/m-0/c.log" in left_out


def test_a_bundle_is_bounded():
    box = support_bundle.Box()
    box.add("long", b"a" * (support_bundle.MOST_FILE + 10))
    assert len(box.files["long"]) < support_bundle.MOST_FILE + 100
    assert "the middle is left out" in box.problems[0]
    box.add("last", b"x")
    for number in range(support_bundle.MOST_TOTAL // support_bundle.MOST_FILE + 1):
        box.add(f"n{number}", b"b" * support_bundle.MOST_FILE)
    assert "the bundle is full" in box.problems[-1]
    assert sum(map(len, box.files.values())) <= support_bundle.MOST_TOTAL + support_bundle.MOST_FILE


def test_a_bundle_that_cannot_be_written_names_the_file(tmp_path):
    with pytest.raises(support_bundle.BundleError, match=r"none/b\.tgz cannot be written"):
        support_bundle.save(tmp_path / "none" / "b.tgz", b"")
    support_bundle.save(tmp_path / "b.tgz", b"x")
    assert (tmp_path / "b.tgz").stat().st_mode & 0o077 == 0


async def test_what_fails_is_learned_as_unknown():
    async def forbidden():
        raise errors.Forbidden(403, "Forbidden", "no")

    async def unreadable():
        raise ValueError("not a number")

    first = await survey.learn("pods", forbidden())
    second = await survey.learn("pods", unreadable())
    assert first == facts.Unknown("pods", "403 Forbidden: no")
    assert second == facts.Unknown("pods", "the answer cannot be read: not a number")


FOUND = [
    findings.Finding("a.b", findings.Severity.ERROR, "broken", "mend it", "x/y"),
    findings.Finding("c", findings.Severity.OK, "fine"),
    findings.Finding("d.e", findings.Severity.WARNING, "odd", "look"),
]


def test_people_read_the_worst_last():
    assert list(doctor.lines(FOUND)) == [
        "     ok  c: fine",
        "WARNING  d.e: odd",
        "         -> look",
        "  ERROR  a.b: broken",
        "         -> mend it",
        "",
        "1 error, 1 warning, 0 not checked, 0 notes, 1 fine",
    ]


def test_programs_read_everything():
    told = doctor.as_json(FOUND)
    assert told["worst"] == "error"
    assert told["findings"][0] == {
        "check": "a.b", "severity": "error", "sentence": "broken", "remedy": "mend it",
        "object": "x/y",
    }  # fmt: skip


async def test_the_command_from_its_arguments_to_its_exit_code(sick, tmp_path, capsys):
    config = tmp_path / "kubeconfig"
    login = credentials.kubeconfig(sick.plane.server, sick.plane.ca, sick.plane.token)
    config.write_text(json.dumps(login))
    packed = tmp_path / "b.tgz"
    words = ["doctor", "cluster", f"--kubeconfig={config}", "-o", "json", f"--bundle={packed}"]
    code = await asyncio.to_thread(main.main, words)
    told = json.loads(capsys.readouterr().out)
    # Nothing of ours runs here.
    assert code == checks.FAILED
    assert told["worst"] == "error"
    assert "manager.no-leader" in {finding["check"] for finding in told["findings"]}
    assert tarfile.is_tarfile(packed)
    words = ["doctor", f"--kubeconfig={config}", "--fail-on=never"]
    assert await asyncio.to_thread(main.main, words) == 0
    assert "manager.no-leader: there is no Lease" in capsys.readouterr().out


def test_an_api_server_out_of_reach_is_said(tmp_path, capsys):
    assert main.main(["doctor", f"--kubeconfig={tmp_path / 'none'}"]) == 1
    assert "there is no kubeconfig" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["koord-scheduler", "koord-scheduler-config", "mine"])
def test_a_scheduler_configuration_is_read_from_whatever_map_of_ours_holds_it(name):
    """Also from the map that existing manifests bring, by the name that Koordinator gives it."""
    surveyor = survey.Surveyor(None, None, survey.Options(), lambda _text: None)
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: http://127.0.0.1:9211}]\n"
    )
    maps = {name: {"data": {"koord-scheduler-config": text}}, "other": {"data": {"a": "b"}}}
    (found,) = surveyor.schedulers({"config_maps": maps, "deployments": []})
    assert found.source == f"ConfigMap {names.NAMESPACE}/{name} (koord-scheduler-config)"
    assert found.document["kind"] == "KubeSchedulerConfiguration"


def test_what_only_tells_our_plugins_is_no_configuration_of_a_scheduler():
    surveyor = survey.Surveyor(None, None, survey.Options(), lambda _text: None)
    maps = {
        "koord-scheduler-config": {
            "data": {"koord-scheduler-config": "kind: KubeSchedulerConfiguration"}
        }
    }
    assert surveyor.schedulers({"config_maps": maps, "deployments": []}) == []
