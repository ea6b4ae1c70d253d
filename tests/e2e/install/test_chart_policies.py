"""The admission policies of the chart: where they are rendered, and by which settings."""

import pytest
import yaml

from tests.planes.install import chart, plain, policed


def rendered(version):
    return chart.documents(chart.template(policed.IMAGE, "crds.install=false", version=version))


def settings_of(found, name):
    (settings,) = (
        yaml.safe_load(one["data"]["settings.yaml"])
        for one in found
        if one["kind"] == "ConfigMap" and one["metadata"]["name"] == name
    )
    return settings


def gates(version):
    """The gates that the chart sets, and the policies that it renders."""
    found = rendered(version)
    policies = [one for one in found if one["kind"] in policed.POLICIES]
    return settings_of(found, "koord-webhook"), policies


@pytest.mark.parametrize(("version", "told"), [("1.29.15", {"evict": False}), ("1.30.0", None)])
def test_without_policies_no_pod_is_evicted_for_what_another_one_claims(
    control_plane_binaries, version, told
):
    assert settings_of(rendered(version), "koord-extender").get("overlap") == told


def test_the_chart_turns_the_gate_on_where_there_are_no_policies(control_plane_binaries):
    settings, policies = gates("1.29.15")
    assert settings["featureGates"] == {"ProtectedPodFields": True}
    assert settings["protection"]["accounts"]
    assert policies == []


def test_the_chart_leaves_the_gate_off_where_there_are(control_plane_binaries):
    settings, policies = gates("1.30.0")
    assert "featureGates" not in settings
    assert len(policies) == 2 * len({one["metadata"]["name"] for one in policies})


def test_the_policy_of_the_registration_follows_the_settings_of_the_webhook(control_plane_binaries):
    values = (
        "webhook.settings.registration.failurePolicy=Fail",
        "webhook.settings.registration.timeoutSeconds=9",
        "webhook.settings.registration.excludedNamespaces={mine}",
        "webhook.settings.registration.url=https://10.0.0.1:9876/",
    )
    policy = plain.named(policed.documents(*values), policed.POLICIES[0], "koord-registration")
    text = "\n".join(one["expression"] for one in policy["spec"]["validations"])
    for said in ('["Ignore","Fail"]', "<= 9", '["mine",', '"https://10.0.0.1:9876" + '):
        assert said in text


def test_a_registration_by_the_chart_needs_no_policy(control_plane_binaries):
    values = (
        "webhook.registration.by=chart",
        "webhook.registration.caBundle=Zm9v",
        "webhook.registration.tlsSecret=pair",
    )
    found = policed.documents(*values)
    assert not [one for one in found if one["metadata"]["name"] == "koord-registration"]
    for role in plain.of_kind(found, "ClusterRole"):
        for rule in role["rules"]:
            if "mutatingwebhookconfigurations" in rule["resources"]:
                assert "patch" not in rule["verbs"]
