"""What each process needs is what the shipped roles give, no more and no less."""

import pytest

from api import names
from cli.doctor.checkup import facts, permissions
from tests.planes.install import grants, manifests, plain

PREFIX = f"system:serviceaccount:{names.NAMESPACE}:"
# kube-scheduler stands in the same pod and has roles of its own.
OF_KUBE_SCHEDULER = {("coordination.k8s.io", "leases", "koord-scheduler")}
# A component that people add where they want it.
DEVICE_DAEMON = manifests.read(
    (plain.MANIFESTS / "components/device-daemon/device-daemon.yaml").read_text()
)
MODES = {"beside": "koord-scheduler", "in-place": "koord-extender"}


def given(mode, account):
    """Every verb on every resource that the plain manifests give to an account."""
    return {
        (one.verb, one.group, one.resource, one.name, bool(one.namespace))
        for one in grants.granted([*plain.documents(mode), *DEVICE_DAEMON])
        if one.account == f"{PREFIX}{account}"
        and (one.group, one.resource, one.name) not in OF_KUBE_SCHEDULER
    }


def needed(process, account):
    return {
        (verb, need.group, need.resource, name, need.own_namespace)
        for need, verb, name in permissions.asked(process, {}, account)
    }


def either(rules):
    """Older kubelets ask for another subresource than any of these; either counts."""
    apart = ("nodes/pods", "nodes/configz")
    alternatives = {one: (f"{one}|nodes/proxy",) for one in apart}
    alternatives["nodes/proxy"] = tuple(f"{one}|nodes/proxy" for one in apart)
    return {
        (verb, group, resource, name, own)
        for verb, group, given, name, own in rules
        for resource in alternatives.get(given, (given,))
    }


PROCESSES = ("extender", "webhook", "manager", "agent", "descheduler", "device-daemon")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("process", PROCESSES)
def test_roles_and_needs_are_the_same(mode, process):
    account = MODES[mode] if process == "extender" else f"koord-{process}"
    assert permissions.ACCOUNTS[account] == process
    assert either(given(mode, account)) == needed(process, account)
    assert set(permissions.NEEDS) == set(PROCESSES)


WITH_SETTINGS = {
    "registered by others": (
        "webhook", {"registration": {"enabled": False}}, ("get", "secrets"), False,
    ),
    "no gates of gangs": (
        "webhook", {"gang": {"admission": "none"}}, ("list", "koord-gang-backlog"), False,
    ),
    "no gates of quotas": (
        "webhook", {"quota": {"admission": "none"}}, ("list", "koordinator-manager"), False,
    ),
    "quotas deny": (
        "webhook", {"quota": {"admission": "deny"}}, ("patch", "elasticquotas"), True,
    ),
    "unreadable": ("webhook", {"gang": "none"}, ("patch", "elasticquotas"), False),
    "an agent that asks the API server where the kubelet is silent": (
        "agent", {"kubelet": {"folder": "/host/kubelet"}}, ("list", "pods"), True,
    ),
    "an agent that asks the kubelet alone": (
        "agent", {"kubelet": {"fallBack": False}}, ("list", "pods"), False,
    ),
    "a manager that withdraws webhooks": (
        "manager", {}, ("patch", "mutatingwebhookconfigurations"), True,
    ),
    "a manager that leaves webhooks to others": (
        "manager", {"admission": {"withdraw": False}},
        ("patch", "mutatingwebhookconfigurations"), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("process", "settings", "right", "is_needed"), WITH_SETTINGS.values(), ids=WITH_SETTINGS
)
def test_settings_of_a_process_say_what_it_needs(process, settings, right, is_needed):
    asked = {
        (verb, name if need.resource == "leases" else need.resource)
        for need, verb, name in permissions.asked(process, settings)
    }
    assert (right in asked) is is_needed
    assert ("list", "nodemetrics" if process == "agent" else "clustercolocationprofiles") in asked


LABELS = [{"name": "KOORD_DEVICE_DAEMON_NODE_NAME"}]


@pytest.mark.parametrize(
    ("account", "variables", "processes"),
    [
        ("koord-descheduler", None, [("koord-descheduler", "descheduler")]),
        ("koord-device-daemon", LABELS, [("koord-device-daemon", "device-daemon")]),
        ("koord-device-daemon", [], []),
        ("koord-device-daemon", None, []),
        ("somebody", LABELS, []),
    ],
    ids=["descheduler", "device daemon", "it labels nothing", "it is gone", "of others"],
)
def test_accounts_are_asked_about_that_make_requests(account, variables, processes):
    pod = {"containers": [{"name": "c", "env": variables}]}
    sets = [] if variables is None else [{"spec": {"template": {"spec": pod}}}]
    assert list(permissions.processes([account], sets)) == processes


def test_each_subject_is_told_once_with_what_it_lacks(found):
    def access(subject, verb, resource, namespace="", *, allowed=False):
        return facts.Access(subject, verb, resource, namespace, allowed)

    told = found(
        service_access=[
            access("koord-agent", "list", "nodes"),
            access("koord-agent", "get", "nodes/pods", allowed=True),
            access("koord-manager", "update", "leases x", "koordinator-system"),
        ],
        own_access=[access("the user of this command", "list", "secrets")],
    )
    assert set(told) == {"rbac.lacking", "rbac.reader"}
    assert told["rbac.lacking"].sentence == (
        "koord-manager may not update leases x in koordinator-system"
    )
    assert told["rbac.reader"].sentence == "the user of this command may not list secrets"
