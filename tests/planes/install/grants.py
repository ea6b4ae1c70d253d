"""What roles allow, against what was called: nobody is refused, nothing is granted in vain."""

import dataclasses
import itertools

ROLES = "rbac.authorization.k8s.io"
YOUNG_CLASS = "no PriorityClass with name"
"""What the API server's admission says of a class that was made a moment ago: it learns of classes
by a watch. The process that made it tries again."""


@dataclasses.dataclass(frozen=True, order=True)
class Grant:
    """One verb on one resource of one group that a role of ours gives to an account."""

    account: str
    verb: str
    group: str
    resource: str
    name: str = ""
    """The one object that it is limited to; empty for all."""
    namespace: str = ""

    def __str__(self):
        where = f" in {self.namespace}" if self.namespace else ""
        which = f" {self.name}" if self.name else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.account}: {self.verb} {self.resource}{group}{which}{where}"

    def allows(self, call):
        """Whether this grant alone would allow a call."""
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        return (
            call.user == self.account
            and call.group == self.group
            and resource == self.resource
            and self.name in ("", call.name)
            and self.namespace in ("", call.namespace)
            and self.verb in verbs(call)
        )


def verbs(call):
    """The verbs that a call needs: an apply that made its object needed to create it as well."""
    if call.verb == "patch" and call.code == 201:
        return ("patch", "create")
    return (call.verb,)


def granted(documents):
    """Return every grant of the roles among these documents, by their bindings."""
    roles = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one["rules"]
        for one in documents
        if one["kind"] in ("Role", "ClusterRole")
    }
    found = set()
    for one, account in _bindings(documents):
        namespace = one["metadata"].get("namespace", "")
        reference = one["roleRef"]
        place = namespace if reference["kind"] == "Role" else ""
        # Roles that Kubernetes makes are not ours to trim.
        for rule in roles.get((reference["kind"], place, reference["name"]), ()):
            found |= set(_expanded(rule, account, namespace))
    return found


def _bindings(documents):
    """Each binding among these documents with each account that it is for."""
    for one in documents:
        if one["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            for subject in one.get("subjects", ()):
                yield one, f"system:serviceaccount:{subject['namespace']}:{subject['name']}"


def review(grant):
    """The question whether the API server allows this already, as a SubjectAccessReview."""
    resource, _, subresource = grant.resource.partition("/")
    attributes = {
        "verb": grant.verb,
        "group": grant.group,
        "resource": resource,
        "subresource": subresource,
        "name": grant.name,
        "namespace": grant.namespace,
    }
    return {"spec": {"user": grant.account, "resourceAttributes": attributes}}


def _expanded(rule, account, namespace):
    parts = (rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""]))
    for group, resource, verb, name in itertools.product(*parts):
        yield Grant(account, verb, group, resource, name, namespace)


def refused(calls, prefix, documents):
    """Return what accounts with this prefix were refused as long as they had all their roles.

    Processes outlive their roles by a moment where an installation is deleted.
    """
    bound = list(_bound(documents))
    without, found = set(), set()
    for one in calls:
        if one.verb == "delete" and one.group == ROLES:
            without |= {account for what, account in bound if what == (one.resource, one.name)}
        elif one.code == 403 and YOUNG_CLASS in one.message:
            continue
        elif one.code == 403 and one.user.startswith(prefix) and one.user not in without:
            found.add(
                f"{one.user}: {one.verb} {one.resource}/{one.subresource} "
                f"{one.namespace}/{one.name}: {one.message}"
            )
    return sorted(found)


def _bound(documents):
    """Each role and each binding of these documents with the accounts that it is for."""
    for one, account in _bindings(documents):
        yield (f"{one['kind'].lower()}s", one["metadata"]["name"]), account
        yield (f"{one['roleRef']['kind'].lower()}s", one["roleRef"]["name"]), account


def unused(grants, calls):
    """Return what was granted and never needed."""
    return sorted(grant for grant in grants if not any(map(grant.allows, calls)))
