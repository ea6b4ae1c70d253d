"""Questions to the API server that leave nothing behind: dry runs and access reviews."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from api import names, resources
from api.wire import durations
from cli.doctor.checkup import facts, permissions
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

SELF_REVIEWS: Final = resources.Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
)
NAME: Final = "koord-doctor-probe"
MUTATED: Final = names.ANNOTATION_EXTENDED_RESOURCE_SPEC
VALIDATING: Final = "vpod.koordinator.sh"


async def webhook(kube: clients.Client, namespace: str) -> facts.Probe:
    """Find out whether pods that are created pass through both webhooks."""
    return facts.Probe(namespace, await _mutated(kube, namespace), await _refused(kube, namespace))


async def _mutated(kube: clients.Client, namespace: str) -> facts.Answer[bool]:
    amounts = {names.BATCH_CPU: "1", names.BATCH_MEMORY: "1"}
    labels = {
        names.LABEL_QOS: "BE",
        names.LABEL_PRIORITY_CLASS: names.PRIORITY_CLASS_BATCH,
    }
    try:
        answer = await _create(kube, namespace, pod(labels, amounts))
    except errors.KubeError as error:
        return facts.Unknown("mutating webhook", f"a trial pod was refused: {error}")
    return MUTATED in facts.meta(answer, "annotations")


async def _refused(kube: clients.Client, namespace: str) -> facts.Answer[bool]:
    # A pod of this class binds CPUs and has to request whole ones.
    try:
        await _create(kube, namespace, pod({names.LABEL_QOS: "LSR"}, {}))
    except errors.KubeError as error:
        if VALIDATING in str(error) and "denied" in str(error):
            return True
        return facts.Unknown("validating webhook", f"a trial pod was refused: {error}")
    return False


async def _create(kube: clients.Client, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    return await kube.create(resources.PODS, body, namespace, dry_run=True)


def pod(labels: dict[str, str], amounts: dict[str, str]) -> dict[str, Any]:
    """Return a pod that even the strictest pod security standard lets pass."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "probe",
                    "image": "probe.invalid/none:1",
                    "resources": {"requests": amounts, "limits": amounts},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


async def clock(kube: clients.Client, here: clocks.Clock, namespace: str) -> facts.Clock:
    """Compare our clock with the stamp that the API server puts on a dry run."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}}
    before = here.now()
    answer = await kube.create(resources.CONFIG_MAPS, body, namespace, dry_run=True)
    stamped = durations.timestamp(str(answer["metadata"].get("creationTimestamp")))
    # The stamp has whole seconds, cut off.
    return facts.Clock((before + here.now()) / 2, stamped + 0.5)


async def accounts(
    kube: clients.Client,
    namespace: str,
    there: Iterable[tuple[str, str]],
    maps: Mapping[str, facts.Raw],
) -> Sequence[facts.Access]:
    """Ask for each of our ServiceAccounts whether it may do what its process has to.

    `there` are accounts, each with its process; `maps` hold the settings of the processes.
    """
    asked = [
        _account(kube, namespace, account, need, verb, name)
        for account, process in there
        for need, verb, name in permissions.asked(process, facts.settings(maps, process), account)
    ]
    return await asyncio.gather(*asked)


async def _account(
    kube: clients.Client,
    namespace: str,
    account: str,
    need: permissions.Need,
    verb: str,
    name: str,
) -> facts.Access:
    within = namespace if need.own_namespace else ""
    user = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}",
                   "system:authenticated"],
    }  # fmt: skip
    allowed = False
    rights = [(verb, resource) for resource in need.resource.split("|")]
    for may, resource in [*rights, need.unless] if all(need.unless) else rights:
        attributes = _attributes(may, need.group, resource, within, name)
        spec = {**user, "resourceAttributes": attributes}
        allowed = allowed or await _review(kube, resources.SUBJECT_ACCESS_REVIEWS, spec)
    named = f"{need.resource} {name}" if name else need.resource
    return facts.Access(account, verb, named.replace("|", " or "), within, allowed)


async def reader(
    kube: clients.Client, wanted: Sequence[resources.Resource], namespace: str
) -> Sequence[facts.Access]:
    """Ask whether the user of this command may list what is looked at."""
    return await asyncio.gather(*(_own(kube, one, namespace) for one in wanted))


async def _own(kube: clients.Client, wanted: resources.Resource, namespace: str) -> facts.Access:
    ours = (resources.CONFIG_MAPS, resources.LEASES, resources.ENDPOINT_SLICES)
    within = namespace if wanted in ours else ""
    spec = {"resourceAttributes": _attributes("list", wanted.group, wanted.plural, within, "")}
    allowed = await _review(kube, SELF_REVIEWS, spec)
    return facts.Access("the user of this command", "list", wanted.review_name(), within, allowed)


def _attributes(verb: str, group: str, resource: str, namespace: str, name: str) -> dict[str, str]:
    plural, _, sub = resource.partition("/")
    given: Iterator[tuple[str, str]] = iter(
        (
            ("verb", verb), ("group", group), ("resource", plural), ("subresource", sub),
            ("namespace", namespace), ("name", name),
        )
    )  # fmt: skip
    return {key: value for key, value in given if value or key == "group"}


async def _review(kube: clients.Client, resource: resources.Resource, spec: dict[str, Any]) -> bool:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    answer = await kube.create(resource, body)
    return bool((answer.get("status") or {}).get("allowed"))
