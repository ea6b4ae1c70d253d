"""CustomResourceDefinitions, generated from the models of the kinds."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pydantic import json_schema
from pydantic_core import core_schema

from api import names, resources
from api.koordinator import colocation, devices, explanation, migration, quota, scheduling, topology
from api.koordinator.metrics import analysis, nodemetric
from api.koordinator.settings import slo
from api.kubernetes import printer_columns as shown
from api.wire import base, field_docs

Manifest = dict[str, Any]

CATEGORY: Final = "koord"
"""``kubectl get koord`` lists the objects of every kind."""
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
    "maxProperties",
    "minProperties",
    "nullable",
    "required",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """All that makes one kind: the model of its stored version and what kubectl shows."""

    resource: resources.Resource
    model: type[base.Model]
    short: tuple[str, ...]
    status: bool = False
    columns: tuple[shown.Column, ...] = ()
    approved: str = ""
    older: tuple[tuple[str, type[base.Model]], ...] = ()
    version: str = ""

    def manifest(self) -> Manifest:
        """Return the CustomResourceDefinition, which the caller may change."""
        made: Manifest = msgspec.json.decode(_manifest_json(self))
        return made

    def made(self) -> Manifest:
        """Make the CustomResourceDefinition from the models."""
        resource = self.resource
        metadata: Manifest = {"name": resource.review_name(), "labels": dict(names.INSTALLED)}
        if self.approved:
            metadata["annotations"] = {names.ANNOTATION_API_APPROVED: self.approved}
        called: Manifest = {
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "plural": resource.plural,
            "singular": resource.kind.lower(),
            "shortNames": list(self.short),
            "categories": [CATEGORY],
        }
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


DEFINITIONS: Final = (
    Definition(
        resources.COLOCATION_PROFILES,
        colocation.ClusterColocationProfile,
        short=("ccp",),
        status=True,
        columns=shown.PROFILE,
    ),
    Definition(resources.NODE_SLOS, slo.NodeSLO, short=("nslo",), status=True, columns=shown.SLO),
    Definition(
        resources.NODE_METRICS,
        nodemetric.NodeMetric,
        short=("nmetric",),
        status=True,
        columns=shown.METRIC,
    ),
    Definition(
        resources.RESERVATIONS,
        scheduling.Reservation,
        short=("rsv",),
        status=True,
        columns=shown.RESERVATION,
    ),
    Definition(resources.DEVICES, devices.Device, short=("kdev",), columns=shown.DEVICE),
    Definition(
        resources.POD_MIGRATION_JOBS,
        migration.PodMigrationJob,
        short=("pmj",),
        status=True,
        columns=shown.MIGRATION,
    ),
    Definition(
        resources.CLUSTER_NETWORK_TOPOLOGIES,
        topology.ClusterNetworkTopology,
        short=("cnt",),
        status=True,
        columns=shown.NETWORK,
    ),
    Definition(
        resources.SCHEDULE_EXPLANATIONS,
        explanation.ScheduleExplanation,
        short=("sched-exp",),
        status=True,
        columns=shown.EXPLANATION,
    ),
    Definition(
        resources.ELASTIC_QUOTAS,
        quota.PlainElasticQuota,
        short=("eq", "eqs"),
        columns=shown.QUOTA,
        approved=_APPROVED_SIGS,
    ),
    Definition(
        resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP,
        quota.ShortElasticQuota,
        short=("qeq",),
        columns=shown.SHORT_QUOTA,
    ),
    Definition(
        resources.ELASTIC_QUOTAS_OF_SHORT_GROUP,
        quota.ShortElasticQuota,
        short=("keq",),
        columns=shown.SHORT_QUOTA,
    ),
    Definition(
        resources.POD_GROUPS,
        scheduling.PodGroup,
        short=("pg", "pgs"),
        columns=shown.GROUP,
        approved=_APPROVED_SIGS,
    ),
    Definition(
        resources.ELASTIC_QUOTA_PROFILES,
        quota.ElasticQuotaProfile,
        short=("eqp",),
        status=True,
        columns=shown.QUOTA_PROFILE,
    ),
    Definition(
        resources.RECOMMENDATIONS,
        analysis.Recommendation,
        short=("recom",),
        status=True,
        columns=shown.RECOMMENDATION,
    ),
    Definition(
        resources.NODE_RESOURCE_TOPOLOGIES,
        topology.NodeResourceTopology,
        short=("node-res-topo",),
        columns=shown.TOPOLOGY,
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


@functools.cache
def _manifest_json(definition: Definition) -> bytes:
    """Return a manifest as JSON: reading that again takes a hundredth of making it."""
    return msgspec.json.encode(definition.made())


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
