"""The resources of the Kubernetes API that we read or write, and their paths."""

from typing import Final, NamedTuple


class Resource(NamedTuple):
    """One REST resource: where it is served and what its objects are called."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Return the value of ``apiVersion`` in objects of this resource."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, of one object or of its subresource."""
        parts = ["/apis", self.group] if self.group else ["/api"]
        parts.append(self.version)
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)

    def review_name(self) -> str:
        """Return ``plural.group`` as used in access rules and CRD names."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


GROUP_CONFIG: Final = "config.koordinator.sh"
GROUP_SLO: Final = "slo.koordinator.sh"
GROUP_SCHEDULING: Final = "scheduling.koordinator.sh"
GROUP_QUOTA: Final = "quota.koordinator.sh"
GROUP_ANALYSIS: Final = "analysis.koordinator.sh"
GROUP_SHORT: Final = "koordinator.sh"
GROUP_SIGS: Final = "scheduling.sigs.k8s.io"
GROUP_TOPOLOGY: Final = "topology.node.k8s.io"
GROUP_KRUISE: Final = "apps.kruise.io"

PODS: Final = Resource("", "v1", "pods", "Pod", True)
BINDINGS: Final = Resource("", "v1", "bindings", "Binding", True)
NODES: Final = Resource("", "v1", "nodes", "Node", False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", False)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", True)
SECRETS: Final = Resource("", "v1", "secrets", "Secret", True)
SERVICES: Final = Resource("", "v1", "services", "Service", True)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota", True)
LIMIT_RANGES: Final = Resource("", "v1", "limitranges", "LimitRange", True)
PERSISTENT_VOLUME_CLAIMS: Final = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True
)
CORE_EVENTS: Final = Resource("", "v1", "events", "Event", True)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False
)
POD_DISRUPTION_BUDGETS: Final = Resource(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True
)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", True)
REPLICATION_CONTROLLERS: Final = Resource(
    "", "v1", "replicationcontrollers", "ReplicationController", True
)
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", True)
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", True)
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
CLONE_SETS: Final = Resource(GROUP_KRUISE, "v1alpha1", "clonesets", "CloneSet", True)
ADVANCED_STATEFUL_SETS: Final = Resource(
    GROUP_KRUISE, "v1beta1", "statefulsets", "StatefulSet", True
)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", True)
ENDPOINT_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
MUTATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
)
VALIDATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)
CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
CLUSTER_ROLES: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False
)
CLUSTER_ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True)
ROLE_BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True
)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)

COLOCATION_PROFILES: Final = Resource(
    GROUP_CONFIG, "v1alpha1", "clustercolocationprofiles", "ClusterColocationProfile", False
)
NODE_SLOS: Final = Resource(GROUP_SLO, "v1alpha1", "nodeslos", "NodeSLO", False)
NODE_METRICS: Final = Resource(GROUP_SLO, "v1alpha1", "nodemetrics", "NodeMetric", False)
RESERVATIONS: Final = Resource(GROUP_SCHEDULING, "v1alpha1", "reservations", "Reservation", False)
DEVICES: Final = Resource(GROUP_SCHEDULING, "v1alpha1", "devices", "Device", False)
POD_MIGRATION_JOBS: Final = Resource(
    GROUP_SCHEDULING, "v1alpha1", "podmigrationjobs", "PodMigrationJob", False
)
CLUSTER_NETWORK_TOPOLOGIES: Final = Resource(
    GROUP_SCHEDULING, "v1alpha1", "clusternetworktopologies", "ClusterNetworkTopology", False
)
SCHEDULE_EXPLANATIONS: Final = Resource(
    GROUP_SCHEDULING, "v1alpha1", "scheduleexplanations", "ScheduleExplanation", True
)
ELASTIC_QUOTAS: Final = Resource(GROUP_SIGS, "v1alpha1", "elasticquotas", "ElasticQuota", True)
POD_GROUPS: Final = Resource(GROUP_SIGS, "v1alpha1", "podgroups", "PodGroup", True)
NATIVE_POD_GROUPS: Final = (
    Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True),
    Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", True),
)
"""Of Kubernetes itself from 1.37 and in 1.36, newest first; served where GenericWorkload is on."""
ELASTIC_QUOTA_PROFILES: Final = Resource(
    GROUP_QUOTA, "v1alpha1", "elasticquotaprofiles", "ElasticQuotaProfile", True
)
RECOMMENDATIONS: Final = Resource(
    GROUP_ANALYSIS, "v1alpha1", "recommendations", "Recommendation", True
)
NODE_RESOURCE_TOPOLOGIES: Final = Resource(
    GROUP_TOPOLOGY, "v1alpha1", "noderesourcetopologies", "NodeResourceTopology", False
)

# The same word in two more groups: accepted side by side, see ``api.koordinator.quota``.
ELASTIC_QUOTAS_OF_QUOTA_GROUP: Final = Resource(
    GROUP_QUOTA, "v1alpha1", "elasticquotas", "ElasticQuota", True
)
ELASTIC_QUOTAS_OF_SHORT_GROUP: Final = Resource(
    GROUP_SHORT, "v1alpha1", "elasticquotas", "ElasticQuota", True
)
QUOTA_RESOURCES: Final = (
    ELASTIC_QUOTAS,
    ELASTIC_QUOTAS_OF_QUOTA_GROUP,
    ELASTIC_QUOTAS_OF_SHORT_GROUP,
)
CUSTOM: Final = (
    COLOCATION_PROFILES,
    NODE_SLOS,
    NODE_METRICS,
    RESERVATIONS,
    DEVICES,
    POD_MIGRATION_JOBS,
    CLUSTER_NETWORK_TOPOLOGIES,
    SCHEDULE_EXPLANATIONS,
    *QUOTA_RESOURCES,
    POD_GROUPS,
    ELASTIC_QUOTA_PROFILES,
    RECOMMENDATIONS,
    NODE_RESOURCE_TOPOLOGIES,
)
