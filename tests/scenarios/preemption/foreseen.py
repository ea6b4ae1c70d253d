"""What `koord simulate pod` says before anything is evicted."""

from cli.placement import asked_pod, preview
from cli.snapshot import reader
from process.runtime import clock as clocks


async def state(kube):
    """The cluster as `koord snapshot` holds it."""
    return await reader.taken(kube, clocks.SystemClock())


def victims(before, pod, plugins=()):
    """Whom the extender would evict for a pod in an earlier state, by name."""
    found = preview.preview(asked_pod.added(before, pod, "default"), tuple(plugins))
    assert found.leaving is not None, found
    assert found.leaving.by == preview.EXTENDER
    return {one.key.partition("/")[2] for one in found.leaving.victims}
