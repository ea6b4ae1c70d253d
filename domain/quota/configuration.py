"""Arguments of plug-in ElasticQuota in ConfigMap koord-scheduler-config. Pure.

Extender, manager, admission and the command line have to count by the same rules.
"""

from collections.abc import Mapping
from typing import NamedTuple

from api.plugin_args import job, models
from domain.cluster_settings.value_limits import Fault
from domain.scheduler_settings import documents


class Written(NamedTuple):
    """What the ConfigMap says about elastic quota."""

    arguments: job.ElasticQuotaArgs | None
    """None where the document has a fault: what was read before stays in force."""
    faults: tuple[Fault, ...] = ()


def read(data: Mapping[str, str]) -> Written:
    """Read the data of the ConfigMap; what it does not name has its default."""
    reading = documents.read(data)
    if reading.settings is None:
        return Written(None, reading.faults)
    found = reading.settings.arguments.get(models.ELASTIC_QUOTA)
    return Written(found if isinstance(found, job.ElasticQuotaArgs) else job.ElasticQuotaArgs())
