"""What is registered at the API server for admission, as far as this process looks at it."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final
from urllib import parse

import msgspec

from api.kubernetes import selectors
from api.kubernetes.webhooks import webhook_configuration
from api.wire import durations

IGNORE: Final = "Ignore"
_HTTPS: Final = 443


class Target(msgspec.Struct, frozen=True):
    """Where the API server finds a webhook, and what it verifies there."""

    host: str
    port: int
    bundle: str
    """PEM."""


class Registered(msgspec.Struct, frozen=True):
    """One webhook configuration."""

    name: str
    uid: str
    version: str
    created: float
    webhooks: tuple[dict[str, Any], ...]
    note: webhook_configuration.Withdrawal | None
    answering: webhook_configuration.Answering

    def target(self) -> Target | None:
        """Return where the first webhook that can be read is to be found."""
        return next((t for one in self.webhooks if (t := _target(one)) is not None), None)

    def reviews(self, namespace: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Tell whether pods with these labels, in such a namespace, are reviewed at all."""
        # A withdrawn webhook has no rules any more; its name still says what it is asked about.
        ours = [
            one
            for one in self.webhooks
            if str(one.get("name")).endswith(webhook_configuration.OURS)
        ]
        asked = [one for one in ours if one["name"] in webhook_configuration.OF_PODS]
        return any(
            _selects(one.get("namespaceSelector"), namespace)
            and _selects(one.get("objectSelector"), labels)
            for one in (asked if ours else self.webhooks)
        )


def view(raw: Mapping[str, Any]) -> Registered:
    """Project a webhook configuration of either kind."""
    metadata = raw["metadata"]
    annotations = metadata.get("annotations") or {}
    return Registered(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        version=metadata.get("resourceVersion", ""),
        created=durations.timestamp(metadata["creationTimestamp"]),
        webhooks=tuple(raw.get("webhooks") or ()),
        note=webhook_configuration.withdrawal(annotations),
        answering=webhook_configuration.answering(annotations),
    )


def _selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    return selector is None or selectors.matches(selector, labels)


def _target(webhook: Mapping[str, Any]) -> Target | None:
    where = webhook.get("clientConfig") or {}
    try:
        bundle = base64.b64decode(where.get("caBundle") or "", validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    service = where.get("service")
    if service is not None:
        host = f"{service['name']}.{service['namespace']}.svc"
        return Target(host, service.get("port") or _HTTPS, bundle)
    url = parse.urlsplit(where.get("url", ""))
    return Target(url.hostname, url.port or _HTTPS, bundle) if url.hostname else None
