"""What `kubectl get` prints."""

from typing import Any

import pytest

from api import resources
from simulator.apiserver.registry import jsonpath, kinds
from simulator.apiserver.tables import printer_columns, tables

NOW = 1_700_000_000.0
CREATED = "2023-11-14T22:12:20Z"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert printer_columns.duration(seconds) == text


def cells(resource: resources.Resource, item: dict[str, Any]) -> dict[str, Any]:
    kind = next(k for k in kinds.BUILT_IN if k.resource == resource)
    item = {**item, "metadata": {"name": "x", "creationTimestamp": CREATED, **item["metadata"]}}
    shown = tables.table(kind, [item], NOW, metadata={})
    names = [column["name"] for column in shown["columnDefinitions"]]
    assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    return dict(zip(names, shown["rows"][0]["cells"], strict=True))


@pytest.mark.parametrize(
    ("resource", "item", "expected"),
    [
        pytest.param(
            resources.PODS,
            {
                "metadata": {},
                "spec": {"containers": [{}, {}], "nodeName": "n"},
                "status": {
                    "phase": "Running",
                    "podIP": "10.0.0.1",
                    "containerStatuses": [{"ready": True, "restartCount": 2}],
                },
            },
            {"Ready": "1/2", "Status": "Running", "Restarts": "2", "Node": "n", "Age": "60s"},
            id="running pod",
        ),
        pytest.param(
            resources.PODS,
            {"metadata": {"deletionTimestamp": CREATED}, "spec": {}, "status": {}},
            {"Status": "Terminating", "Node": "<none>"},
            id="terminating pod",
        ),
        pytest.param(
            resources.PODS,
            {
                "metadata": {},
                "spec": {},
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
                },
            },
            {"Status": "SchedulingGated"},
            id="gated pod",
        ),
        pytest.param(
            resources.NODES,
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": True},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
            {"Status": "Ready,SchedulingDisabled", "Roles": "worker"},
            id="node",
        ),
        pytest.param(
            resources.DEPLOYMENTS,
            {"metadata": {}, "spec": {"replicas": 3}, "status": {"readyReplicas": 1}},
            {"Ready": "1/3", "Up-to-date": 0},
            id="deployment",
        ),
        pytest.param(
            resources.JOBS,
            {
                "metadata": {},
                "spec": {"completions": 2},
                "status": {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]},
            },
            {"Status": "Complete", "Completions": "2/2"},
            id="job",
        ),
        pytest.param(
            resources.CORE_EVENTS,
            {
                "metadata": {},
                "involvedObject": {"kind": "Pod", "name": "p"},
                "message": "why\n",
                "lastTimestamp": CREATED,
            },
            {"Last Seen": "60s", "Object": "pod/p", "Message": "why"},
            id="event",
        ),
        pytest.param(
            resources.SERVICES,
            {"metadata": {}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
            {"Port(s)": "80/TCP", "Selector": "a=b"},
            id="service",
        ),
    ],
)
def test_cells(
    resource: resources.Resource, item: dict[str, Any], expected: dict[str, Any]
) -> None:
    shown = cells(resource, item)
    assert {name: shown[name] for name in expected} == expected


def test_every_built_in_kind_has_a_table() -> None:
    for kind in kinds.BUILT_IN:
        shown = tables.table(kind, [{"metadata": {"name": "x"}}], NOW, metadata={})
        assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", [2]),
        (".metadata.labels.a\\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[*].type", ["Ready", "Other"]),
        (".status.conditions[1].type", ["Other"]),
        (".status.conditions[7].type", []),
        (".status.nothing.below", []),
    ],
)
def test_paths(path: str, expected: list[Any]) -> None:
    value = {
        "spec": {"size": 2},
        "metadata": {"labels": {"a.b/c": "x"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}]},
    }
    assert jsonpath.find(value, path) == expected


def test_a_path_beyond_this_dialect_is_refused() -> None:
    with pytest.raises(jsonpath.PathError, match="cannot read"):
        jsonpath.find({}, ".a[?(@.b > 3)]")
