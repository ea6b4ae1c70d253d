"""The default service account of every namespace."""

from api import resources
from simulator.apiserver.storage import object_store

NAME = "default"


class Accounts:
    """Gives each new namespace its default service account, as a controller of a cluster does."""

    def __init__(self, store: object_store.Objects) -> None:
        self._store = store
        for namespace in store.list(object_store.NAMESPACES).items:
            self._provide(namespace["metadata"]["name"])
        store.subscribe(self._changed, object_store.NAMESPACES)

    def _changed(self, event: object_store.Event) -> None:
        if event.type == "ADDED":
            self._provide(event.key.name)

    def _provide(self, namespace: str) -> None:
        if self._store.find(resources.SERVICE_ACCOUNTS, NAME, namespace) is None:
            body = {"metadata": {"name": NAME, "namespace": namespace}}
            self._store.create(resources.SERVICE_ACCOUNTS, body)
