"""The informers of quotas and pods, as every replica keeps them."""

from api import resources
from api.kubernetes import core
from kube.informers import informer_set, pod_informer, reflector, store
from manager.model import projections
from manager.quota import book, objects


def added(members: informer_set.InformerSet, nodes: store.Store[projections.Node]) -> book.Stores:
    """Add the informers of quotas and pods; a group whose CRD is not installed stays empty."""
    shapes = objects.Shapes()
    quotas = {resource: _quotas(members, resource) for resource in resources.QUOTA_RESOURCES}
    pods = members.add(pod_informer.projection(core.Pod, shapes.pod))
    return book.Stores(quotas, pods, nodes)


def _quotas(
    members: informer_set.InformerSet, resource: resources.Resource
) -> store.Store[objects.QuotaObject]:
    reader = objects.QuotaReader()
    found = members.add(reflector.Projection(resource, dict, reader.read))
    reader.known = found
    return found
