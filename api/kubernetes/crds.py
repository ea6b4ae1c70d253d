"""CustomResourceDefinitions, generated from the models of the kinds."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Final

from pydantic import json_schema
from pydantic_core import core_schema

from api import names, resources
from api.koordinator import (
    analysis,
    colocation,
    devices,
    explanation,
    migration,
    nodemetric,
    quota,
    scheduling,
    slo,
    topology,
)
from api.wire import base, field_docs

Manifest = dict[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_APPROVED_SIGS: Final = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"
_APPROVED_TOPOLOGY: Final = "https://github.com/kubernetes/enhancements/pull/1870"
# Bounds that say no more than the integer's format does.
_IMPLIED: Mapping[str, set[int]] = {
    "minimum": {-(2**31), -(2**63)},
    "maximum": {2**31 - 1, 2**63 - 1},
}
_KEPT: tuple[str, ...] = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "nullable",
    "required",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column that ``kubectl get`` prints."""

    name: str
    path: str
    type: str = "string"
    description: str = ""

    def manifest(self) -> Manifest:
        """Return the column as a definition holds it."""
        column = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "description": self.description} if self.description else column


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """All that makes one kind: the model of its stored version and what kubectl shows."""

    resource: resources.Resource
    model: type[base.Model]
    short: tuple[str, ...] = ()
    status: bool = False
    columns: tuple[Column, ...] = ()
    approved: str = ""
    older: tuple[tuple[str, type[base.Model]], ...] = ()
    version: str = ""

    def manifest(self) -> Manifest:
        """Return the CustomResourceDefinition."""
        resource = self.resource
        metadata: Manifest = {"name": resource.review_name(), "labels": dict(names.INSTALLED)}
        if self.approved:
            metadata["annotations"] = {names.ANNOTATION_API_APPROVED: self.approved}
        called: Manifest = {
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "plural": resource.plural,
            "singular": resource.kind.lower(),
        }
        if self.short:
            called["shortNames"] = list(self.short)
        stored = self._version(self.version or resource.version, self.model, storage=True)
        older = [self._version(name, model, storage=False) for name, model in self.older]
        return {
            "apiVersion": resources.CRDS.api_version,
            "kind": resources.CRDS.kind,
            "metadata": metadata,
            "spec": {
                "group": resource.group,
                "names": called,
                "scope": "Namespaced" if resource.namespaced else "Cluster",
                "versions": [*older, stored],
            },
        }

    def _version(self, name: str, model: type[base.Model], *, storage: bool) -> Manifest:
        version: Manifest = {
            "name": name,
            "served": True,
            "storage": storage,
            "schema": {"openAPIV3Schema": schema_of(model)},
        }
        if self.status:
            version["subresources"] = {"status": {}}
        if self.columns:
            version["additionalPrinterColumns"] = [column.manifest() for column in self.columns]
        return version


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
_QUOTA_COLUMNS: Final = (
    Column("CPU", ".status.used.cpu", description="CPU requested by its pods"),
    Column("CPU max", ".spec.max.cpu", description="CPU that is never exceeded"),
    Column("Memory", ".status.used.memory", description="Memory requested by its pods"),
    Column("Memory max", ".spec.max.memory", description="Memory that is never exceeded"),
    _AGE,
)
_RESERVATION_COLUMNS: Final = (
    Column("Phase", ".status.phase", description="The phase of the reservation"),
    _AGE,
    Column("Node", ".status.nodeName"),
    Column("TTL", ".spec.ttl"),
    Column("Expires", ".spec.expires"),
)
_MIGRATION_COLUMNS: Final = (
    Column("Phase", ".status.phase", description="The phase of the migration"),
    Column("Status", ".status.status", description="The last step of the migration"),
    _AGE,
    Column("Node", ".status.nodeName"),
    Column("Reservation", ".spec.reservationOptions.reservationRef.name"),
    Column("PodNamespace", ".spec.podRef.namespace"),
    Column("Pod", ".spec.podRef.name"),
    Column("NewPod", ".status.podRef.name"),
    Column("TTL", ".spec.ttl"),
)
_RECOMMENDATION_COLUMNS: Final = (
    _AGE,
    Column("Type", ".spec.target.type"),
    Column("Kind", ".spec.target.workload.kind"),
    Column("Name", ".spec.target.workload.name"),
    Column("LastUpdateTime", ".status.updateTime", "date"),
)
_PROFILE_COLUMNS: Final = (
    Column("QoS", ".spec.qosClass", description="QoS class given to matching pods"),
    Column("PriorityClass", ".spec.priorityClassName"),
    Column("Scheduler", ".spec.schedulerName"),
    Column("Probability", ".spec.probability", description="Share of matching pods changed"),
    _AGE,
)
_SLO_COLUMNS: Final = (
    Column("Suppress", ".spec.resourceUsedThresholdWithBE.enable", "boolean"),
    Column("CPU threshold", ".spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent",
           "integer", "Use of the node's CPU above which batch work is held back, in percent"),
    Column("CPU burst", ".spec.cpuBurstStrategy.policy"),
    _AGE,
)  # fmt: skip
_METRIC_COLUMNS: Final = (
    Column("CPU", ".status.nodeMetric.nodeUsage.resources.cpu", description="CPU in use"),
    Column("Memory", ".status.nodeMetric.nodeUsage.resources.memory", description="In use"),
    Column("Reported", ".status.updateTime", "date", "When the agent wrote it"),
    _AGE,
)
_DEVICE_COLUMNS: Final = (
    Column("Type", ".spec.devices[0].type", description="Type of the first device"),
    Column("Healthy", ".spec.devices[0].health", "boolean", "Whether the first device is healthy"),
    _AGE,
)
_NETWORK_COLUMNS: Final = (
    Column("Top layer", ".status.detailStatus[0].topologyInfo.topologyLayer"),
    Column("Nodes", ".status.detailStatus[0].nodeNum", "integer", "Nodes below the top"),
    _AGE,
)
_EXPLANATION_COLUMNS: Final = (
    Column("Pod", ".spec.questionObjectKey", description="Namespace and name of the pod"),
    Column("Schedulable", ".status.schedulable", "boolean"),
    Column("Updated", ".status.lastUpdateTime", "date"),
    _AGE,
)
_GROUP_COLUMNS: Final = (
    Column("Phase", ".status.phase"),
    Column("MinMember", ".spec.minMember", "integer"),
    Column("Scheduled", ".status.scheduled", "integer"),
    Column("Running", ".status.running", "integer"),
    _AGE,
)
_QUOTA_PROFILE_COLUMNS: Final = (
    Column("Quota", ".spec.quotaName", description="Root quota that is kept"),
    Column("Ratio", ".spec.resourceRatio"),
    _AGE,
)
_TOPOLOGY_COLUMNS: Final = (
    Column("Policy", ".topologyPolicies[0]", description="Policy of the kubelet"),
    Column("First zone", ".zones[0].name"),
    _AGE,
)

