"""The custom resource definitions say what the models say, in the form the API server demands."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from api import names, resources
from api.kubernetes import crds
from tests import builders

DEPLOYED = pathlib.Path(__file__).parents[3] / "deploy" / "crds"
DOCUMENTS = crds.documents()
SCHEMAS = [
    pytest.param(version["schema"]["openAPIV3Schema"], id=f"{name}-{version['name']}")
    for name, document in DOCUMENTS.items()
    for version in document["spec"]["versions"]
]
ALLOWED = {
    "description", "type", "format", "enum", "pattern", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "nullable", "required",
    "default", "properties", "items", "additionalProperties", "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-map-type",
}  # fmt: skip


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


def for_validator(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema in the words of JSON Schema."""
    known = {key: value for key, value in schema.items() if not key.startswith("x-")}
    known.pop("nullable", None)
    known.pop("format", None)
    if schema.get("x-kubernetes-int-or-string"):
        known["type"] = ["integer", "string"]
    if schema.get("nullable"):
        known["type"] = [known["type"], "null"]
    if "properties" in known:
        known["properties"] = {
            name: for_validator(inner) for name, inner in known["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(known.get(key), dict):
            known[key] = for_validator(known[key])
    return known


def schema_for(raw: dict[str, Any]) -> dict[str, Any] | None:
    group, _, version = raw["apiVersion"].rpartition("/")
    for document in DOCUMENTS.values():
        spec = document["spec"]
        if (spec["group"], spec["names"]["kind"]) == (group, raw["kind"]):
            found = next(item for item in spec["versions"] if item["name"] == version)
            return for_validator(found["schema"]["openAPIV3Schema"])
    return None


def problems(raw: dict[str, Any]) -> list[str]:
    schema = schema_for(raw)
    assert schema is not None
    found = jsonschema.Draft202012Validator(schema).iter_errors(raw)
    return [".".join(str(part) for part in error.path) for error in found]


def test_what_is_deployed_is_what_the_models_say():
    deployed = {
        path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in DEPLOYED.glob("*.yaml")
    }
    assert deployed == DOCUMENTS, "run `koord render crds --to deploy/crds`"


def test_every_custom_resource_is_defined():
    defined = {
        (item["spec"]["group"], item["spec"]["names"]["plural"]) for item in crds.definitions()
    }
    assert defined == {(item.group, item.plural) for item in resources.CUSTOM}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_are_structural(schema):
    for path, node in nodes(schema):
        assert set(node) <= ALLOWED, path
        free = node.get("x-kubernetes-preserve-unknown-fields") is True
        either = node.get("x-kubernetes-int-or-string") is True
        assert "type" in node or either or free, path
        assert not ("type" in node and either), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if node.get("type") == "array":
            assert "items" in node, path
        if node.get("type") == "integer":
            assert node.get("format") in {"int32", "int64"}, path
        if "pattern" in node:
            assert node.get("type") == "string" or either, path
            assert re.compile(node["pattern"]).pattern.startswith("^"), path
            assert node["pattern"].isascii(), path


@pytest.mark.parametrize("schema", SCHEMAS)
def test_unknown_fields_survive_on_every_level(schema):
    for path, node in nodes(schema):
        if path == ".metadata":
            continue
        if node.get("type") == "object" and "additionalProperties" not in node:
            assert node["x-kubernetes-preserve-unknown-fields"] is True, path


@pytest.mark.parametrize("schema", SCHEMAS)
def test_everything_is_described(schema):
    for path, node in nodes(schema):
        field = path.rpartition(".")[2]
        if path in {".metadata", ".apiVersion", ".kind"} or field.endswith("[]"):
            continue
        assert node.get("description", "").endswith("."), path


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_cost_of_rules_is_bounded(schema):
    def walk(node: dict[str, Any], unbounded: bool, path: str) -> None:
        assert not (unbounded and "x-kubernetes-validations" in node), path
        for name, inner in node.get("properties", {}).items():
            walk(inner, unbounded, f"{path}.{name}")
        if isinstance(node.get("items"), dict):
            walk(node["items"], unbounded or "maxItems" not in node, f"{path}[]")
        if isinstance(node.get("additionalProperties"), dict):
            walk(node["additionalProperties"], True, f"{path}{{}}")

    walk(schema, False, "")


def test_only_wanted_defaults_are_stored():
    found = {
        f"{document['spec']['names']['kind']}{path}": node["default"]
        for document in DOCUMENTS.values()
        for path, node in nodes(document["spec"]["versions"][-1]["schema"]["openAPIV3Schema"])
        if "default" in node and "networkQOS" not in path
    }
    assert found == {
        "Reservation.spec.allocateOnce": True,
        "Reservation.spec.preAllocationPolicy.mode": "Default",
        "Reservation.status": {},
        "Reservation.status.phase": "Pending",
        "ScheduleExplanation.spec.ttl": "24h",
    }


def test_network_bandwidth_has_stored_defaults():
    schema = DOCUMENTS["slo.koordinator.sh_nodeslos.yaml"]["spec"]["versions"][0]["schema"]
    strategy = schema["openAPIV3Schema"]["properties"]["spec"]["properties"]["resourceQOSStrategy"]
    fields = strategy["properties"]["lsClass"]["properties"]["networkQOS"]["properties"]
    assert {name: field.get("default") for name, field in fields.items()} == {
        "enable": None,
        "ingressRequest": 0,
        "ingressLimit": 100,
        "egressRequest": 0,
        "egressLimit": 100,
    }


def test_status_is_a_subresource_where_published():
    with_status = {
        document["spec"]["names"]["kind"]
        for document in DOCUMENTS.values()
        if "subresources" in document["spec"]["versions"][-1]
    }
    assert with_status == {
        "Recommendation", "ClusterColocationProfile", "ClusterNetworkTopology", "PodMigrationJob",
        "Reservation", "ScheduleExplanation", "NodeMetric", "NodeSLO",
        # Its status is empty in the reference, so that nobody writes it through the object.
        "ElasticQuotaProfile",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("scheduling.koordinator.sh_podmigrationjobs", "pmj"),
        ("scheduling.koordinator.sh_scheduleexplanations", "sched-exp"),
        ("quota.koordinator.sh_elasticquotaprofiles", "eqp"),
        ("analysis.koordinator.sh_recommendations", "recom"),
        ("topology.node.k8s.io_noderesourcetopologies", "node-res-topo"),
    ],
)
def test_short_names(name, short):
    assert DOCUMENTS[f"{name}.yaml"]["spec"]["names"]["shortNames"] == [short]


def test_every_kind_has_a_short_name_of_its_own_and_is_listed_by_kubectl_get_koord():
    called = [document["spec"]["names"] for document in DOCUMENTS.values()]
    short = [name for names_ in called for name in names_["shortNames"]]
    assert all(names_["shortNames"] for names_ in called)
    assert len(short) == len(set(short))
    assert not {*short} & {"po", "no", "cm", "svc", "deploy", "rs", "ds", "pc", "pdb", "quota"}
    assert all(names_["categories"] == ["koord"] for names_ in called)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (
            "scheduling.koordinator.sh_reservations",
            (
                "Phase .status.phase, Age .metadata.creationTimestamp, Node .status.nodeName, "
                "TTL .spec.ttl, Expires .spec.expires, "
                "CPU .status.allocatable.cpu, CPU used .status.allocated.cpu, "
                "Memory .status.allocatable.memory, Memory used .status.allocated.memory, "
                'Reason .status.conditions[?(@.status=="False")].reason, '
                "Owner .status.currentOwners[0].name, Policy .spec.allocatePolicy, "
                "Once .spec.allocateOnce, "
                'Message .status.conditions[?(@.status=="False")].message'
            ),
        ),
        (
            "scheduling.koordinator.sh_podmigrationjobs",
            (
                "Phase .status.phase, Status .status.status, Age .metadata.creationTimestamp, "
                "Node .status.nodeName, Reservation .spec.reservationOptions.reservationRef.name, "
                "PodNamespace .spec.podRef.namespace, Pod .spec.podRef.name, "
                "NewPod .status.podRef.name, TTL .spec.ttl"
            ),
        ),
        (
            "analysis.koordinator.sh_recommendations",
            (
                "Age .metadata.creationTimestamp, Type .spec.target.type, "
                "Kind .spec.target.workload.kind, Name .spec.target.workload.name, "
                "LastUpdateTime .status.updateTime, "
                'Ready .status.conditions[?(@.type=="Ready")].status, '
                'Message .status.conditions[?(@.type=="Ready")].message'
            ),
        ),
        (
            "scheduling.sigs.k8s.io_elasticquotas",
            (
                "CPU .status.used.cpu, CPU min .spec.min.cpu, CPU max .spec.max.cpu, "
                "Memory .status.used.memory, Memory min .spec.min.memory, "
                "Memory max .spec.max.memory, "
                r"Runtime .metadata.annotations.quota\.scheduling\.koordinator\.sh/runtime, "
                r"Parent .metadata.labels.quota\.scheduling\.koordinator\.sh/parent, "
                "Age .metadata.creationTimestamp"
            ),
        ),
        *(
            (
                f"{group}_elasticquotas",
                (
                    "CPU .status.used.cpu, CPU runtime .status.allocatedQuota.cpu, "
                    "CPU min .spec.min.cpu, CPU max .spec.max.cpu, "
                    "Memory .status.used.memory, Memory runtime .status.allocatedQuota.memory, "
                    "Memory min .spec.min.memory, Memory max .spec.max.memory, "
                    "CPU hard .spec.hard.cpu, Memory hard .spec.hard.memory, "
                    "Priority .spec.priority, "
                    r"Parent .metadata.labels.quota\.scheduling\.koordinator\.sh/parent, "
                    "Age .metadata.creationTimestamp"
                ),
            )
            for group in ("quota.koordinator.sh", "koordinator.sh")
        ),
    ],
)
def test_printer_columns(name, columns):
    (version,) = DOCUMENTS[f"{name}.yaml"]["spec"]["versions"]
    printed = [f"{item['name']} {item['jsonPath']}" for item in version["additionalPrinterColumns"]]
    assert ", ".join(printed) == columns


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_kind_shows_more_than_its_age_and_shows_it_truly(name):
    """Every column of every version names a field that the schema of this version has."""
    for version in DOCUMENTS[name]["spec"]["versions"]:
        columns = version["additionalPrinterColumns"]
        assert "Age" in [column["name"] for column in columns]
        assert len(columns) > 2
        for column in columns:
            if column["jsonPath"].startswith(".metadata."):
                continue
            schema = version["schema"]["openAPIV3Schema"]
            # A filter selects among items and names no field of its own.
            path = re.sub(r"\[\?\(.*?\)\]", "[0]", column["jsonPath"])
            for step in path.removeprefix(".").split("."):
                word, _, index = step.partition("[")
                schema = schema.get("properties", {}).get(word) or schema["additionalProperties"]
                schema = schema["items"] if index else schema
            wanted = {"date": "string"}.get(column["type"], column["type"])
            assert schema.get("type", wanted) == wanted, column


