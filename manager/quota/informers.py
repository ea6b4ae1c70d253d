"""The informers of quotas and pods, as every replica keeps them."""

from api import resources
from api.kubernetes import core
from kube.informers import informer_set, reflector, store
from manager.model import projections
from manager.quota import book, objects


def added(members: informer_set.InformerSet, nodes: store.Store[projections.Node]) -> book.Stores:
    """Add the informers of quotas and pods; a group whose CRD is not installed stays empty."""
    shapes = objects.Shapes()
    quotas = {
        resource: members.add(reflector.Projection(resource, dict, objects.quota))
        for resource in resources.QUOTA_RESOURCES
    }
    pods = members.add(reflector.Projection(resources.PODS, core.Pod, shapes.pod))
    return book.Stores(quotas, pods, nodes)