DEFINITIONS: Final = (
    Definition(
        resources.COLOCATION_PROFILES,
        colocation.ClusterColocationProfile,
        status=True,
        columns=_PROFILE_COLUMNS,
    ),
    Definition(resources.NODE_SLOS, slo.NodeSLO, status=True, columns=_SLO_COLUMNS),
    Definition(resources.NODE_METRICS, nodemetric.NodeMetric, status=True, columns=_METRIC_COLUMNS),
    Definition(
        resources.RESERVATIONS, scheduling.Reservation, status=True, columns=_RESERVATION_COLUMNS
    ),
    Definition(resources.DEVICES, devices.Device, columns=_DEVICE_COLUMNS),
    Definition(
        resources.POD_MIGRATION_JOBS,
        migration.PodMigrationJob,
        short=("pmj",),
        status=True,
        columns=_MIGRATION_COLUMNS,
    ),
    Definition(
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        topology.ClusterNetworkTopology,
        status=True,
        columns=_NETWORK_COLUMNS,
    ),
    Definition(
        resources.SCHEDULE_EXPLANATIONS,
        explanation.ScheduleExplanation,
        short=("sched-exp",),
        status=True,
        columns=_EXPLANATION_COLUMNS,
    ),
    Definition(
        resources.ELASTIC_QUOTAS,
        quota.PlainElasticQuota,
        columns=_QUOTA_COLUMNS,
        approved=_APPROVED_SIGS,
    ),
    Definition(
        resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP, quota.ShortElasticQuota, columns=_QUOTA_COLUMNS
    ),
    Definition(
        resources.ELASTIC_QUOTAS_OF_SHORT_GROUP, quota.ShortElasticQuota, columns=_QUOTA_COLUMNS
    ),
    Definition(
        resources.POD_GROUPS,
        scheduling.PodGroup,
        columns=_GROUP_COLUMNS,
        approved=_APPROVED_SIGS,
    ),
    Definition(
        resources.ELASTIC_QUOTA_PROFILES,
        quota.ElasticQuotaProfile,
        short=("eqp",),
        columns=_QUOTA_PROFILE_COLUMNS,
    ),
    Definition(
        resources.RECOMMENDATIONS,
        analysis.Recommendation,
        short=("recom",),
        status=True,
        columns=_RECOMMENDATION_COLUMNS,
    ),
    Definition(
        resources.NODE_RESOURCE_TOPOLOGIES,
        topology.NodeResourceTopology,
        short=("node-res-topo",),
        columns=_TOPOLOGY_COLUMNS,
        approved=_APPROVED_TOPOLOGY,
        version="v1alpha2",
        older=(("v1alpha1", topology.FirstNodeResourceTopology),),
    ),
)


