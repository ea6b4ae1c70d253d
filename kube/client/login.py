"""Logging in as a person does: kubeconfig, contexts, exec plug-ins and other providers."""

import asyncio
import dataclasses
import logging
import os
from pathlib import Path
from typing import Any, Final

import kubernetes_asyncio.client
import kubernetes_asyncio.config
import yaml
from kubernetes_asyncio.config import kube_config

from kube.client import access, errors

logger = logging.getLogger(__name__)

_USUAL: Final = "~/.kube/config"
_BEARER: Final = "BearerToken"
_FAILURES: Final = (
    kubernetes_asyncio.config.ConfigException,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AssertionError,
    yaml.YAMLError,
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Source:
    """Which kubeconfig, and which of its contexts."""

    path: Path | None
    context: str | None

    def check(self) -> None:
        """Raise when no file is there; the library would go on with nothing."""
        paths = [self.path] if self.path else map(Path, self._files.split(os.pathsep))
        if not any(path.expanduser().is_file() for path in paths):
            raise errors.AccessError(
                f"there is no kubeconfig {self.name}; name an existing file or set KUBECONFIG"
            )

    async def load(self) -> Any:
        """Read the files and run what they name; return the library's configuration."""
        configuration = kubernetes_asyncio.client.Configuration()
        try:
            await kubernetes_asyncio.config.load_kube_config(
                config_file=self._files,
                context=self.context,
                client_configuration=configuration,
                persist_config=False,
            )
        except _FAILURES as error:
            raise errors.AccessError(
                f"the kubeconfig {self.name} cannot be used: {str(error) or 'a field is missing'}; "
                "check it with 'kubectl config view'"
            ) from error
        return configuration

    @property
    def name(self) -> str:
        """The files and the context, for people."""
        return f"{self._files} (context {self.context})" if self.context else self._files

    @property
    def _files(self) -> str:
        # The library read KUBECONFIG when it was imported, and takes an empty one for a file.
        return str(self.path or kube_config.KUBE_CONFIG_DEFAULT_LOCATION or _USUAL)


class _Tokens:
    """The credential of a kubeconfig, asked for again when the API server refuses it."""

    def __init__(self, source: _Source, configuration: Any) -> None:
        self._source = source
        self._configuration = configuration
        self._renewing = asyncio.Lock()

    async def authorization(self) -> str:
        """Return the header; the library's refresh hook runs first if a provider set one."""
        header: str | None = await self._configuration.get_api_key_with_prefix(_BEARER)
        return header or ""

    async def renew(self) -> None:
        """Read the kubeconfig and run its provider again, once for all who wait."""
        before = self._configuration
        async with self._renewing:
            if self._configuration is before:
                self._configuration = await self._source.load()
                logger.info("credential was renewed kubeconfig=%s", self._source.name)


async def from_kubeconfig(path: Path | None = None, context: str | None = None) -> access.Access:
    """Return the access of a context; by default the current one of KUBECONFIG or ~/.kube."""
    source = _Source(path, context)
    source.check()
    configuration = await source.load()
    if not configuration.host or not configuration.host.startswith(("http://", "https://")):
        raise errors.AccessError(f"the kubeconfig {source.name} names no server")
    certificate = None
    if configuration.cert_file and configuration.key_file:
        certificate = (Path(configuration.cert_file), Path(configuration.key_file))
    return access.Access(
        server=configuration.host,
        ca_data=_read(configuration.ssl_ca_cert),
        tokens=_Tokens(source, configuration) if _BEARER in configuration.api_key else None,
        client_certificate=certificate,
        insecure=not configuration.verify_ssl,
        server_name=configuration.tls_server_name or "",
        proxy=configuration.proxy or "",
    )


def _read(ca_file: str | None) -> bytes | None:
    if not ca_file:
        return None
    try:
        return Path(ca_file).read_bytes()
    except OSError as error:
        raise errors.AccessError(f"the CA file {ca_file} cannot be read: {error}") from error
