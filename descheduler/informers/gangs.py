"""The quorum of gangs that a PodGroup declares, of either API group.

Of a gang that pods declare by themselves every member counts.
"""

from collections.abc import Callable, Mapping
from typing import Any

from api import resources
from descheduler.model import object_projection, objects
from domain.gangs import pod_groups
from kube.informers import informer_set, reflector, store

Read = Callable[[Mapping[str, Any]], pod_groups.PodGroup]


class Gangs:
    """Stores of PodGroups; the native ones of two versions are the same objects."""

    def __init__(self, members: informer_set.InformerSet) -> None:
        self._stores = (
            _add(members, resources.POD_GROUPS, pod_groups.read),
            *(
                _add(members, resource, pod_groups.read_native)
                for resource in resources.NATIVE_POD_GROUPS
            ),
        )

    def by_key(self) -> Mapping[str, objects.Gang]:
        """Return the gangs as they are now, by the key that pods have."""
        return {gang.key: gang for one in reversed(self._stores) for gang in one}


def _add(
    members: informer_set.InformerSet, resource: resources.Resource, read: Read
) -> store.Store[objects.Gang]:
    def project(raw: dict[str, Any]) -> objects.Gang | None:
        return object_projection.gang(read(raw))

    return members.add(reflector.Projection(resource, dict, project, optional=True))
