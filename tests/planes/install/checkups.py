"""An installation as the API server would show it, complete and healthy, made of plain objects."""

import base64
import dataclasses

from api import names, resources
from api.kubernetes import crds, scheduler_config
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations
from certs import issue
from cli.doctor.checkup import facts

NOW = 1_800_000_000.0
DAY = 24 * 3600.0
OURS = {**names.INSTALLED, "app.kubernetes.io/name": "koord"}
IMAGE = "registry.example.com/koord:0.1.0"
SERVICE = f"koord-webhook.{names.NAMESPACE}.svc"
HOOKS = {
    "MutatingWebhookConfiguration": "mpod.koordinator.sh",
    "ValidatingWebhookConfiguration": "vpod.koordinator.sh",
}


def meta(name, component="", namespace=names.NAMESPACE, **more):
    """Metadata of an object that belongs to the installation."""
    labels = {**OURS, **({names.LABEL_COMPONENT: component} if component else {})}
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": labels, **more}


def template(component, *images, env=()):
    """The pod template of a workload."""
    containers = [
        {"name": f"c{number}", "image": image, "env": list(env)}
        for number, image in enumerate(images)
    ]
    labels = {**OURS, names.LABEL_COMPONENT: component}
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def deployment(component, *images, replicas=2, ready=None, updated=None, env=()):
    """A Deployment of ours with its status."""
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": meta(f"koord-{component}", component),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {names.LABEL_COMPONENT: component}},
            "template": template(component, *(images or (IMAGE,)), env=env),
        },
        "status": {
            "readyReplicas": replicas if ready is None else ready,
            "updatedReplicas": replicas if updated is None else updated,
        },
    }


def daemon_set(*, wanted=2, ready=None, image=IMAGE):
    """The DaemonSet of agents with its status."""
    return {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": meta("koord-agent", "agent"),
        "spec": {
            "selector": {"matchLabels": {names.LABEL_COMPONENT: "agent"}},
            "template": template("agent", image),
        },
        "status": {
            "desiredNumberScheduled": wanted,
            "numberReady": wanted if ready is None else ready,
            "updatedNumberScheduled": wanted,
        },
    }


def stranger(name, image, kind="Deployment", namespace="other"):
    """A workload of somebody else."""
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def definitions():
    """Our definitions, established."""
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    return {crd["metadata"]["name"]: {**crd, "status": status} for crd in crds.definitions()}


def pair(now=NOW, age=10 * DAY, life=90 * DAY):
    """An authority, and a leaf for our Service that it signed some time ago."""
    begins = now - age
    authority = issue.authority("koord", begins, seconds=3 * 365 * DAY)
    subject = issue.Subject("webhook", dns=(SERVICE,))
    return authority, issue.leaf(authority, subject, begins, seconds=life)


def stored_configuration(kind, bundle, **changes):
    """A webhook configuration of ours."""
    hook = {
        "name": HOOKS[kind],
        "clientConfig": {
            "service": {"namespace": names.NAMESPACE, "name": "koord-webhook"},
            "caBundle": base64.b64encode(bundle).decode(),
        },
        "rules": [{"operations": ["CREATE"], "resources": ["pods"]}],
        "failurePolicy": "Ignore",
        "timeoutSeconds": 3,
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": names.LABEL_NAMESPACE_NAME,
                    "operator": "NotIn",
                    "values": ["kube-system", names.NAMESPACE],
                }
            ]
        },
        **changes,
    }
    return {"kind": kind, "metadata": {"name": "koord-webhook"}, "webhooks": [hook]}


def withdrawn(configuration, reason, *, by_hand=False):
    """The same with the note of a withdrawal, and without rules."""
    since, until = durations.moment(NOW - 60), durations.moment(NOW + 60)
    note = webhook_configuration.Withdrawal(since, until, reason, by_hand=by_hand)
    annotations = {names.ANNOTATION_WITHDRAWN: webhook_configuration.text(note)}
    hooks = [{**hook, "rules": []} for hook in configuration["webhooks"]]
    metadata = {**configuration["metadata"], "annotations": annotations}
    return {**configuration, "metadata": metadata, "webhooks": hooks}


def beside(**changes):
    """The configuration of the scheduler that we bring."""
    options = scheduler_config.Options(
        "http://127.0.0.1:9211",
        (names.SCHEDULER,),
        leader_elect=True,
        lease=scheduler_config.Lease(names.NAMESPACE, names.SCHEDULER),
        **changes,
    )
    return scheduler_config.render(options)


