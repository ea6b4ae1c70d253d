"""What makes good objects different or bad."""

from tests.e2e.differential.bodies import POD, RULE, SELECTOR, merged

LONG = "x" * 200
# What any object may be given, or may not: a merge patch each.
METADATA = (
    {"metadata": {"labels": {"a": "b"}}},
    {"metadata": {"labels": {"a.example.com/b-c": "V_1.x", "empty": ""}}},
    {"metadata": {"annotations": {"note": "anything: goes {here}"}}},
    {"metadata": {"finalizers": ["example.com/hold"]}},
    {"metadata": {"labels": None}},
    {"metadata": {"labels": {}, "annotations": {}}},
)
BAD_METADATA = (
    {"metadata": {"labels": {"a b": "c"}}},
    {"metadata": {"labels": {"a": "no spaces here"}}},
    {"metadata": {"labels": {"a": "x" * 64}}},
    {"metadata": {"labels": {"x" * 64: "a"}}},
    {"metadata": {"labels": {"UPPER.example.com/a": "b"}}},
    {"metadata": {"labels": {"a/b/c": "d"}}},
    {"metadata": {"labels": {"": "d"}}},
    {"metadata": {"labels": {"a": 1}}},
    {"metadata": {"labels": ["a"]}},
    {"metadata": {"annotations": {"a b": "c"}}},
    {"metadata": {"annotations": {"Upper.example.com/x": "c"}}},
    {"metadata": {"annotations": {"big": "x" * 262_145}}},
    {"metadata": {"annotations": {"one": "x" * 140_000, "two": "y" * 140_000}}},
    {"metadata": {"annotations": {"a": True}}},
    {"metadata": {"finalizers": ["unqualified"]}},
    {"metadata": {"finalizers": ["no/such/thing"]}},
    {"metadata": {"finalizers": "text"}},
    {"metadata": {"ownerReferences": [{"kind": "Pod", "name": "x", "uid": "u"}]}},
    {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]}},
    {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
                for n in ("x", "y")
            ]
        }
    },
    {"metadata": {"generation": -1}},
    {"metadata": {"generation": "one"}},
    {"metadata": {"creationTimestamp": "yesterday"}},
    {"metadata": {"unheard": "of"}},
    {"metadata": "text"},
    {"unheard": {"of": 1}},
    {"spec": "text"},
    {"spec": {"unheard": "of"}},
)


def _container(**changes):
    return {"spec": {"containers": [merged(POD["spec"]["containers"][0], changes)]}}


def _term(**changes):
    return {"labelSelector": SELECTOR, "topologyKey": "kubernetes.io/hostname", **changes}


