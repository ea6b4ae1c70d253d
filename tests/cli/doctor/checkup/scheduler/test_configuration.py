"""Every trap in a scheduler configuration, one change each."""

import dataclasses
import pathlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from api.kubernetes import scheduler_config
from cli.doctor.checkup import facts
from cli.doctor.checkup.scheduler import configuration
from tests.planes.install import checkups

ROOT = pathlib.Path(__file__).parents[5]


def entries(**changes):
    """Both entries with changes: `filter_` and `bind_` before the field say to which."""

    def change(config):
        for prefix, entry in zip(("filter_", "bind_"), config["extenders"], strict=True):
            entry.update(
                {k.removeprefix(prefix): v for k, v in changes.items() if k.startswith(prefix)}
            )

    return change


def top(**changes):
    return lambda config: config.update(changes)


def without(number, field):
    return lambda config: config["extenders"][number].pop(field)


def one_entry(config):
    first, second = config["extenders"]
    config["extenders"] = [{**first, "bindVerb": second["bindVerb"], "httpTimeout": "30s"}]


def unscaled(config):
    config["profiles"][0].pop("plugins")


def disabled_scores(config):
    config["profiles"][0]["plugins"] = {"score": {"disabled": [{"name": "*"}]}}


def managed(*resources, **more):
    listed = [{"name": name, **more} for name in resources]
    return entries(filter_managedResources=listed)


TRAPS = [
    ("api-version", top(apiVersion="kubescheduler.config.k8s.io/v1beta3"), "error"),
    ("no-extender", top(extenders=[]), "error"),
    ("no-bind", without(1, "bindVerb"), "error"),
    ("many-binds", lambda c: c["extenders"].append({**c["extenders"][1]}), "error"),
    ("ignorable-bind", entries(bind_ignorable=True), "error"),
    ("ignorable-filter", entries(filter_ignorable=True), "warning"),
    ("verb-missing", without(0, "preemptVerb"), "warning"),
    ("one-entry", one_entry, "warning"),
    ("filter-timeout-long", entries(filter_httpTimeout="10s"), "warning"),
    ("filter-timeout-short", entries(filter_httpTimeout="1s"), "warning"),
    ("bind-timeout", entries(bind_httpTimeout="20s"), "error"),
    ("bind-timeout", without(1, "httpTimeout"), "error"),
    ("unreadable", entries(filter_httpTimeout="soon"), "error"),
    ("tls-unverified", entries(filter_enableHTTPS=True), "error"),
    (
        "tls-unverified",
        entries(bind_urlPrefix="https://127.0.0.1:9211", bind_tlsConfig={"insecure": True}),
        "error",
    ),
    (
        "tls-one-sided",
        entries(filter_enableHTTPS=True, filter_tlsConfig={"caFile": "/ca.crt"}),
        "warning",
    ),
    ("not-loopback", entries(filter_urlPrefix="http://koord-extender.koord:80"), "error"),
    ("not-loopback", entries(bind_urlPrefix="http://10.0.0.1:9211"), "error"),
    ("extender-weight", entries(filter_weight=10), "warning"),
    ("no-weight", entries(filter_weight=0), "error"),
    ("weights-unscaled", unscaled, "warning"),
    ("full-nodes", entries(filter_nodeCacheCapable=False), "warning"),
    ("managed-core", managed("cpu"), "error"),
    ("managed-core", managed("kubernetes.io/batch-cpu"), "error"),
    ("managed-resources", managed("example.com/gpu"), "info"),
    ("max-backoff", top(podMaxBackoffSeconds=10), "warning"),
    ("max-backoff", lambda config: config.pop("podMaxBackoffSeconds"), "warning"),
    ("lease-shared", top(leaderElection={"leaderElect": True}), "error"),
    ("no-election", top(leaderElection={"leaderElect": False}), "error"),
    ("name-taken", lambda c: c["profiles"][0].pop("schedulerName"), "error"),
]
IDS = [f"{name}-{number}" for number, (name, _, _) in enumerate(TRAPS)]


@pytest.mark.parametrize(("name", "change", "severity"), TRAPS, ids=IDS)
def test_every_trap_is_found_alone(found, name, change, severity):
    config = checkups.beside()
    change(config)
    source = "ConfigMap koordinator-system/koord-scheduler (config.yaml)"
    told = found(scheduler_configs=[facts.SchedulerConfig(source, config, True, 2)])
    assert set(told) == {f"scheduler.{name}"}
    finding = told[f"scheduler.{name}"]
    assert finding.severity == severity
    assert finding.object == source
    assert finding.remedy


def test_a_managed_resource_that_is_ignored_is_two_findings(found):
    config = checkups.beside()
    managed("example.com/gpu", ignoredByScheduler=True)(config)
    told = found(scheduler_configs=[facts.SchedulerConfig("x", config, True)])
    assert set(told) == {"scheduler.managed-resources", "scheduler.ignored-resource"}


def test_the_same_resource_managed_twice_is_found(found):
    config = checkups.beside()
    for entry in config["extenders"]:
        entry["managedResources"] = [{"name": "example.com/gpu"}]
    told = found(scheduler_configs=[facts.SchedulerConfig("x", config, True)])
    assert "managed twice" in told["scheduler.managed-core"].sentence


