"""Follows the arguments of plug-in ElasticQuota in ConfigMap koord-scheduler-config.

Extender and manager have to count by the same rules. A document with a fault changes nothing.
"""

import logging
from collections.abc import Callable

from api.kubernetes import core
from api.plugin_args import job
from domain.quota import configuration, model

logger = logging.getLogger(__name__)


class Arguments:
    """The arguments in force; the defaults while nothing was written."""

    def __init__(self, changed: Callable[[model.Rules], None]) -> None:
        """`changed` hears of rules that differ from those before."""
        self.present = job.ElasticQuotaArgs()
        self._changed = changed

    @property
    def rules(self) -> model.Rules:
        """Return how quotas are counted."""
        return model.rules(self.present)

    def namespace(self, own: str) -> str:
        """Return where the reserved quotas are: our own namespace unless another is named."""
        named = "quota_group_namespace" in self.present.model_fields_set
        return self.present.quota_group_namespace if named else own

    def take(self, configured: core.ConfigMap | None) -> None:
        """Take in the ConfigMap as it is now."""
        found = configuration.read({} if configured is None else configured.data)
        if found.arguments is None:
            logger.warning(
                "scheduler configuration is refused, the last one stays faults=%s",
                "; ".join(map(str, found.faults)),
            )
            return
        before, self.present = self.present, found.arguments
        if self.present != before:
            self._changed(self.rules)
