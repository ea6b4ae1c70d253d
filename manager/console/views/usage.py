"""What online and batch pods use of a node, from what its agent reported. Pure."""

from typing import NamedTuple

from domain.lending import colocation
from manager.model import projections


class Use(NamedTuple):
    """What is in use on one node, by whom."""

    online: colocation.Amount
    batch: colocation.Amount
    whole: colocation.Amount


class Uses:
    """Use by class of every report; a report that has not changed is not added up again."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[projections.Report, Use | None]] = {}

    def of(self, name: str, report: projections.Report | None) -> Use | None:
        """Return what is in use on a node; None where nothing is measured."""
        if report is None:
            self._kept.pop(name, None)
            return None
        kept = self._kept.get(name)
        if kept is not None and kept[0] is report:
            return kept[1]
        found = use(report)
        self._kept[name] = (report, found)
        return found


def use(report: projections.Report) -> Use | None:
    """Return what online pods, batch pods and everything use; None where nothing is measured."""
    if report.usage is None:
        return None
    online = [0, 0]
    batch = [0, 0]
    for used, band in report.pods.values():
        side = online if colocation.is_online(band) else batch
        side[0] += used.cpu
        side[1] += used.memory
    return Use(colocation.Amount(*online), colocation.Amount(*batch), report.usage)
