"""Who may talk to a control plane: kubeconfigs, static tokens and the key of service accounts."""

import base64
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """A user who may log in with a token of its own."""

    name: str
    groups: tuple[str, ...] = ()


def kubeconfig(server: str, ca: bytes, token: str) -> dict[str, Any]:
    """Return a kubeconfig with one context called koord."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "koord", "cluster": cluster}],
        "users": [{"name": "koord", "user": {"token": token}}],
        "contexts": [{"name": "koord", "context": {"cluster": "koord", "user": "koord"}}],
        "current-context": "koord",
    }


def write_tokens(path: pathlib.Path, users: Sequence[User], tokens: Mapping[str, str]) -> None:
    """Write the file of static tokens that an API server reads, readable by its owner only."""
    path.touch(mode=0o600)
    lines = [
        f'{tokens[user.name]},{user.name},{number},"{",".join(user.groups)}"'
        for number, user in enumerate(users)
    ]
    path.write_text("\n".join(lines) + "\n")


def write_signing_key(private: pathlib.Path, public: pathlib.Path) -> None:
    """Write the pair that signs and proves the tokens of service accounts."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private.touch(mode=0o600)
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