def definitions() -> list[Manifest]:
    """Return every CustomResourceDefinition."""
    return [definition.manifest() for definition in DEFINITIONS]


def documents() -> dict[str, Manifest]:
    """Return every CustomResourceDefinition under the name of its file."""
    return {
        f"{definition.resource.group}_{definition.resource.plural}.yaml": definition.manifest()
        for definition in DEFINITIONS
    }


def schema_of(model: type[base.Model]) -> Manifest:
    """Return the structural schema of one version of a kind."""
    written = _written(model)
    schema = _structural(written, written.get("$defs", {}))
    schema["properties"]["metadata"] = {"type": "object"}
    schema["properties"]["apiVersion"] = {"type": "string"}
    schema["properties"]["kind"] = {"type": "string"}
    return schema


class _Described(json_schema.GenerateJsonSchema):
    """Describes fields by the texts below them in the source.

    Reading those texts while models are made would cost every process time and memory.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> json_schema.JsonSchemaValue:
        written = super().model_schema(schema)
        texts = field_docs.fields(schema["cls"])
        for name, field in schema["cls"].model_fields.items():
            place = written.get("properties", {}).get(field.alias or name)
            if place is not None and name in texts:
                place.setdefault("description", texts[name])
        return written


@functools.cache
def _written(model: type[base.Model]) -> Mapping[str, Any]:
    """Return what pydantic makes of a model, which takes it a second for all of them."""
    return model.model_json_schema(schema_generator=_Described)


def _structural(written: Mapping[str, Any], parts: Mapping[str, Any]) -> Manifest:
    """Turn one node of a JSON schema into a structural schema: no references, no alternatives."""
    node = _resolved(written, parts)
    schema: Manifest = {
        key: list(node[key]) if isinstance(node[key], list) else node[key]
        for key in _KEPT
        if key in node and node[key] not in _IMPLIED.get(key, ())
    }
    schema |= {key: value for key, value in node.items() if key.startswith("x-kubernetes-")}
    if "const" in node:
        schema["enum"] = [node["const"]]
    if "x-default" in node:
        schema["default"] = node["x-default"]
    if "items" in node:
        schema["items"] = _structural(node["items"], parts)
    if "properties" in node:
        schema[PRESERVE] = True
        schema["properties"] = {
            name: _structural(value, parts) for name, value in node["properties"].items()
        }
    elif isinstance(node.get("additionalProperties"), Mapping):
        schema["additionalProperties"] = _structural(node["additionalProperties"], parts)
    return schema


def _resolved(written: Mapping[str, Any], parts: Mapping[str, Any]) -> Manifest:
    """Follow references and drop the alternative of null; what stands nearer wins."""
    node = dict(written)
    alternatives = [item for item in node.pop("anyOf", ()) if item.get("type") != "null"]
    if len(alternatives) > 1:
        raise ValueError(f"no structural schema for alternatives: {alternatives}")
    for item in alternatives:
        node = {**_resolved(item, parts), **node}
    reference = node.pop("$ref", None)
    if reference is None:
        return node
    return {**_resolved(parts[reference.rpartition("/")[2]], parts), **node}
