"""Our kinds on a control plane, for tests that need no whole installation."""

from api import resources
from api.kubernetes import crds
from tests.planes import raw


async def serve(api, *kinds):
    """Create the definitions of these kinds, of all without any, and wait until they are served."""
    for definition in crds.definitions():
        if kinds and definition["spec"]["names"]["kind"] not in kinds:
            continue
        await api.call("POST", resources.CRDS.path(), definition)
        path = resources.CRDS.path(name=definition["metadata"]["name"])
        await api.wait_until(path, established, raw.PATIENCE)


def established(definition):
    """Tell whether the API server serves what a definition defines."""
    conditions = (definition or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
