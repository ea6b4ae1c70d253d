"""Tokens of service accounts, as kubelets ask for them on behalf of their pods."""


async def token(api, namespace, name, *, pod="", seconds=3600):
    """Return a token of this service account, valid while the named pod exists."""
    spec = {"expirationSeconds": seconds}
    if pod:
        found = await api.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")
        spec["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod,
            "uid": found["metadata"]["uid"],
        }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return (await api.post(path, body))["status"]["token"]
