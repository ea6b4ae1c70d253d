"""The informers of quotas and their view of pods, as every replica keeps them."""

from api import resources
from api.kubernetes import core
from kube.informers import informer_set, reflector, shared_store, store
from manager.model import projections
from manager.quota import book, objects


def added(
    members: informer_set.InformerSet,
    nodes: store.Store[projections.Node],
    pods: shared_store.SharedStore[core.Pod],
) -> book.Stores:
    """Add the informers of quotas; a group whose CRD is not installed stays empty.

    Pods are a view of a watch that is there already.
    """
    shapes = objects.Shapes()
    quotas = {resource: _quotas(members, resource) for resource in resources.QUOTA_RESOURCES}
    return book.Stores(quotas, pods.view(shapes.pod), nodes)


def _quotas(
    members: informer_set.InformerSet, resource: resources.Resource
) -> store.Store[objects.QuotaObject]:
    reader = objects.QuotaReader()
    found = members.add(reflector.Projection(resource, dict, reader.read))
    reader.known = found
    return found
