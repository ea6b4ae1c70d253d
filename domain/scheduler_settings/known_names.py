"""Names of a scheduler configuration: ours, kube-scheduler's, and what a misspelt one meant."""

import difflib
from collections.abc import Iterable
from typing import Final

from api.kubernetes import scheduler_config
from api.plugin_args import models

BATCH_FIT: Final = "BatchFit"
OURS: Final = (BATCH_FIT, *models.MODELS)
"""Plug-ins of the extender; BatchFit takes no arguments."""
ENABLED: Final = (
    "Coscheduling",
    "ElasticQuota",
    BATCH_FIT,
    "LoadAware",
    "Reservation",
    "DeviceShare",
)
"""Those that are enabled where neither settings nor the ConfigMap say otherwise, in their order."""
IN_TREE: Final = frozenset(scheduler_config.STOCK_WEIGHTS) | scheduler_config.NOT_SCORING
"""Plug-ins of kube-scheduler."""
NOT_OFFERED: Final = frozenset({"DefaultPreBind", "SchedulingHint"})
"""Plug-ins of Koordinator's scheduler that the extender has no counterpart of."""
TOP: Final = frozenset(
    {
        *("apiVersion", "kind", "profiles", "extenders", "leaderElection", "clientConnection"),
        *("parallelism", "percentageOfNodesToScore", "delayCacheUntilActive"),
        *("podInitialBackoffSeconds", "podMaxBackoffSeconds"),
        *("metricsBindAddress", "healthzBindAddress"),
        *("enableProfiling", "enableContentionProfiling"),
    }
)
"""Fields of a KubeSchedulerConfiguration; all but profiles are kube-scheduler's alone."""
PROFILE: Final = frozenset({"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"})
_SHORT: Final = {"LoadAware": models.LOAD_AWARE}
"""Names by which settings and metrics call a plug-in."""
_LIKE: Final = 0.75


def full(name: str) -> str:
    """Return the name of a plug-in in scheduler configurations."""
    return _SHORT.get(name, name)


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a text is probably a misspelling of."""
    if name in _SHORT:
        return _SHORT[name]
    folded = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold()[:80], folded, 1, _LIKE)
    return folded[close[0]] if close else None
