"""The whole extender with the configuration of the scheduler that calls it."""

import json

import aiohttp
import pytest
import yaml

from api.kubernetes import scheduler_config
from extender import app
from extender.scoring import assembly, informers, profiles
from extender.settings import SchedulerSettings
from process.runtime import clock
from tests.extender.test_app import Running, _settings

URL = "http://127.0.0.1:9211"
WATCHED = (
    *("services", "replicasets", "statefulsets", "replicationcontrollers"),
    *("namespaces", "persistentvolumeclaims", "deviceclasses"),
)


def configuration(url=URL, **more):
    config = scheduler_config.render(scheduler_config.Options(url))
    return yaml.safe_dump(config | more)


@pytest.fixture
def file(tmp_path):
    """The configuration as `koord render scheduler-config` writes it."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(configuration())
    return path


@pytest.fixture
async def deciding(api_server, make, file):
    api_server.objects |= {plural: {} for plural in WATCHED}
    for name, cpu in (("n1", "4"), ("n2", "64"), ("n3", "8")):
        api_server.put("nodes", make.node(name, cpu=cpu))
    chosen = {"config_file": file, "version": "v1.36.3", "extender_url": URL}
    time = clock.ManualClock(now=1782907510.0)
    async with (
        api_server.serving() as access,
        aiohttp.ClientSession() as session,
        app.running(_settings(scheduler=chosen), access=access, clock=time) as made,
    ):
        extender = Running(made, session, api_server, time)
        await extender.ready()
        await extender.until(lambda: made.answers.decider.synced)
        yield extender


async def test_the_best_node_is_answered_and_explained(deciding, make):
    pod = make.pod("p", requests={"cpu": "2"})
    assert (await deciding.filter(pod, "n1", "n2", "n3"))["NodeNames"] == ["n2"]
    status, text = await deciding.page("/debug/explain?pod=default/p")
    assert status == 200
    told = json.loads(text)["decision"]
    assert (told["chosen"]["node"], told["runnerUp"]["node"]) == ("n2", "n3")
    _, figures = await deciding.page("/metrics")
    assert 'koord_extender_decisions_total{left_because=""} 1.0' in figures


async def test_what_only_scores_depend_on_is_watched(deciding, make, api_server):
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    pod = make.pod("p", requests={"cpu": "2"})
    pod["spec"]["volumes"] = [claim]
    names = ["n1", "n2", "n3"]
    assert (await deciding.filter(pod, *names))["NodeNames"] == names
    bound = {
        "metadata": {
            "name": "data",
            "namespace": "default",
            "uid": "c",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "pv-1"},
    }
    api_server.put("persistentvolumeclaims", bound)
    decider = deciding.app.answers.decider
    await deciding.until(lambda: "default/data" in decider.caches.bound_claims)
    assert (await deciding.filter(pod, *names))["NodeNames"] == ["n2"]
    device = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    api_server.put("deviceclasses", device)
    await deciding.until(lambda: "example.com/gpu" in decider.caches.device_resources)
    other = make.pod("q", requests={"example.com/gpu": "1"})
    assert (await deciding.filter(other, *names))["NodeNames"] == names


async def test_controllers_that_run_pods_are_known(deciding, make, api_server):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r"}
    pod = make.pod("p", ownerReferences=[owner | {"controller": True}])
    names = ["n1", "n2", "n3"]
    assert (await deciding.filter(pod, *names))["NodeNames"] == names
    controller = {
        "metadata": {"name": "web", "namespace": "default", "uid": "r"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    api_server.put("replicasets", controller)
    index = deciding.app.answers.decider.caches.workloads
    metadata = informers.core.ObjectMeta(
        namespace="default",
        owner_references=(
            informers.core.OwnerReference("apps/v1", "ReplicaSet", "web", controller=True),
        ),
    )
    await deciding.until(lambda: index.knows_controller(metadata))
    assert (await deciding.filter(pod, *names))["NodeNames"] == ["n2"]
    api_server.put("replicasets", controller | {"spec": controller["spec"] | {"replicas": 0}})
    await deciding.until(lambda: not index.knows_controller(metadata))


async def test_nothing_is_decided_after_the_configuration_has_changed(deciding, make, file):
    assert "decide" not in deciding.app.health.warnings()
    file.write_text(configuration(percentageOfNodesToScore=50))
    await deciding.time.advance(10.0)
    await deciding.until(lambda: deciding.app.answers.decider.halted)
    names = ["n1", "n2", "n3"]
    assert (await deciding.filter(make.pod("p"), *names))["NodeNames"] == names
    assert deciding.app.health.warnings()["decide"] == assembly.CHANGED


# -- what is known of the scheduler --------------------------------------------------------------


def read(text, version="1.36", arguments=(), url=URL):
    return profiles.read(profiles.Scheduler(text, version, arguments, url))


def test_every_profile_is_read():
    named = [{"schedulerName": "a"}, {"schedulerName": "b"}]
    found = read(configuration(profiles=named))
    assert set(found.by_name) == {"a", "b"}
    assert found.unsupported() == ""
    assert found.resources == ("cpu", "memory")


OTHER = {"urlPrefix": "http://other", "filterVerb": "filter"}
LEFT = {
    "no version": (configuration(), {"version": ""}, profiles.UNKNOWN_VERSION),
    "a tag without a version": (configuration(), {"version": "latest"}, profiles.UNKNOWN_VERSION),
    "broken text": ("{", {}, profiles.UNREADABLE),
    "another kind": ("kind: ConfigMap", {}, profiles.UNREADABLE),
    "an emulated version": (
        configuration(),
        {"arguments": ("--emulated-version=1.35",)},
        profiles.EMULATED,
    ),
    "an unknown release": (
        configuration(),
        {"version": "v1.99.0"},
        "default-scheduler: the scores of Kubernetes 1.99 are not known",
    ),
    "another extender that filters": (
        configuration(extenders=[OTHER]),
        {},
        "default-scheduler: another extender filters or scores",
    ),
    "a score plug-in of somebody else": (
        configuration(
            profiles=[
                {
                    "schedulerName": "koord-scheduler",
                    "plugins": {"score": {"enabled": [{"name": "Mine"}]}},
                }
            ]
        ),
        {},
        "koord-scheduler: score plug-in Mine is not known",
    ),
    "a feature gate": (
        configuration(),
        {"arguments": ("--feature-gates", "PodLevelResources=false")},
        "default-scheduler: feature gate PodLevelResources is not at its default",
    ),
    "a feature gate in one word": (
        configuration(),
        {"arguments": ("--v=2", "--feature-gates=A=true,PodLevelResources=false")},
        "default-scheduler: feature gate PodLevelResources is not at its default",
    ),
    "another address": (
        configuration(),
        {"url": "http://127.0.0.1:1"},
        "default-scheduler: another extender filters or scores",
    ),
}


@pytest.mark.parametrize(("text", "more", "reason"), LEFT.values(), ids=LEFT)
def test_what_cannot_be_computed_is_left_to_the_scheduler(text, more, reason):
    assert read(text, **more).unsupported() == reason


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        pytest.param({}, "", id="no file"),
        pytest.param({"decide": "never", "config_file": "/nowhere"}, "", id="not wanted"),
        pytest.param({"config_file": "/nowhere"}, "/nowhere cannot be read", id="no such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_where_it_matters(chosen, reason):
    assert assembly.problem(SchedulerSettings(**chosen)).startswith(reason)


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("1.36", 36),
        ("v1.36.3", 36),
        ("v1.30.14-eks-1", 30),
        ("", None),
        ("2.0", None),
        ("1.x", None),
    ],
)
def test_minor_versions_are_read(version, minor):
    assert profiles.minor_of(version) == minor
