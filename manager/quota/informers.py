"""The informers of quotas and their view of pods, as every replica keeps them."""

from collections.abc import Mapping
from typing import Any

from api import resources
from api.kubernetes import core
from kube.informers import informer_set, reflector, shared_store, store
from manager.model import projections
from manager.quota import book, objects

Raw = Mapping[str, Any]


def shared(
    members: informer_set.InformerSet, resource: resources.Resource
) -> shared_store.SharedStore[Raw]:
    """Add one watch of the quotas of a group, for all who read anything of them."""
    found: shared_store.SharedStore[Raw] = shared_store.SharedStore()
    members.add(reflector.Projection(resource, dict, found.project), found)
    return found


def added(
    members: informer_set.InformerSet,
    nodes: store.Store[projections.Node],
    pods: shared_store.SharedStore[core.Pod],
    elastic: shared_store.SharedStore[Raw],
) -> book.Stores:
    """Add the informers of quotas; a group whose CRD is not installed stays empty.

    Pods and `elastic`, the ElasticQuotas of scheduling.sigs.k8s.io, are views of watches that are
    there already.
    """
    quotas: dict[resources.Resource, store.Store[objects.QuotaObject]] = {}
    for resource in resources.QUOTA_RESOURCES:
        reader = objects.QuotaReader()
        if resource is resources.ELASTIC_QUOTAS:
            found = elastic.view(reader.read)
        else:
            found = members.add(reflector.Projection(resource, dict, reader.read))
        quotas[resource] = reader.known = found
    return book.Stores(quotas, pods.view(objects.Shapes().pod), nodes)
