"""The roles in the plain manifests: as little as can be, and never a way to more."""

import pytest
import yaml

from api import resources
from tests.planes.install import chart, plain

RULES = [
    pytest.param(role, rule, id=f"{mode}-{role['kind']}-{role['metadata']['name']}-{number}")
    for mode in chart.MODES
    for role in plain.of_kind(plain.documents(mode), "Role", "ClusterRole")
    for number, rule in enumerate(role["rules"])
]
each_rule = pytest.mark.parametrize(("role", "rule"), RULES)
each_mode = pytest.mark.parametrize("mode", chart.MODES)
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}
# What opens other accounts, other machines or other people's secrets.
DANGEROUS = {"pods/exec", "pods/attach", "pods/portforward", "nodes/proxy", "serviceaccounts/token"}
# A static pod gets no token from its kubelet, so the extender in place renews its own and no other.
RENEWS_ITSELF = ("koord-extender", ["serviceaccounts/token"], ["koord-extender"], ["create"])
# Objects of which only those are ours that carry our names.
ONLY_BY_NAME = {
    "secrets",
    "configmaps",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
}
KNOWN = {
    (one.group, one.plural): one
    for one in (*vars(resources).values(), *resources.NATIVE_POD_GROUPS)
    if isinstance(one, resources.Resource)
}
BUILT_IN = {
    ("ClusterRole", "system:kube-scheduler"),
    ("ClusterRole", "system:volume-scheduler"),
    ("Role", "extension-apiserver-authentication-reader"),
}


@each_rule
def test_a_rule_names_what_it_allows(role, rule):
    assert set(rule) <= {"apiGroups", "resources", "verbs", "resourceNames"}
    assert set(rule["verbs"]) <= VERBS
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            named = (role["metadata"]["name"], rule["resources"], rule.get("resourceNames"))
            assert resource not in DANGEROUS or (*named, rule["verbs"]) == RENEWS_ITSELF
            assert (group, resource.partition("/")[0]) in KNOWN


@each_rule
def test_what_others_have_as_well_is_allowed_by_name_only(role, rule):
    if ONLY_BY_NAME & set(rule["resources"]):
        assert rule.get("resourceNames")


@each_rule
def test_nobody_may_create_secrets(role, rule):
    # A Secret of the type service-account-token would open any account of the namespace.
    if "secrets" in rule["resources"]:
        assert "create" not in rule["verbs"]


@each_rule
def test_leases_are_changed_by_name_only(role, rule):
    if "leases" in rule["resources"] and rule["verbs"] != ["create"]:
        assert rule.get("resourceNames")


@each_rule
def test_objects_without_a_namespace_are_never_in_a_role(role, rule):
    if role["kind"] == "Role":
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                assert KNOWN[(group, resource.partition("/")[0])].namespaced


@each_mode
def test_every_binding_binds_what_is_there(mode):
    documents = plain.documents(mode)
    roles = {(one["kind"], one["metadata"]["name"]) for one in documents}
    accounts = {
        (one["metadata"]["namespace"], one["metadata"]["name"])
        for one in plain.of_kind(documents, "ServiceAccount")
    }
    bindings = plain.of_kind(documents, "RoleBinding", "ClusterRoleBinding")
    bound = set()
    for binding in bindings:
        reference = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert reference in roles | BUILT_IN
        bound.add(reference)
        for subject in binding["subjects"]:
            assert subject["kind"] == "ServiceAccount"
            assert (subject["namespace"], subject["name"]) in accounts
    ours = {key for key in roles if key[0] in ("Role", "ClusterRole")}
    assert ours <= bound, "a role that nobody has"


@each_mode
def test_nobody_is_bound_to_everything(mode):
    bindings = [*plain.of_kind(plain.documents(mode), "RoleBinding", "ClusterRoleBinding")]
    assert bindings
    for binding in bindings:
        assert binding["roleRef"]["name"] not in ("cluster-admin", "admin", "edit")


def test_before_kubelets_know_the_permission_agents_watch_pods_where_somebody_adds_it():
    folder = plain.MANIFESTS / "components" / "older-kubelets"
    (path,) = plain.files(folder)
    (role, _) = yaml.safe_load_all(path.read_text())
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    for mode in chart.MODES:
        assert path not in set(plain.files(plain.MANIFESTS / mode))


def test_no_manifest_allows_to_run_commands_in_pods():
    paths = [*plain.MANIFESTS.rglob("*.yaml")]
    assert paths
    for path in paths:
        rules = [
            line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")
        ]
        assert "nodes/proxy" not in "\n".join(rules), path
        assert "pods/exec" not in "\n".join(rules), path
