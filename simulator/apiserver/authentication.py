"""Bearer tokens to users."""

from collections.abc import Mapping

from simulator.apiserver.http import api_errors, requests

# What a real API server shows to everybody.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
ANONYMOUS = requests.User("system:anonymous", ("system:unauthenticated",))


def user(
    headers: Mapping[str, str], path: str, tokens: Mapping[str, requests.User]
) -> requests.User:
    """Return who asks; a request without a known token is refused."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    found = tokens.get(token.strip()) if scheme.lower() == "bearer" else None
    if found is not None:
        return found
    if path in PUBLIC_PATHS and not scheme:
        return ANONYMOUS
    raise api_errors.unauthorized()
