"""The picture that stored pods are judged by, rebuilt when a watch brings a change."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from api import resources
from api.kubernetes import core
from api.wire import base
from kube.informers import informer_set, reflector, shared_store, store
from manager.admission import plan as admission
from manager.admission import registered
from manager.model import projections

logger = logging.getLogger(__name__)

MUTATING: Final = resources.MUTATING_WEBHOOKS
VALIDATING: Final = resources.VALIDATING_WEBHOOKS


class Admissions:
    """Watches what admission decides on, and judges each pod as the watch delivers it."""

    def __init__(
        self, watched: informer_set.InformerSet, name: str, unreviewed: frozenset[str]
    ) -> None:
        chosen = f"metadata.name={name}"
        self.registered = {
            resource: watched.add(
                reflector.Projection(resource, dict, registered.view, fields=chosen)
            )
            for resource in (MUTATING, VALIDATING)
        }
        self._name = name
        self._unreviewed = unreviewed
        self.written: shared_store.SharedStore[Mapping[str, Any]] = shared_store.SharedStore()
        """Of which every capability that needs profiles takes its view."""
        watched.add(
            reflector.Projection(resources.COLOCATION_PROFILES, dict, self.written.project),
            self.written,
        )
        self.profiles: store.Store[admission.Profile] = self.written.view(_profile)
        self.namespaces = watched.add(
            reflector.Projection(
                resources.NAMESPACES, core.Namespace, lambda found: found.metadata.labels
            )
        )
        self._picture: admission.Picture | None = None
        self._stores: tuple[store.Store[Any], ...] = (
            *self.registered.values(),
            self.profiles,
            self.namespaces,
        )
        for seen in self._stores:
            seen.listen(self._changed)

    def _changed(self, _change: store.Change[Any]) -> None:
        self._picture = None

    def faults(self, pod: core.Pod) -> tuple[projections.Fault, ...]:
        """Return what is wrong with a pod; nothing while too little is known to tell."""
        if self._picture is None:
            if not all(seen.synced for seen in self._stores):
                return ()
            self._picture = self._present()
        return admission.faults(pod, self._picture)

    def _present(self) -> admission.Picture:
        return admission.Picture(
            profiles=tuple(self.profiles.values()),
            namespaces=dict(self.namespaces.items()),
            mutating=self.registered[MUTATING].get(self._name),
            validating=self.registered[VALIDATING].get(self._name),
            unreviewed=self._unreviewed,
        )


def _profile(raw: Mapping[str, Any]) -> admission.Profile | None:
    try:
        return admission.profile(raw)
    except base.ReadError as wrong:
        # Admission leaves it out as well.
        logger.warning("profile left out reason=%s", wrong)
        return None
