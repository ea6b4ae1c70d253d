"""Follows the arguments of plug-in Reservation in ConfigMap koord-scheduler-config.

A document with a fault changes nothing; the extender reads the same one.
"""

import logging

from api import names
from api.kubernetes import core
from api.plugin_args import job, models
from domain.scheduler_settings import documents
from manager.reservations import pre_allocation

logger = logging.getLogger(__name__)


class Arguments:
    """The arguments in force; the defaults while nothing was written."""

    def __init__(self) -> None:
        self.present = job.ReservationArgs()
        self.schedulers: tuple[str, ...] = ()
        """Schedulers that call the extender, where the ConfigMap lists them."""

    @property
    def pre_allocation(self) -> pre_allocation.Terms:
        """Return how Reservations are placed over running pods."""
        written = self.present.pre_allocation_config
        return pre_allocation.Terms(
            written.enable_cluster_mode,
            written.cluster_label_key or names.LABEL_PRE_ALLOCATABLE,
            written.cluster_priority_annotation_key or names.ANNOTATION_PRE_ALLOCATABLE_PRIORITY,
        )

    def take(self, configured: core.ConfigMap | None) -> None:
        """Take in the ConfigMap as it is now."""
        notes = {} if configured is None else configured.metadata.annotations
        listed = notes.get(names.ANNOTATION_SCHEDULERS, "").split(",")
        self.schedulers = tuple(filter(None, map(str.strip, listed)))
        reading = documents.read({} if configured is None else configured.data)
        if reading.settings is None:
            logger.warning(
                "scheduler configuration is refused, the last one stays faults=%s",
                "; ".join(map(str, reading.faults)),
            )
            return
        found = reading.settings.arguments.get(models.RESERVATION)
        self.present = found if isinstance(found, job.ReservationArgs) else job.ReservationArgs()