def node(name, *, taints=(), labels=None, owners=None):
    """A node; `owners` are field managers with the lent resources that each of them wrote."""
    managed = [
        {
            "manager": manager,
            "subresource": "status",
            "fieldsV1": {"f:status": {"f:capacity": {f"f:{r}": {} for r in listed}}},
        }
        for manager, listed in (owners or {"koord-manager": names.BATCH_RESOURCES}).items()
    ]
    metadata = {"name": name, "labels": labels or {}, "managedFields": managed}
    return {"metadata": metadata, "spec": {"taints": list(taints)}, "status": {}}


def node_metric(name, *, age=20.0, skew=0.0, now=NOW):
    """The report of an agent whose clock is ahead by `skew`."""
    written = now - age
    managed = {
        "manager": "koord-agent",
        "subresource": "status",
        "time": durations.moment(written),
        "fieldsV1": {"f:status": {"f:updateTime": {}}},
    }
    return {
        "metadata": {"name": name, "managedFields": [managed]},
        "status": {"updateTime": durations.moment(written + skew)},
    }


def lease(*, age=2.0, holder="manager-0", now=NOW):
    """The Lease of the manager."""
    return {
        "metadata": {"name": "koordinator-manager", "namespace": names.NAMESPACE},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": durations.precise_moment(now - age),
        },
    }


def pods(*raw):
    """Pods as a checkup sees them."""
    return facts.pods_of(raw)


def pod(name, namespace="shop", *, batch=True, owner=None, node="a", **spec):
    """A pod, as the webhook would have left it."""
    asked = {names.BATCH_CPU: "1k"} if batch else {"cpu": "1"}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {}}
    if owner is not None:
        kind, called = owner
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": called, "controller": True}
        metadata["ownerReferences"] = [{**reference, "uid": "x"}]
    containers = [{"name": "c", "image": "x:1", "resources": {"requests": asked}}]
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": containers, **spec},
        "status": {"phase": "Running"},
    }


def healthy():
    """Everything that a checkup would learn about a healthy cluster of two nodes."""
    authority, leaf = pair()
    hooks = [stored_configuration(kind, authority.certificate) for kind in HOOKS]
    stock = "registry.k8s.io/kube-scheduler:v1.36.3"
    return facts.Facts(
        namespace=names.NAMESPACE,
        now=NOW,
        clock=facts.Clock(NOW + 0.4, NOW),
        version=facts.Version(1, 36, "v1.36.3"),
        crds=definitions(),
        deployments=[
            deployment("webhook"), deployment("manager"), deployment("scheduler", stock, IMAGE)
        ],
        daemon_sets=[daemon_set()],
        pods=pods(pod("job-1", owner=("Job", "job"))),
        nodes=[node("a"), node("b")],
        node_metrics=[node_metric("a"), node_metric("b")],
        node_slos=[{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
        config_maps={names.CONFIG_MAP_SLO: settings('{"enable": true}')},
        leases={"koordinator-manager": lease()},
        certificates=facts.Certificates(
            facts.OWN_CERTIFICATES, leaf.certificate, (authority.certificate,)
        ),
        webhooks=hooks,
        endpoints=[{"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]}],
        probe=facts.Probe("default", mutated=True, refused=True),
        scheduler_configs=[facts.SchedulerConfig("ConfigMap x", beside(), True, 2)],
        own_access=[facts.Access("the user of this command", "list", "pods", "", True)],
        service_access=[facts.Access("koord-manager", "list", "pods", "", True)],
        namespaces=[namespace("shop", tier="batch"), namespace("bank"), namespace("kube-system")],
        profiles=[profile()],
        quotas=[],
        elastic_quotas=[],
        limit_ranges=[],
        horizontal=[],
        vertical=[],
        unreadable=(),
    )  # fmt: skip


def replaced(known, changes):
    """The same facts, but for some."""
    return dataclasses.replace(known, **changes)


def settings(colocation):
    """The settings of the cluster."""
    metadata = {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE}
    return {"metadata": metadata, "data": {"colocation-config": colocation}}


def namespace(name, **labels):
    """A namespace."""
    return {"metadata": {"name": name, "labels": {names.LABEL_NAMESPACE_NAME: name, **labels}}}


def profile(**spec):
    """A profile that makes batch work of labelled pods in namespaces of tier batch."""
    return {
        "apiVersion": resources.COLOCATION_PROFILES.api_version,
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "batch"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"tier": "batch"}},
            "selector": {"matchLabels": {"colocate": "yes"}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
            **spec,
        },
    }
