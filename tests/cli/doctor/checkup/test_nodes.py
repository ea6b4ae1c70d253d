"""Clocks, agents, the leader and the switches."""

import pytest

from api import names
from cli.doctor.checkup import facts, findings, nodes
from tests.planes.install import checkups

NOW = checkups.NOW
VIRTUAL = {"key": "virtual-kubelet.io/provider", "value": "cloud", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("skew", "name"),
    [
        (0, None),
        (4, None),
        (-30, "clock.node"),
        (30, "clock.node"),
        (-90, "clock.node-far"),
        (3600, "clock.node-far"),
    ],
)
def test_the_clock_of_a_node(found, skew, name):
    told = found(node_metrics=[checkups.node_metric("a", skew=skew), checkups.node_metric("b")])
    assert set(told) == ({name} if name else set())
    if name:
        way = "ahead of" if skew > 0 else "behind"
        assert told[name].sentence == f"the clock of a is {abs(skew)} s {way} the API server's"


def test_a_report_without_history_says_nothing_about_clocks():
    report = {"metadata": {"name": "a"}, "status": {"updateTime": "2027-01-01T00:00:00Z"}}
    assert nodes.skew_of(report) is None
    assert nodes.skew_of({"metadata": {}, "status": {}}) is None
    assert nodes.updated_at({"status": {"updateTime": "yesterday"}}) is None


def test_our_own_clock(found):
    told = found(clock=facts.Clock(NOW + 12, NOW))
    assert told["clock.here"].sentence == "the clock of this machine is +12 s off the API server's"
    assert told["clock.here"].severity is findings.Severity.INFO


@pytest.mark.parametrize(
    ("age", "name"), [(20, None), (179, None), (240, "agent.stale"), (-5, None)]
)
def test_the_age_of_a_report(found, age, name):
    told = found(node_metrics=[checkups.node_metric("a", age=age), checkups.node_metric("b")])
    assert set(told) == ({name} if name else set())


def test_nodes_without_a_report_are_counted_and_named(found):
    told = found(node_metrics=[checkups.node_metric("a"), {"metadata": {"name": "b"}}])
    assert set(told) == {"agent.missing"}
    assert told["agent.missing"].sentence == "1 of 2 nodes reports nothing: b"


@pytest.mark.parametrize(
    "virtual",
    [checkups.node("v", taints=[VIRTUAL]), checkups.node("v", labels={"type": "virtual-kubelet"})],
    ids=["taint", "label"],
)
def test_a_virtual_node_is_left_out_and_said(found, healthy, virtual):
    told = found(nodes=[*healthy.nodes, virtual])
    assert set(told) == {"agent.virtual-node"}
    assert told["agent.virtual-node"].severity is findings.Severity.INFO


def test_a_node_without_its_policy(found):
    told = found(node_slos=[{"metadata": {"name": "a"}}])
    assert told["agent.no-policy"].sentence == "nodes without a NodeSLO: b"


@pytest.mark.parametrize(
    ("entry", "held"),
    [
        ({"manager": "koord-manager", "operation": "Update"}, True),
        ({"manager": "koord-manager", "operation": "Apply"}, False),
        ({"manager": "kubectl-edit", "operation": "Update"}, False),
        ({"manager": "koord-manager", "operation": "Update", "subresource": "status"}, False),
    ],
    ids=["koordinators", "ours", "a-person's", "status"],
)
def test_fields_that_koordinator_left_under_our_name(found, healthy, entry, held):
    slo = {"metadata": {"name": "a", "managedFields": [{**entry, "fieldsV1": {"f:spec": {}}}]}}
    told = found(node_slos=[slo, healthy.node_slos[1]])
    assert set(told) == ({"agent.fields-held"} if held else set())


@pytest.mark.parametrize(
    ("leases", "says"),
    [
        ({}, "there is no Lease"),
        ({"koordinator-manager": checkups.lease(holder="")}, "no process holds"),
        ({"koordinator-manager": checkups.lease(age=60)}, "manager-0 renewed Lease"),
    ],
    ids=["none", "free", "old"],
)
def test_without_a_leader_nothing_is_computed(found, leases, says):
    told = found(leases=leases)
    assert set(told) == {"manager.no-leader"}
    assert says in told["manager.no-leader"].sentence


@pytest.mark.parametrize(
    ("maps", "name"),
    [
        ({}, "manager.settings"),
        ({names.CONFIG_MAP_SLO: checkups.settings('{"enable": false}')}, "manager.settings"),
        ({names.CONFIG_MAP_SLO: checkups.settings("")}, "manager.settings"),
        ({names.CONFIG_MAP_SLO: checkups.settings("{")}, "manager.settings-unreadable"),
    ],
    ids=["absent", "off", "empty", "unreadable"],
)
def test_without_settings_colocation_is_off(found, maps, name):
    assert set(found(config_maps=maps)) == {name}


def test_switches_and_settings_that_do_not_enforce_are_said(found, healthy):
    maps = {
        **healthy.config_maps,
        names.CONFIG_MAP_SWITCHES: {
            "data": {"extender": "observe", "webhook": "enforce", "agent": "of"}
        },
        "koord-agent": {"data": {"settings.yaml": "mode: observe"}},
        "koord-extender": {"data": {"settings.yaml": "observe: true"}},
        "koord-webhook": {"data": {"settings.yaml": "mode: ["}},
    }
    sentences = [
        f.sentence for f in nodes.switches(_known(healthy, maps)) if f.check != "switch.unreadable"
    ]
    assert sentences == [
        "koordinator-system/koord-switches: extender is observe",
        "the settings of the agent say observe",
        "the settings of the extender say observe",
    ]
    assert "agent is 'of'" in found(config_maps=maps)["switch.unreadable"].sentence


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"agnet": "off"}, "agnet: there is no such switch; did you mean agent?"),
        ({"xyz": "off"}, "xyz: there is no such switch; there are webhook, extender, "),
        ({"extender": "of"}, "extender is 'of': write enforce, observe, off"),
    ],
    ids=["near", "far", "word"],
)
def test_a_switch_that_no_process_knows_is_not_said_to_be_off(data, why, found):
    told = found(config_maps={names.CONFIG_MAP_SWITCHES: {"data": data}})
    assert why in told["switch.unreadable"].sentence
    assert "switch.not-enforcing" not in told


def _known(healthy, maps):
    values = {name: getattr(healthy, name) for name in healthy.__slots__}
    return facts.Facts(**{**values, "config_maps": maps})
