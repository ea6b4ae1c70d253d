"""The default service account of every namespace."""

from api import resources
from simulator import objects

NAME = "default"


class Accounts:
    """Gives each new namespace its default service account, as a controller of a cluster does."""

    def __init__(self, store: objects.Objects) -> None:
        self._store = store
        for namespace in store.list(objects.NAMESPACES).items:
            self._provide(namespace["metadata"]["name"])
        store.subscribe(self._changed, objects.NAMESPACES)

    def _changed(self, event: objects.Event) -> None:
        if event.type == "ADDED":
            self._provide(event.key.name)

    def _provide(self, namespace: str) -> None:
        if self._store.find(resources.SERVICE_ACCOUNTS, NAME, namespace) is None:
            body = {"metadata": {"name": NAME, "namespace": namespace}}
            self._store.create(resources.SERVICE_ACCOUNTS, body)
