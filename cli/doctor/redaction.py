"""Take what is secret out of objects and texts before they leave a cluster."""

import re
from collections.abc import Mapping
from typing import Any, Final

REDACTED: Final = "REDACTED"
SECRET_KINDS: Final = frozenset({"Secret", "TokenRequest", "CertificateSigningRequest"})
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_NAMES: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|api[-_]?key|private[-_]?key|access[-_]?key"
    r"|authorization|bearer|kubeconfig",
    re.IGNORECASE,
)
# Names of things that lead to a secret and are none themselves.
_HARMLESS: Final = re.compile(
    r"^(secretName|secret|secretRef|secretKeyRef|tokenFile|automountServiceAccountToken|"
    r"serviceAccountToken|.*File|.*Seconds|imagePullSecrets|tlsSecret)$"
)
_TEXTS: Final = (
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        "REDACTED PRIVATE KEY",
    ),
    (re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), "REDACTED TOKEN"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 REDACTED"),
    (re.compile(r"(?i)(://)[^/\s:@]+:[^/\s@]+@"), r"\1REDACTED@"),
    (
        re.compile(
            r"(?i)((?:passw(?:or)?d|secret|token|api[-_]?key|access[-_]?key)[\"']?\s*[:=]\s*)"
            r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,;}\"']+)"
        ),
        r"\1REDACTED",
    ),
)  # fmt: skip


def text(written: str) -> str:
    """Take keys, tokens and passwords out of a text."""
    for pattern, instead in _TEXTS:
        written = pattern.sub(instead, written)
    return written


def thing(value: Any) -> Any:
    """Take what is secret out of an object of the API; a Secret keeps only its name and type."""
    if isinstance(value, Mapping):
        if value.get("kind") in SECRET_KINDS:
            metadata = value.get("metadata") or {}
            kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
            return {"kind": value["kind"], "metadata": kept, "type": value.get("type", "")}
        return {key: _member(str(key), inner, value) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [thing(inner) for inner in value]
    return text(value) if isinstance(value, str) else value


def _member(key: str, inner: Any, holder: Mapping[str, Any]) -> Any:
    if key == LAST_APPLIED:
        return REDACTED
    if isinstance(inner, str | int | float) and not isinstance(inner, bool):
        if is_secret(key):
            return REDACTED
        # A variable: its name stands beside its value.
        if key == "value" and is_secret(str(holder.get("name", ""))):
            return REDACTED
    return thing(inner)


def is_secret(name: str) -> bool:
    """Tell whether a value of this name is not for others."""
    return bool(_NAMES.search(name)) and not _HARMLESS.match(name)
