"""What the chart says about accounts and policies, on a real API server, without our processes.

Tenants and each of our accounts are tried by their own tokens.
"""

import contextlib
import dataclasses
import secrets

from api import names, resources
from tests.e2e import binaries as builds
from tests.planes import raw
from tests.planes.install import chart
from tests.planes.processes import accounts

IMAGE = "image.repository=registry.example.com/koord"
NAMESPACE = names.NAMESPACE
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
RBAC = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")
GROUP = "/apis/rbac.authorization.k8s.io/v1"
# What the role `edit` does not hold, and an administrator may have added to it.
PARTS = ("pods/binding", "bindings", "pods/ephemeralcontainers", "pods/resize", "pods/status")
PATIENCE = 60.0


def documents(*values):
    """Render the chart for the release under test."""
    text = chart.template(
        IMAGE, "crds.install=false", "uninstall.hook=false", *values, version=builds.version()
    )
    return [one for one in chart.documents(text) if one["kind"] in (*POLICIES, *RBAC)]


def expressions(policy):
    """Yield everything that an API server evaluates of a policy."""
    spec = policy["spec"]
    for one in spec.get("matchConditions", ()):
        yield one["expression"]
    for one in spec["validations"]:
        yield from (one[part] for part in ("expression", "messageExpression") if part in one)
    for one in spec.get("auditAnnotations", ()):
        yield one["valueExpression"]


def hook_of_uninstall():
    """Render what the Job that puts the cluster back may do, which exists only while it runs."""
    found = chart.documents(chart.template(IMAGE, "crds.install=false", version=builds.version()))
    return [
        one for one in found if one["kind"] in RBAC and one["metadata"]["name"] == "koord-uninstall"
    ]


async def uninstaller(api):
    """Make the account of that Job."""
    for document in hook_of_uninstall():
        await apply(api, document)


def path_of(document):
    """Return the path of one of these objects."""
    group, _, version = document["apiVersion"].rpartition("/")
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    plural = f"{document['kind'].lower()}s".replace("policys", "policies")
    metadata = document["metadata"]
    inside = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{base}{inside}/{plural}/{metadata['name']}"


async def apply(api, document):
    query = {"fieldManager": "helm", "force": "true"}
    await api.must("PATCH", path_of(document), document, kind=raw.APPLY_PATCH, query=query)


async def remove(api, found):
    for document in found:
        await api.call("DELETE", path_of(document))


async def namespace(api, name, **labels):
    """Make a namespace with its default account, which controllers may be slow to make."""
    path = resources.NAMESPACES.path(name=name)
    # Another file of tests may have left it a moment ago.
    await api.wait_until(path, lambda found: not is_leaving(found), PATIENCE)
    body = {"metadata": {"name": name, "labels": labels}}
    await api.call("POST", resources.NAMESPACES.path(), body)
    await account(api, name, "default")


def is_leaving(found):
    """Whether a namespace is being deleted."""
    return "deletionTimestamp" in (found or {"metadata": {}})["metadata"]


async def account(api, where, name):
    """Make an account, once admission knows that its namespace is not the one that has left."""

    async def made():
        path, body = resources.SERVICE_ACCOUNTS.path(where), {"metadata": {"name": name}}
        return (await api.call("POST", path, body)).status in (201, 409)

    await raw.eventually(made, PATIENCE)


async def bind_role(api, where, role, name, kind="ClusterRole"):
    """Give a role to an account within a namespace."""
    body = {
        "metadata": {"name": f"{name}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": where}],
    }
    await api.call("POST", f"{GROUP}/namespaces/{where}/rolebindings", body)


async def tenant(api, where, name, *, parts=False):
    """Return a client of an account with the role edit, and with every part of a pod if asked."""
    await account(api, where, name)
    await bind_role(api, where, "edit", name)
    if parts:
        rule = {"apiGroups": [""], "resources": [*PARTS], "verbs": ["create", "patch", "update"]}
        body = {"metadata": {"name": "parts"}, "rules": [rule]}
        await api.call("POST", f"{GROUP}/namespaces/{where}/roles", body)
        await bind_role(api, where, "parts", name, "Role")
    user = api.as_user(await accounts.token(api, where, name))
    await granted(user, "create", "pods", where)
    if parts:
        await granted(user, "patch", "pods", where, part="status")
    return user


async def granted(user, verb, resource, where="", *, group="", part=""):
    """Wait until an account may do this: the API server hears of roles a moment later."""
    asked = {"verb": verb, "group": group, "resource": resource, "namespace": where}
    spec = {"resourceAttributes": {**asked, "subresource": part}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    async def allowed():
        return (await user.post(path, {"spec": spec}))["status"]["allowed"]

    await raw.eventually(allowed, PATIENCE)


@dataclasses.dataclass(frozen=True)
class Installed:
    """Accounts and policies of one way to install."""

    api: raw.Api
    mode: str

    async def user(self, name, **bound):
        """Return a client of one of our accounts."""
        return self.api.as_user(await accounts.token(self.api, NAMESPACE, name, **bound))


def _probe(name):
    """A policy that refuses one ConfigMap; the API server learns of it after all earlier ones."""
    version = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    validation = {"expression": f"object.metadata.name != '{name}'", "message": name}
    spec = {
        "matchConstraints": {"resourceRules": [rule | {"resources": ["configmaps"]}]},
        "validations": [validation],
    }
    bound = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": what}
        for kind, what in zip(POLICIES, (spec, bound), strict=True)
    ]


async def _in_force(api, name):
    path = resources.CONFIG_MAPS.path(NAMESPACE)
    body = {"metadata": {"name": name}}

    async def refused():
        answer = await api.call("POST", path, body, query={"dryRun": "All"})
        return answer.status == 422

    await raw.eventually(refused, PATIENCE)


@contextlib.asynccontextmanager
async def applied(api, found):
    """These objects while the API server judges by them; nothing of them is left afterwards."""
    await namespace(api, NAMESPACE)
    # The probe comes after everything that it stands for; an older one may still be in force.
    name = f"koord-probe-{secrets.token_hex(4)}"
    found = [*found, *_probe(name)]
    for document in found:
        await apply(api, document)
    try:
        await _in_force(api, name)
        yield
    finally:
        await remove(api, found)


@contextlib.asynccontextmanager
async def standing(api, mode, *values):
    """Accounts, roles and policies of the chart."""
    async with applied(api, documents(f"scheduler.mode={mode}", *values)):
        yield Installed(api, mode)