def test_protected_groups_are_approved():
    for document in DOCUMENTS.values():
        approval = document["metadata"].get("annotations", {}).get(names.ANNOTATION_API_APPROVED)
        assert bool(approval) is document["spec"]["group"].endswith(".k8s.io")


def test_node_topology_is_stored_in_its_second_version():
    versions = DOCUMENTS["topology.node.k8s.io_noderesourcetopologies.yaml"]["spec"]["versions"]
    assert [(item["name"], item["served"], item["storage"]) for item in versions] == [
        ("v1alpha1", True, False),
        ("v1alpha2", True, True),
    ]
    first, second = (item["schema"]["openAPIV3Schema"] for item in versions)
    assert (first["required"], second["required"]) == (["topologyPolicies", "zones"], ["zones"])
    assert "attributes" not in first["properties"]


def test_definitions_fit_into_an_annotation():
    for name, document in DOCUMENTS.items():
        assert len(json.dumps(document)) < 200_000, name


def test_documented_manifests_are_valid(manifests):
    checked = 0
    for name, raw in manifests.items():
        if schema_for(raw) is not None:
            assert problems(raw) == [], name
            checked += 1
    assert checked == 19


def reservation(**changes: Any) -> dict[str, Any]:
    return builders.a_reservation(**changes)


