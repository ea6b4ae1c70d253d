"""Reconcile the serving certificate and the webhook configurations, in every replica alike."""

import asyncio
import base64
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from certs import issue, renewal, rotation
from certs import store as files
from kube.client import client as clients
from kube.client import errors
from kube.informers import informer_set, reflector
from kube.informers import store as stores
from process.runtime import clock as clocks
from process.runtime import supervise
from webhook import gates
from webhook import settings as webhook_settings
from webhook.registration import configurations

logger = logging.getLogger(__name__)

LEAF = "webhook"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
RETRY_SECONDS = 2.0
PAUSE_SECONDS = 1.0
MANAGER = "koord-webhook"
OBJECTS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)

Answering = Callable[[], webhook_configuration.Answering]
"""Returns how the webhook answers at present."""


class Installer:
    """Issues and renews the certificate in a Secret, and tells the API server whom to call."""

    def __init__(
        self,
        client: clients.Client,
        clock: clocks.Clock,
        namespace: str,
        certificates: webhook_settings.CertificateSettings,
        options: webhook_settings.RegistrationSettings,
    ) -> None:
        self.answering: Answering = lambda: webhook_configuration.Answering(
            gates=tuple(sorted(gates.ON))
        )
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._certificates = certificates
        self._registration = options
        self._woken = asyncio.Event()
        names = certificates.names
        self._subject = issue.Subject(
            LEAF,
            dns=tuple(name for name in names if not _is_address(name)),
            ips=tuple(name for name in names if _is_address(name)),
        )
        self._policy = rotation.Policy()
        self.bundle = b""
        self.problem: str | None = "the serving certificate is not issued yet"

    async def first(self) -> None:
        """Wait until there is a pair to serve; the API server may still be starting."""
        while True:
            try:
                await self.certificate()
            except errors.KubeError as error:
                self.problem = f"the Secret with the certificate is out of reach: {error}"
                logger.warning("certificate is not there yet reason=%s", error)
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return

    def watch(self, watched: informer_set.InformerSet) -> None:
        """Look at once when the registration changes, or how reviews are answered."""
        if not self._registration.enabled:
            return
        chosen = f"metadata.name={self._registration.name}"
        for resource in OBJECTS:
            seen = watched.add(reflector.Projection(resource, dict, _essence, fields=chosen))
            seen.listen(self._changed)

    def _changed(self, _change: stores.Change[Any]) -> None:
        self.wake()

    def wake(self) -> None:
        """Look now rather than at the next time."""
        self._woken.set()

    async def run(self, url: str) -> None:
        """Look again and again; `url` is called where the settings say `self`."""
        if self._registration.url == "self":
            self._registration = self._registration.model_copy(update={"url": url})
        while True:
            self._woken.clear()
            try:
                await self.certificate()
                if self._registration.enabled:
                    await self.register()
                self.problem = None
            except (errors.KubeError, OSError) as error:
                self.problem = f"certificate or registration could not be kept: {error}"
                logger.warning("looking again soon reason=%s", error)
                await self._clock.sleep(RETRY_SECONDS)
            else:
                await self._next_look()

    async def _next_look(self) -> None:
        # A client that writes the same objects all the time is answered at this pace.
        await self._clock.sleep(PAUSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with supervise.deadline(self._clock, self._certificates.look_seconds):
                await self._woken.wait()

    async def certificate(self) -> None:
        """Do what is due to the Secret and write the served pair to the folder."""
        if self._certificates.authority_file is not None:
            self.bundle = self._certificates.authority_file.read_bytes()
            return
        while True:
            found, present = await self._read()
            keep, done = renewal.advance(present, (self._subject,), self._clock.now(), self._policy)
            if not done or await self._write(found, keep):
                break
            logger.info("another replica was faster, reading the Secret again")
        for sentence in done:
            logger.info("certificate changed reason=%s", sentence)
        # Only the served pair leaves the Secret: the keys of authorities stay in the API server.
        pair, folder = keep.leaves[LEAF], self._certificates.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write(folder / KEY_FILE, pair.key)
        files.write(folder / CERTIFICATE_FILE, pair.certificate)
        self.bundle = keep.bundle

    async def register(self) -> None:
        """Write the two configuration objects where they differ from what they should be."""
        answering = self.answering()
        for resource in OBJECTS:
            wanted = configurations.document(
                resource.kind, self._registration, self._namespace, self.bundle, answering.gates
            )
            note = {names.ANNOTATION_ADMISSION: webhook_configuration.text(answering)}
            wanted["metadata"] = {**wanted["metadata"], "annotations": note}
            await self._register(resource, wanted)

    async def _register(self, resource: resources.Resource, wanted: dict[str, Any]) -> None:
        name = self._registration.name
        present = await self._present(resource, name)
        metadata = (present or {}).get("metadata") or {}
        withdrawn = webhook_configuration.withdrawal(metadata.get("annotations") or {})
        if withdrawn is not None and withdrawn.by_hand:
            logger.debug("withdrawn by hand, left alone kind=%s", resource.kind)
            return
        if withdrawn is not None and not withdrawn.holds(self._clock.now()):
            metadata = await self._end(resource, metadata)
        elif withdrawn is not None:
            wanted = configurations.without_rules(wanted)
        if present is not None and _is_there(wanted, present):
            return
        if metadata:
            # A withdrawal in between is not overruled.
            version = metadata["resourceVersion"]
            wanted["metadata"] = {**wanted["metadata"], "resourceVersion": version}
        await self._client.patch(
            resource,
            name,
            wanted,
            kind=clients.Patch.APPLY,
            field_manager=MANAGER,
            force=True,
        )
        logger.info("registered kind=%s name=%s", resource.kind, name)

    async def _end(
        self, resource: resources.Resource, metadata: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Take away the note of a withdrawal that is no longer renewed."""
        logger.warning("withdrawal has run out, restoring kind=%s", resource.kind)
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {names.ANNOTATION_WITHDRAWN: None},
        }
        body = {"metadata": change}
        answer = await self._client.patch(
            resource, self._registration.name, body, field_manager=MANAGER
        )
        return dict(answer["metadata"])

    async def _present(self, resource: resources.Resource, name: str) -> dict[str, Any] | None:
        try:
            return await self._client.get(resource, name)
        except errors.NotFound:
            return None

    async def _read(self) -> tuple[dict[str, Any] | None, renewal.Keep]:
        try:
            found = await self._client.get(
                resources.SECRETS, self._certificates.secret, self._namespace
            )
        except errors.NotFound:
            return None, renewal.Keep()
        data = {name: base64.b64decode(text) for name, text in (found.get("data") or {}).items()}
        try:
            return found, renewal.decode(data)
        except issue.CertificateError as wrong:
            # Nothing in it can be served, so nothing is lost by starting over.
            logger.error("the Secret is unreadable, issuing anew reason=%s", wrong)
            return found, renewal.Keep()

    async def _write(self, found: dict[str, Any] | None, keep: renewal.Keep) -> bool:
        """Return whether the write won against other replicas."""
        metadata: dict[str, Any] = {
            "name": self._certificates.secret,
            "namespace": self._namespace,
        }
        if found is not None:
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "data": {
                name: base64.b64encode(content).decode()
                for name, content in renewal.encode(keep).items()
            },
        }
        try:
            if found is None:
                await self._client.create(resources.SECRETS, body, self._namespace)
            else:
                await self._client.update(resources.SECRETS, body)
        except (errors.AlreadyExists, errors.Conflict):
            return False
        return True


def holds(wanted: Any, present: Any) -> bool:
    """Tell whether everything wanted is there; what the API server added does not matter."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(
            holds(value, present.get(key)) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(wanted) == len(present)
            and all(holds(one, other) for one, other in zip(wanted, present, strict=True))
        )
    return bool(wanted == present)


def _is_there(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    annotations = wanted["metadata"]["annotations"]
    return holds(wanted["webhooks"], present.get("webhooks")) and holds(
        annotations, present["metadata"].get("annotations")
    )


def _essence(raw: Mapping[str, Any]) -> tuple[Any, Any]:
    return raw.get("webhooks"), raw["metadata"].get("annotations")


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()