# What each kind may be given, good and bad.
CHANGES = {
    "pods": (
        _container(image="other:2"),
        _container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        _container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
        _container(resources={"limits": {"example.com/gpu": "1"}}),
        _container(resources={"requests": {"cpu": 1}}),
        _container(ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}]),
        _container(env=[{"name": "A", "value": "1"}, {"name": "B"}]),
        _container(args=["a", "b"], command=["c"]),
        _container(image="img:latest"),
        {"spec": {"priorityClassName": "system-cluster-critical"}},
        {"spec": {"nodeSelector": {"a": "b"}}},
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
        {"spec": {"tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
        {"spec": {"schedulingGates": [{"name": "example.com/gate"}]}},
        {"spec": {"activeDeadlineSeconds": 60}},
        {"spec": {"restartPolicy": "Never"}},
        {"spec": {"schedulerName": "other"}},
        {"spec": {"overhead": {"cpu": "1"}}},
        {"spec": {"hostname": "host"}},
        {"spec": {"terminationGracePeriodSeconds": 30}},
        {
            "spec": {
                "affinity": {
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "podAffinityTerm": _term()}
                        ]
                    }
                }
            }
        },
        {
            "spec": {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            }
        },
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"initContainers": [{"name": "i", "image": "i"}]}},
    ),
    "configmaps": (
        {"data": {"c": "3"}},
        {"data": {"a": "changed"}},
        {"binaryData": {"z": "MQ=="}},
        {"immutable": True},
        {"data": None},
    ),
    "secrets": (
        {"stringData": {"t": "text"}},
        {"data": {"b": "Mg=="}},
        {"type": "example.com/x"},
        {"immutable": True},
    ),
    "serviceaccounts": (
        {"automountServiceAccountToken": False},
        {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]},
    ),
    "events": ({"message": "other"}, {"count": 2}, {"involvedObject": {"name": "x"}}),
    "nodes": (
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
        {"spec": {"providerID": "x://1"}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        {"status": {"allocatable": {"cpu": "3"}}},
    ),
    "namespaces": ({"metadata": {"labels": {"team": "a"}}},),
    "deployments": (
        {"spec": {"replicas": 0}},
        {"spec": {"paused": True}},
        {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}}},
        {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}},
        {"spec": {"minReadySeconds": 5}},
    ),
    "replicasets": ({"spec": {"replicas": 0}}, {"spec": {"minReadySeconds": 5}}),
    "poddisruptionbudgets": (
        {"spec": {"minAvailable": "50%"}},
        {"spec": {"minAvailable": None, "maxUnavailable": 1}},
        {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}},
    ),
    "priorityclasses": (
        {"description": "text"},
        {"globalDefault": False},
        {"preemptionPolicy": "Never"},
        {"value": 100},
    ),
    "leases": (
        {"spec": {"holderIdentity": "you"}},
        {"spec": {"leaseTransitions": 3}},
        {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}},
    ),
    "roles": ({"rules": [RULE, {**RULE, "verbs": ["list"]}]}, {"rules": []}),
    "clusterroles": (
        {"aggregationRule": {"clusterRoleSelectors": [SELECTOR]}},
        {"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
    ),
    "widgets": (
        {"spec": {"size": 2}},
        {"spec": {"color": "blue"}},
        {"spec": {"parts": [{"name": "b", "count": 2}, {"name": "a", "count": 1}]}},
        {"spec": {"tags": ["x", "y"]}},
        {"spec": {"words": ["w"]}},
        {"spec": {"free": {"any": ["thing", 1, None]}}},
    ),
}
BAD_CHANGES = {
    "pods": (
        _container(name="Bad_Name"),
        _container(image=""),
        _container(image=" padded "),
        _container(resources={"requests": {"cpu": "-1"}}),
        _container(resources={"requests": {"cpu": "lots"}}),
        _container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        _container(resources={"requests": {"example.com/gpu": "1"}}),
        _container(resources={"limits": {"example.com/gpu": "1500m"}}),
        _container(resources={"requests": {"no such thing": "1"}}),
        _container(resources={"requests": {"unknown": "1"}}),
        _container(ports=[{"containerPort": 70_000}]),
        _container(ports=[{"containerPort": 80, "protocol": "ICMP"}]),
        _container(ports=[{"containerPort": "80"}]),
        _container(env=[{"name": "", "value": "1"}]),
        _container(env=[{"name": "a=b", "value": "1"}]),
        _container(imagePullPolicy="Sometimes"),
        _container(terminationMessagePolicy="Loud"),
        _container(unheard="of"),
        _container(tty="yes"),
        {"spec": {"containers": []}},
        {"spec": {"containers": [POD["spec"]["containers"][0]] * 2}},
        {"spec": {"restartPolicy": "Whenever"}},
        {"spec": {"dnsPolicy": "Whatever"}},
        {"spec": {"terminationGracePeriodSeconds": -1}},
        {"spec": {"activeDeadlineSeconds": 0}},
        {"spec": {"priorityClassName": "absent"}},
        {"spec": {"priority": 5}},
        {"spec": {"nodeName": "Not A Name"}},
        {"spec": {"nodeSelector": {"a b": "c"}}},
        {"spec": {"nodeSelector": {"a": 1}}},
        {"spec": {"tolerations": [{"operator": "Equal", "value": "x"}]}},
        {"spec": {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}},
        {"spec": {"tolerations": [{"key": "a", "operator": "Near"}]}},
        {"spec": {"tolerations": [{"key": "a", "effect": "Sometimes"}]}},
        {"spec": {"schedulingGates": [{"name": "no spaces"}]}},
        {"spec": {"schedulingGates": [{"name": "g"}], "nodeName": "n"}},
        {"spec": {"hostname": "Not_A_Host"}},
        {"spec": {"serviceAccountName": "Not A Name"}},
        {"spec": {"hostNetwork": "true"}},
        {"spec": {"volumes": [{"name": "v"}, {"name": "v"}]}},
        {"spec": {"volumes": [{"name": "V_V", "emptyDir": {}}]}},
        {"spec": {"schedulerName": 1}},
    ),
    "configmaps": (
        {"data": {"bad key": "1"}},
        {"data": {"a": 1}},
        {"data": ["a"]},
        {"binaryData": {"a": "MQ=="}},
        {"binaryData": {"z": "not base64!"}},
        {"immutable": "yes"},
    ),
    "secrets": (
        {"data": {"bad key": "MQ=="}},
        {"data": {"a": "not base64!"}},
        {"stringData": {"a": 1}},
        {"type": "kubernetes.io/tls"},
        {"type": "kubernetes.io/basic-auth"},
        {"type": "kubernetes.io/dockerconfigjson"},
    ),
    "serviceaccounts": ({"imagePullSecrets": "a"}, {"automountServiceAccountToken": "no"}),
    "events": ({"type": 1}, {"count": "many"}, {"involvedObject": {"namespace": "elsewhere"}}),
    "nodes": (
        {"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}},
        {"spec": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}},
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}},
        {"spec": {"podCIDRs": ["nonsense"]}},
        {"status": {"capacity": {"cpu": "many"}}},
    ),
    "namespaces": (
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}},
        {"spec": {"finalizers": ["unqualified"]}},
    ),
    "deployments": (
        {"spec": {"replicas": -1}},
        {"spec": {"replicas": "two"}},
        {"spec": {"selector": None}},
        {"spec": {"selector": {"matchLabels": {"app": "y"}}}},
        {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}},
        {"spec": {"template": {"spec": {"containers": []}}}},
        {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}},
        {"spec": {"strategy": {"type": "Sudden"}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "many"}}}},
        {"spec": {"minReadySeconds": -1}},
        {"spec": {"template": {"spec": {"unheard": "of"}}}},
    ),
    "replicasets": (
        {"spec": {"replicas": -1}},
        {"spec": {"selector": None}},
        {"spec": {"selector": {"matchLabels": {"app": "y"}}}},
    ),
    "poddisruptionbudgets": (
        {"spec": {"maxUnavailable": 1}},
        {"spec": {"minAvailable": -1}},
        {"spec": {"minAvailable": "half"}},
        {"spec": {"minAvailable": "150%"}},
        {"spec": {"minAvailable": True}},
        {"spec": {"unhealthyPodEvictionPolicy": "Maybe"}},
        {"spec": {"selector": {"matchLabels": {"a b": "c"}}}},
    ),
    "priorityclasses": (
        {"value": 2_000_000_000},
        {"value": "high"},
        {"value": 200},
        {"preemptionPolicy": "Sometimes"},
        {"value": 1 << 31},
    ),
    "leases": (
        {"spec": {"leaseDurationSeconds": 0}},
        {"spec": {"leaseDurationSeconds": "15"}},
        {"spec": {"leaseTransitions": -1}},
        {"spec": {"renewTime": "now"}},
    ),
    "roles": (
        {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
        {"rules": [{"verbs": ["get"]}]},
        {"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
        {"rules": "all"},
    ),
    "clusterroles": ({"rules": [{"verbs": ["get"]}]},),
    "widgets": (
        {"spec": {"size": -1}},
        {"spec": {"size": 11}},
        {"spec": {"size": "big"}},
        {"spec": {"color": "green"}},
        {"spec": {"parts": [{"count": 1}]}},
        {"spec": {"parts": [{"name": "a"}, {"name": "a"}]}},
        {"spec": {"tags": ["x", "x"]}},
        {"spec": {"tags": "x"}},
        {"spec": {"words": [1]}},
    ),
}


def operations(change, path):
    """The JSON patch that does what a merge patch would."""
    if not isinstance(change, dict):
        yield (
            {"op": "add", "path": path, "value": change}
            if change is not None
            else {"op": "remove", "path": path}
        )
        return
    for key, value in change.items():
        step = key.replace("~", "~0").replace("/", "~1")
        if isinstance(value, dict) and key in ("metadata", "spec", "status"):
            yield from operations(value, f"{path}/{step}")
        elif value is None:
            yield {"op": "remove", "path": f"{path}/{step}"}
        else:
            yield {"op": "add", "path": f"{path}/{step}", "value": value}
