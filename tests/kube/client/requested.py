"""What tests ask of the client, and a credential that they renew."""

from collections.abc import Callable
from typing import Any

from kube.client import client

POD = "/api/v1/namespaces/shop/pods/a"
PODS = "/api/v1/pods"


Act = Callable[[client.Client], Any]
BODY = {"metadata": {"name": "a", "namespace": "shop"}}


class Renewing:
    """A credential that changes only when it is renewed."""

    def __init__(self) -> None:
        self.renewed = 0

    async def authorization(self) -> str:
        return f"Bearer {self.renewed}"

    async def renew(self) -> None:
        self.renewed += 1
