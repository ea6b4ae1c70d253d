"""Arguments of the DefaultEvictor: who may be evicted at all."""

from collections.abc import Iterator
from typing import Any, Final, Literal, Self

import pydantic
from pydantic import Field

from api.plugin_args.arguments import Arguments, Duration
from descheduler.configuration.arguments import node_labels, parts

Extra = Literal["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"]
Default = Literal["PodsWithLocalStorage", "DaemonSetPods", "SystemCriticalPods", "FailedBarePods"]
_DEPRECATED: Final = (
    "evict_local_storage_pods",
    "evict_daemon_set_pods",
    "evict_system_critical_pods",
    "ignore_pvc_pods",
    "ignore_pods_without_pdb",
    "evict_failed_bare_pods",
)


class StorageClass(Arguments):
    """A StorageClass."""

    name: parts.Name
    """Its name."""


class PodsWithPVC(Arguments):
    """Which PersistentVolumeClaims protect their pods."""

    protected_storage_classes: tuple[StorageClass, ...] = ()
    """Storage classes whose claims protect; those of all when empty."""


class PodProtectionsConfig(Arguments):
    """What a protection looks at."""

    pods_with_pvc: PodsWithPVC | None = Field(default=None, alias="PodsWithPVC")
    """Which PersistentVolumeClaims protect their pods."""


class PodProtections(Arguments):
    """Protections that are added or taken away."""

    extra_enabled: tuple[Extra, ...] = ()
    """Protections that are added."""
    default_disabled: tuple[Default, ...] = ()
    """Protections that are taken away."""
    config: PodProtectionsConfig | None = None
    """What a protection looks at."""

    @pydantic.model_validator(mode="after")
    def _names_differ(self) -> Self:
        lists: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("extraEnabled", self.extra_enabled),
            ("defaultDisabled", self.default_disabled),
        )
        for field, given in lists:
            if twice := next((name for name in given if given.count(name) > 1), None):
                raise ValueError(f"{field}: {twice} is there twice; remove one")
        return self


class DefaultEvictorArgs(Arguments):
    """Which pods may be evicted at all."""

    node_selector: node_labels.NodeSelector = ""
    """Nodes that count for `nodeFit`, as in `kubectl --selector`."""
    label_selector: parts.LabelSelector | None = None
    """Pods that may leave; all when missing."""
    namespace_label_selector: parts.LabelSelector | None = None
    """Namespaces whose pods may leave, by their labels; all when missing."""
    priority_threshold: parts.PriorityThreshold | None = None
    """Priority from which on pods stay; that of system-cluster-critical when missing."""
    node_fit: bool = False
    """Look just before a pod leaves whether another node takes it."""
    min_replicas: parts.Whole = 0
    """Least replicas of workloads whose pods may leave; 0 and 1 are off."""
    min_pod_age: Duration | None = None
    """Least age of pods that may leave."""
    no_eviction_policy: Literal["Preferred", "Mandatory"] = "Preferred"
    """Whether the annotation `descheduler.alpha.kubernetes.io/prefer-no-eviction` keeps a pod:
    `Mandatory` does, `Preferred` lets it leave last."""
    pod_protections: PodProtections = PodProtections()
    """Protections that are added or taken away."""
    evict_local_storage_pods: bool = False
    """Deprecated: disable PodsWithLocalStorage in `podProtections`."""
    evict_daemon_set_pods: bool = False
    """Deprecated: disable DaemonSetPods."""
    evict_system_critical_pods: bool = False
    """Deprecated: disable SystemCriticalPods."""
    ignore_pvc_pods: bool = False
    """Deprecated: enable PodsWithPVC."""
    ignore_pods_without_pdb: bool = Field(default=False, alias="ignorePodsWithoutPDB")
    """Deprecated: enable PodsWithoutPDB."""
    evict_failed_bare_pods: bool = False
    """Deprecated: disable FailedBarePods."""

    @pydantic.model_validator(mode="after")
    def _is_one_form(self) -> Self:
        old = next((name for name in _DEPRECATED if getattr(self, name)), None)
        new = self.pod_protections
        if old is not None and (new.extra_enabled or new.default_disabled):
            field = type(self).model_fields[old].alias
            raise ValueError(f"{field} and podProtections are both given; keep podProtections")
        return self

    def complete(self) -> Self:
        """Return the arguments with the deprecated switches told as protections."""
        extra: dict[Extra, bool] = {
            "PodsWithPVC": self.ignore_pvc_pods,
            "PodsWithoutPDB": self.ignore_pods_without_pdb,
        }
        disabled: dict[Default, bool] = {
            "PodsWithLocalStorage": self.evict_local_storage_pods,
            "DaemonSetPods": self.evict_daemon_set_pods,
            "SystemCriticalPods": self.evict_system_critical_pods,
            "FailedBarePods": self.evict_failed_bare_pods,
        }
        given = self.pod_protections
        told = given.but(
            extra_enabled=given.extra_enabled or tuple(name for name, on in extra.items() if on),
            default_disabled=given.default_disabled
            or tuple(name for name, on in disabled.items() if on),
        )
        return self.but(pod_protections=told, **dict.fromkeys(_DEPRECATED, False))

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        if self.min_replicas == 1:
            yield "minReplicas", "has no effect unless it is at least 2; remove it"
