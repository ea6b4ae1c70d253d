"""Tokens of service accounts, as kubelets ask for them on behalf of their pods."""


async def token(api, namespace, name, *, pod="", secret="", seconds=3600):
    """Return a token of this service account, valid while the named pod or Secret exists."""
    spec = {"expirationSeconds": seconds}
    if pod or secret:
        kind, plural = ("Pod", "pods") if pod else ("Secret", "secrets")
        found = await api.get(f"/api/v1/namespaces/{namespace}/{plural}/{pod or secret}")
        spec["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": kind,
            "name": pod or secret,
            "uid": found["metadata"]["uid"],
        }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return (await api.post(path, body))["status"]["token"]