def test_without_prioritize_the_weights_do_not_matter(found):
    config = checkups.beside()
    without(0, "prioritizeVerb")(config)
    unscaled(config)
    told = found(scheduler_configs=[facts.SchedulerConfig("x", config, True)])
    assert set(told) == {"scheduler.verb-missing"}


def test_an_entry_that_only_preempts_may_be_ignorable(found):
    config = checkups.beside()
    without(0, "preemptVerb")(config)
    third = {"urlPrefix": "http://127.0.0.1:9211", "preemptVerb": "preempt", "ignorable": True}
    config["extenders"].append(third)
    assert found(scheduler_configs=[facts.SchedulerConfig("x", config, True)]) == {}


def test_a_profile_without_scores_needs_no_weights(found):
    config = checkups.beside()
    disabled_scores(config)
    assert found(scheduler_configs=[facts.SchedulerConfig("x", config, True)]) == {}


@pytest.mark.parametrize(("mode", "beside"), [("beside", True), ("in-place", False)])
def test_the_shipped_configurations_are_fine(found, mode, beside):
    text = (ROOT / "deploy" / "scheduler" / f"{mode}.yaml").read_text()
    config = facts.SchedulerConfig(mode, yaml.safe_load(text), beside, 2)
    told = found(scheduler_configs=[config])
    # In the cluster's own scheduler the extender costs every pod the batching of new releases.
    assert set(told) == (set() if beside else {"scheduler.no-batching"})


def test_without_any_configuration_the_way_to_name_one_is_told(found):
    told = found(scheduler_configs=[])
    assert "--scheduler-config FILE" in told["scheduler.config"].remedy


def test_an_unreadable_configuration_is_told_with_its_reason(found):
    unread = facts.Unknown("file", "it is no YAML")
    told = found(scheduler_configs=[facts.SchedulerConfig("file", unread, False)])
    assert told["scheduler.unreadable"].sentence == "file: it is no YAML"


def test_sampling_is_told_where_there_are_more_nodes_than_a_sample(found, healthy):
    many = [checkups.node(f"n{number}") for number in range(101)]
    reports = [checkups.node_metric(f"n{number}") for number in range(101)]
    policies = [{"metadata": {"name": f"n{number}"}} for number in range(101)]
    told = found(nodes=many, node_metrics=reports, node_slos=policies)
    assert set(told) == {"scheduler.sampling"}
    config = checkups.beside(percentage_of_nodes_to_score=100)
    whole = [facts.SchedulerConfig("x", config, True)]
    assert (
        found(nodes=many, node_metrics=reports, node_slos=policies, scheduler_configs=whole) == {}
    )


def test_deadlines_come_from_the_settings_of_the_extender(found, healthy):
    text = "bind: {deadlineSeconds: 40}\nfreshness: {proofSeconds: 3}"
    maps = {**healthy.config_maps, "koord-extender": {"data": {"settings.yaml": text}}}
    told = found(config_maps=maps)
    assert set(told) == {"scheduler.bind-timeout", "scheduler.filter-timeout-short"}


def test_a_proxy_without_exceptions_is_found(found, healthy):
    proxied = checkups.deployment(
        "scheduler", "kube-scheduler:v1", env=[{"name": "https_proxy", "value": "http://p"}]
    )
    told = found(deployments=[*healthy.deployments[:2], proxied])
    assert set(told) == {"scheduler.proxy"}
    excepted = [{"name": "HTTPS_PROXY"}, {"name": "NO_PROXY"}]
    fine = checkups.deployment("scheduler", "kube-scheduler:v1", env=excepted)
    assert found(deployments=[*healthy.deployments[:2], fine]) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = ("apiVersion", "extenders", "profiles", "leaderElection", "podMaxBackoffSeconds")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.booleans())
def test_whatever_is_written_is_told_and_never_tripped_over(healthy, document, beside):
    config = [facts.SchedulerConfig("x", document, beside)]
    known = dataclasses.replace(healthy, scheduler_configs=config)
    assert configuration.CHECK.examine(known)


@pytest.mark.parametrize("text", ["bind: 5", "bind: {deadlineSeconds: soon}", "- 1", "a: ["])
def test_settings_without_shape_leave_the_defaults(text):
    maps = {"koord-extender": {"data": {"settings.yaml": text}}}
    assert configuration.deadlines_of(maps) == configuration.Deadlines()


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("10.1.2.3", False), ("web", False)],
)
def test_loopback(host, local):
    assert configuration.is_loopback(host) is local


def test_weights_of_a_profile_follow_its_plugins():
    stock = scheduler_config.STOCK_WEIGHTS
    assert configuration.weights({}) == stock
    profile = {
        "plugins": {
            "multiPoint": {"disabled": [{"name": "ImageLocality"}]},
            "score": {"enabled": [{"name": "NodeAffinity", "weight": 7}, {"name": "Other"}]},
        }
    }
    expected = {**stock, "NodeAffinity": 7}
    expected.pop("ImageLocality")
    assert configuration.weights(profile) == expected


def test_what_extenders_cost_is_said_only_of_releases_that_batch(found, healthy):
    config = dataclasses.replace(healthy.scheduler_configs[0], beside=False)
    older = facts.Version(1, 30, "v1.30.14")
    assert found(scheduler_configs=[config], version=older) == {}
