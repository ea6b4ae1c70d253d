"""The admission policies of the chart: where they are rendered, and by which settings."""

import re
import shutil

import pytest
import yaml

from tests.e2e.install.chart_texts import ALL, COMBINATIONS
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


# --- variables ----------------------------------------------------------------------------------

SELF = "webhook.settings.registration.url=https://variables.example.com/"
FOLLOWING = "manager.settings.featureGates.ColocationProfileController=true"
LABELLING = "deviceDaemon.labelNode=true"


@pytest.mark.parametrize("values", [*ALL, (SELF, FOLLOWING, LABELLING, *COMBINATIONS["devices"])])
def test_no_values_render_a_policy_with_variables(values):
    found = plain.of_kind(policed.documents(*values), policed.POLICIES[0])
    assert found
    for policy in found:
        assert "variables" not in policy["spec"]
        for one in policed.expressions(policy):
            assert not re.search(r"(?<![\w./])variables\.", one), policy["metadata"]["name"]


@pytest.fixture
def resolved(tmp_path):
    """Render the spec of a policy by the chart's own helper."""
    templates = tmp_path / "templates"
    templates.mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: one, version: 1.0.0}\n")
    shutil.copy(chart.CHART / "templates" / "_policies.tpl", templates)
    call = '{{- include "koord.policy-spec" (tpl (.Files.Get "spec.yaml") .) }}\n'
    (templates / "spec.yaml").write_text(call)

    def resolve(text):
        (tmp_path / "spec.yaml").write_text(text)
        return yaml.safe_load(chart.helm("template", "x", str(tmp_path)))

    return resolve


SPEC = """\
matchConditions:
  - name: variables
    expression: request.name != 'variables.a'
variables:
  - name: a
    expression: request.name
  - name: ab
    expression: |-
      variables.a + '$1' ||
      x
  - name: c
    expression: |-
      [variables.ab,variables.a]
  - name: unused
    expression: "true"
validations:
  # variables of no meaning
  - expression: |-
      variables.c.all(a, a in variables.ab) &&
      !variables.a
    messageExpression: |-
      'at https://variables.a/ ' + "variables.ab" + variables.a
    message: a message
auditAnnotations:
  - key: k
    valueExpression: |-
      variables.a
"""


def test_each_variable_is_replaced_by_its_expression_in_brackets(resolved):
    spec = resolved(SPEC)
    both = "((request.name) + '$1' || x)"
    (validation,) = spec["validations"]
    written = {name: " ".join(text.split()) for name, text in validation.items()}
    assert written == {
        "expression": f"([{both},(request.name)]).all(a, a in {both}) && !(request.name)",
        "messageExpression": """'at https://variables.a/ ' + "variables.ab" + (request.name)""",
        "message": "a message",
    }
    assert spec["matchConditions"] == yaml.safe_load(SPEC)["matchConditions"]
    assert spec["auditAnnotations"] == [{"key": "k", "valueExpression": "(request.name)"}]
    assert spec.keys() == {"matchConditions", "validations", "auditAnnotations"}


def test_lines_of_an_expression_stay_lines(resolved):
    assert resolved(SPEC)["validations"][0]["expression"].count("\n") == 3


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("!variables.a", "!variables.aa", "a policy names !variables.aa"),
        ("variables.a + '$1'", "variables.c", "variables.c, which is none of its variables"),
        ("validations:", "validation:", "needs variables followed by validations"),
        ("      x\n", "      x // why\n", "a policy has a comment of CEL"),
    ],
    ids=["misspelt", "defined-later", "no-validations", "comment"],
)
def test_what_cannot_be_resolved_is_refused(resolved, before, after, said):
    with pytest.raises(chart.HelmError, match=said):
        resolved(SPEC.replace(before, after, 1))
