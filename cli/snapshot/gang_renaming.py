"""Replaces the names of gangs and PodGroups in a snapshot; members still belong together. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from api import names
from cli.snapshot import substitutes

Raw = dict[str, Any]

KIND: Final = "gang"
_KEPT: Final = (
    names.ANNOTATION_GANG_MIN_AVAILABLE,
    names.ANNOTATION_GANG_TOTAL,
    names.ANNOTATION_GANG_MODE,
    names.ANNOTATION_GANG_WAITING_TIME,
    names.ANNOTATION_GANG_MATCH_POLICY,
    names.ANNOTATION_POD_GROUP_MATCH_POLICY,
    names.ANNOTATION_GANG_NETWORK_TOPOLOGY,
    names.ANNOTATION_GANG_NETWORK_INDEX,
)
"""Annotations that hold numbers, words of the API and layers of the network."""


def annotations(written: Mapping[str, str], given: substitutes.Names) -> Raw:
    """Keep how a gang is declared; a list of gangs that cannot be read is left out."""
    found: Raw = {key: written[key] for key in _KEPT if key in written}
    if names.ANNOTATION_GANG_NAME in written:
        found[names.ANNOTATION_GANG_NAME] = given.of(KIND, written[names.ANNOTATION_GANG_NAME])
    group = _group(written.get(names.ANNOTATION_GANG_GROUPS, ""), given)
    return found | ({names.ANNOTATION_GANG_GROUPS: json.dumps(group)} if group else {})


def _group(listed: str, given: substitutes.Names) -> list[str]:
    try:
        found = json.loads(listed)
    except (ValueError, RecursionError):
        return []
    if not isinstance(found, list):
        return []
    return [_identity(one, given) for one in found if isinstance(one, str)]


def _identity(written: str, given: substitutes.Names) -> str:
    namespace, slash, name = written.partition("/")
    if not slash:
        return given.of(KIND, written)
    return f"{given.of('namespace', namespace)}/{given.of(KIND, name)}"


def pod_group(one: Raw) -> None:
    """Leave out who occupies a PodGroup and what its conditions say."""
    if isinstance(one.get("status"), Mapping):
        left_out = {"conditions", "occupiedBy"}
        one["status"] = {k: v for k, v in one["status"].items() if k not in left_out}


def network(one: Raw) -> None:
    """Leave out the status of a ClusterNetworkTopology, which repeats the labels of nodes."""
    one.pop("status", None)