def slo(**spec: Any) -> dict[str, Any]:
    return builders.an_object(resources.NODE_SLOS, "n", spec=spec)


REFUSED = [
    (reservation(owners=[]), "spec.owners"),
    (reservation(owners=[{}]), "spec.owners.0"),
    (reservation(ttl="ten minutes"), "spec.ttl"),
    (reservation(ttl="-5m"), "spec.ttl"),
    (reservation(allocatePolicy="Other"), "spec.allocatePolicy"),
    (slo(resourceUsedThresholdWithBE={"cpuSuppressThresholdPercent": 101}),
     "spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent"),
    (slo(cpuBurstStrategy={"policy": "x"}), "spec.cpuBurstStrategy.policy"),
    (slo(cpuBurstStrategy={"cpuBurstPercent": 10001}), "spec.cpuBurstStrategy.cpuBurstPercent"),
    (slo(systemStrategy={"totalNetworkBandwidth": "-1"}),
     "spec.systemStrategy.totalNetworkBandwidth"),
    (builders.a_profile(probability="often"), "spec.probability"),
    (builders.a_profile(qosClass="XX"), "spec.qosClass"),
    (builders.a_quota(minimum={"cpu": "x"}), "spec.min.cpu"),
    (builders.an_object(resources.RECOMMENDATIONS, "r", "d", spec={}), "spec"),
    (builders.an_object(resources.ELASTIC_QUOTA_PROFILES, "p", "d",
                        spec={"quotaName": "q", "nodeSelector": {}, "resourceRatio": "1.5"}),
     "spec.resourceRatio"),
    (builders.an_object(resources.NODE_METRICS, "n",
                        spec={"metricCollectPolicy": {"nodeMemoryCollectPolicy": "all"}}),
     "spec.metricCollectPolicy.nodeMemoryCollectPolicy"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "field"), REFUSED, ids=[field for _, field in REFUSED])
def test_bad_objects_are_refused_by_schema(raw, field):
    assert problems(raw) == [field]


def rules(name: str) -> list[str]:
    schema = DOCUMENTS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return [
        f"{path}: {rule['rule']}"
        for path, node in nodes(schema)
        for rule in node.get("x-kubernetes-validations", ())
    ]


def test_rules_that_a_schema_cannot_express():
    found = rules("scheduling.koordinator.sh_reservations.yaml")
    assert ".spec: !(has(self.ttl) && has(self.expires))" in found
    assert ".spec: !has(self.allocationPolicy)" in found
    assert rules("analysis.koordinator.sh_recommendations.yaml")[:2] == [
        ".spec.target: self.type != 'workload' || has(self.workload)",
        ".spec.target: self.type != 'podSelector' || has(self.podSelector)",
    ]
