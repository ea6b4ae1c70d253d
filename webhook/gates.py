"""The feature gates of the webhook, under the names that Koordinator gives them. Pure."""

from collections.abc import Mapping
from typing import Final

PODS_MUTATED: Final = "PodMutatingWebhook"
PODS_VALIDATED: Final = "PodValidatingWebhook"
QUOTAS_MUTATED: Final = "ElasticMutatingWebhook"
CONFIG_MAPS: Final = "ConfigMapValidatingWebhook"
SKIP_RESOURCES: Final = "ColocationProfileSkipMutatingResources"
SKIP_PRIORITY: Final = "ColocationProfileSkipValidatingPriority"
DISABLE_RECORD: Final = "DisableExtendedResourceSpec"
DISABLE_DEVICES: Final = "DisableDeviceResourceSpec"
QUOTA_TREES: Final = "MultiQuotaTree"
DEVICES: Final = "ValidatePodDeviceResource"
DEVICE_COMBINATIONS: Final = "ValidatePodDeviceCombination"
REQUIRED_LABELS: Final = "EnablePodEnhancedValidator"
ANY_QUOTA: Final = "SupportParentQuotaSubmitPod"
NO_DEFAULT_QUOTA: Final = "DisableDefaultQuota"
CHILD_KEYS: Final = "ElasticQuotaEnableUpdateResourceKey"
GUARANTEE: Final = "ElasticQuotaGuaranteeUsage"
BINDING: Final = "BindingAdmissionWebhook"
NODES: Final = "NodeValidatingWebhook"
NODE_STATUS: Final = "NodeMutatingWebhook"
RESERVATIONS: Final = "ReservationMutatingWebhook"
PROTECTED: Final = "ProtectedPodFields"

DESCRIPTIONS: Final = {
    PODS_MUTATED: "Change pods when they are created.",
    PODS_VALIDATED: "Check pods when they are created or changed.",
    QUOTAS_MUTATED: "Complete new ElasticQuotas.",
    CONFIG_MAPS: "Check the cluster settings when they are written.",
    SKIP_RESOURCES: "Never rewrite cpu and memory to batch or mid resources.",
    SKIP_PRIORITY: "Let the label koordinator.sh/priority change during the life of a pod.",
    DISABLE_RECORD: "Do not record batch resources in the extended-resource-spec annotation.",
    DISABLE_DEVICES: "Leave the GPU requests of pods as they are written.",
    QUOTA_TREES: "Keep pods on the nodes of their quota's tree.",
    DEVICES: "Refuse pods whose GPU requests contradict each other.",
    DEVICE_COMBINATIONS: "Refuse pods whose device requests no node can serve.",
    REQUIRED_LABELS: "Demand the labels that the ConfigMap pod-enhanced-validator-config lists.",
    ANY_QUOTA: "Let pods belong to quotas that hold other quotas.",
    NO_DEFAULT_QUOTA: "A pod without the quota label belongs to no quota.",
    CHILD_KEYS: "Let a quota name fewer resources than its parent.",
    GUARANTEE: "Refuse a minimum that the quotas above cannot guarantee.",
    BINDING: "Let only listed users bind pods to nodes.",
    NODE_STATUS: "Let nodes offer more than they have, by the ratios in their annotation.",
    NODES: "Check labels of nodes against the cluster settings.",
    RESERVATIONS: "Let profiles change Reservations as well.",
    PROTECTED: "Refuse pods, updates and Bindings that write what only schedulers may write.",
}
"""What each of them does."""

ON: Final = frozenset({PODS_MUTATED, PODS_VALIDATED, QUOTAS_MUTATED, CONFIG_MAPS})
"""Those that are on unless they are switched off."""


def merged(on: frozenset[str], written: Mapping[str, bool]) -> frozenset[str]:
    """Return the gates that are on: what the cluster says comes before the process's settings."""
    return (on - written.keys()) | {name for name, is_on in written.items() if is_on}
