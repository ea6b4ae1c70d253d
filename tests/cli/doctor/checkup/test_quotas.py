"""Elastic quotas: contradictions, minimums that cannot be kept, gates that no controller opens."""

import pytest
import yaml

from api import names, resources
from cli.doctor.checkup import facts
from tests import builders
from tests.cli.commands.test_get import PLAIN, a_quota
from tests.planes.install import checkups

NODE = builders.a_node("n", cpu="40")
LABEL = names.LABEL_QUOTA_NAME


def pods(*made):
    return facts.pods_of(made)


def parent(name, **more):
    quota = a_quota(name, "x", PLAIN, **more)
    quota["metadata"]["labels"][names.LABEL_QUOTA_IS_PARENT] = "true"
    return quota


FINDINGS = {
    "two of one name": (
        {"elastic_quotas": [a_quota("t", "a"), a_quota("t", "b", created=9)]},
        "quota.conflict", "the name t is taken by the older",
    ),
    "unreadable": (
        {"elastic_quotas": [a_quota("t", "a") | {"spec": {"min": 7}}]},
        "quota.unreadable", "elasticquotas.koordinator.sh a/t cannot be read",
    ),
    "unknown label": (
        {"elastic_quotas": [a_quota("t", "a")],
         "pods": pods(builders.a_pod("p", "d", labels={LABEL: "gone"}),
                      builders.a_pod("q", "d", labels={LABEL: "t"}),
                      builders.a_pod("e", "d", labels={LABEL: "ended"}, phase="Failed"))},
        "quota.unknown", "d/p name quota gone, which does not exist",
    ),
    "parent too small": (
        {"elastic_quotas": [parent("p", minimum="10"),
                            a_quota("c1", "x", PLAIN, minimum="6", parent="p"),
                            a_quota("c2", "x", PLAIN, minimum="6", parent="p")]},
        "quota.parent-min",
        "the children of p are to have at least 12 of cpu together, p itself 10",
    ),
    "more than there is": (
        {"elastic_quotas": [a_quota("t", "a", minimum="41")]},
        "quota.total-min", "at least 41 of cpu together, the cluster has 40",
    ),
    "in-tree quota beside it": (
        {"elastic_quotas": [a_quota("t", "a")],
         "quotas": [{"metadata": {"name": "rq", "namespace": "a"}, "spec": {"hard": {"pods": 5}}},
                    {"metadata": {"name": "rq", "namespace": "z"}, "spec": {"hard": {"pods": 5}}},
                    {"metadata": {"name": "pvc", "namespace": "a"},
                     "spec": {"hard": {"persistentvolumeclaims": 5}}}]},
        "quota.resource-quota", "ResourceQuota a/rq counts beside ElasticQuota t",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "name", "sentence"), FINDINGS.values(), ids=FINDINGS)
def test_what_is_wrong_with_quotas_is_found(found, changes, name, sentence):
    told = {key: one for key, one in found(nodes=[NODE], **changes).items() if "quota." in key}
    assert set(told) == {name}
    assert sentence in told[name].sentence


def maps(switch=None, mode=None):
    made = {}
    if switch:
        made[names.CONFIG_MAP_SWITCHES] = {"data": {"quota-gates": switch}}
    if mode:
        settings = {"quota": {"gates": {"mode": mode}}}
        made["koord-manager"] = {"data": {"settings.yaml": yaml.safe_dump(settings)}}
    return made


LED = {"koordinator-manager": checkups.lease()}


@pytest.mark.parametrize(
    ("written", "leases", "why"),
    [
        pytest.param(maps(), LED, "", id="default"),
        pytest.param(maps("off"), LED, "", id="switched off, so that every gate opens"),
        pytest.param(maps(mode="off"), LED, "", id="set off, so that every gate opens"),
        pytest.param(maps("observe"), LED, "", id="observed gates open"),
        pytest.param(maps(), {}, "there is no Lease", id="no manager was ever there"),
        pytest.param(maps("off"), {}, "there is no Lease", id="no manager to open them at once"),
        pytest.param(
            maps(),
            {"koordinator-manager": checkups.lease(holder="")},
            "no process holds Lease",
            id="the manager has stopped",
        ),
        pytest.param(
            maps(),
            {"koordinator-manager": checkups.lease(age=60)},
            "manager-0 renewed Lease koordinator-system/koordinator-manager 60 s ago",
            id="the Lease has expired",
        ),
    ],
)
def test_pods_behind_gates_that_nobody_opens(found, healthy, written, leases, why):
    gated = pods(builders.a_pod("p", "d", gates=[names.GATE_QUOTA]))
    told = found(
        pods=[*healthy.pods, *gated],
        config_maps={**healthy.config_maps, **written},
        leases=leases,
    )
    assert ("quota.nobody-opens" in told) is bool(why)
    if why:
        assert f"d/p wait for quota, and {why}" in told["quota.nobody-opens"].sentence


def test_without_a_manager_no_gate_is_missed_where_no_pod_waits(found):
    assert "quota.nobody-opens" not in found(leases={})


def test_healthy_quotas_of_all_groups_are_fine(found):
    every = [a_quota(f"t{i}", f"n{i}", group) for i, group in enumerate(resources.QUOTA_RESOURCES)]
    told = found(elastic_quotas=every, nodes=[NODE])
    assert not [key for key in told if key.startswith("quota.")]
