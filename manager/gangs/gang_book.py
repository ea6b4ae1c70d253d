"""Gangs as the informers know them: PodGroups and pods by gang. Pure."""

from collections.abc import Iterable, Iterator

from kube.informers import store
from manager.gangs import objects


class GangBook:
    """The pods and PodGroups of all gangs, by the id of the gang."""

    def __init__(
        self,
        pods: store.Store[objects.GangPod],
        groups: store.Store[objects.Group],
        native: Iterable[store.Store[objects.Group]] = (),
    ) -> None:
        """Take the stores of pods, of PodGroups that are written, and of those of Kubernetes."""
        self.pods = pods
        self.written = groups
        self.groups = (groups, *native)
        self._members = store.Index(pods, lambda one: (one.gang_id,))
        self._named = [store.Index(one, lambda group: (group.gang_id,)) for one in self.groups]

    def ids(self) -> Iterator[str]:
        """Yield the id of every gang, once for each of its objects."""
        for pod in self.pods:
            yield pod.gang_id
        for seen in self.groups:
            for group in seen:
                yield group.gang_id

    def group(self, gang_id: str) -> objects.Group | None:
        """Return the PodGroup of a gang."""
        for seen, index in zip(self.groups, self._named, strict=True):
            for key in index.keys(gang_id):
                return seen.get(key)
        return None

    def observed(self, gang_id: str) -> objects.Observed | None:
        """Return a gang as a whole; None where nothing readable declares it.

        A PodGroup says what the gang needs, else the oldest pod that declares it in full.
        """
        found = (self.pods.get(key) for key in self._members.keys(gang_id))
        members = sorted(filter(None, found), key=lambda one: (one.created, one.uid))
        group = self.group(gang_id)
        if group is not None:
            gang = group.gang
        else:
            declared = [one.declared for one in members if one.declared is not None]
            gang = next((one for one in declared if one.initialised), None)
        return None if gang is None else objects.Observed(gang, tuple(members), group)
