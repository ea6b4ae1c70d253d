"""Which permissions each page needs. Pure."""

from collections.abc import Mapping
from typing import Final

from api import names, resources
from manager.console.access import questions

Question = questions.Question

NODES: Final = Question(resources.NODES)
METRICS: Final = Question(resources.NODE_METRICS)
PODS: Final = Question(resources.PODS)
DEVICES: Final = Question(resources.DEVICES)
TOPOLOGIES: Final = Question(resources.NODE_RESOURCE_TOPOLOGIES)
NETWORK: Final = Question(resources.CLUSTER_NETWORK_TOPOLOGIES)
RESERVATIONS: Final = Question(resources.RESERVATIONS)
MIGRATIONS: Final = Question(resources.POD_MIGRATION_JOBS)

PAGES: Final[Mapping[str, tuple[Question, ...]]] = {
    "nodes": (NODES,),
    "pending": (),
    "quotas": (),
    "devices": (DEVICES,),
    "gangs": (),
    "reservations": (RESERVATIONS,),
    "migrations": (MIGRATIONS,),
    "scorecard": (NODES, METRICS, PODS),
}
"""What a page shows nothing without. The others show what lies in namespaces that may be listed."""


def of_lending(namespace: str, name: str) -> tuple[Question, ...]:
    """Return what goes into what a node lends; the two name the cluster's configuration map."""
    config = Question(resources.CONFIG_MAPS, namespace, name)
    return (NODES, METRICS, PODS, config, TOPOLOGIES, DEVICES)


def of_days(namespace: str) -> Question:
    """Return what it takes to see what agents did by day, as the leader keeps it."""
    return Question(resources.CONFIG_MAPS, namespace, names.CONFIG_MAP_REPORT)
