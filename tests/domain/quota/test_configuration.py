"""One document says how extender, manager, admission and commands count quotas."""

import dataclasses
import json

import pytest

from api import names
from api.plugin_args import job
from domain.quota import configuration, model
from webhook import gates


def data(**args):
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "ElasticQuota", "args": args}]}],
    }
    return {names.CONFIG_MAP_SCHEDULER: json.dumps(document)}


DEFAULTS = {"multi_tree": True, "guarantee": False, "default_quota": True}
CASES = {
    "nothing": ({}, {}),
    "trees off": ({"MultiQuotaTree": False}, {"multi_tree": False}),
    "trees on": ({"MultiQuotaTree": True}, {}),
    "guarantee": ({"ElasticQuotaGuaranteeUsage": True}, {"guarantee": True}),
    "guarantee off": ({"ElasticQuotaGuaranteeUsage": False}, {}),
    "no default quota": ({"DisableDefaultQuota": True}, {"default_quota": False}),
    "all": (
        {"MultiQuotaTree": False, "ElasticQuotaGuaranteeUsage": True, "DisableDefaultQuota": True},
        {"multi_tree": False, "guarantee": True, "default_quota": False},
    ),
}


@pytest.mark.parametrize(
    ("written", "changed"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_gates_become_rules(written, changed):
    arguments = configuration.read(data(featureGates=written)).arguments
    rules = dataclasses.asdict(model.rules(arguments))
    assert {name: rules[name] for name in DEFAULTS} == DEFAULTS | changed
    assert arguments.feature_gates.written() == written


def test_what_is_not_written_has_its_default():
    assert configuration.read({}).arguments == job.ElasticQuotaArgs()
    assert model.rules(configuration.read({}).arguments) == model.rules(job.ElasticQuotaArgs())


@pytest.mark.parametrize(
    ("args", "named"),
    [
        pytest.param({"featureGates": {"MultiQuotaTrees": True}}, "MultiQuotaTrees", id="unknown"),
        pytest.param({"featureGates": {"MultiQuotaTree": "yes"}}, "MultiQuotaTree", id="text"),
        pytest.param({"featureGates": []}, "featureGates", id="list"),
    ],
)
def test_a_fault_is_named_and_nothing_is_used(args, named):
    found = configuration.read(data(**args))
    assert found.arguments is None
    assert any(named in str(fault) for fault in found.faults)


def test_the_names_are_those_of_the_gates_of_admission():
    aliases = {field.alias for field in job.QuotaFeatureGates.model_fields.values()}
    assert aliases == {gates.QUOTA_TREES, gates.GUARANTEE, gates.NO_DEFAULT_QUOTA}
