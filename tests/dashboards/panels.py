"""What the panels of a dashboard show: the answers of a real Prometheus to their queries."""

import math

from tests.dashboards import drawing


async def found(dashboard, asked):
    """The series of each panel, by its number: a legend and its points."""
    return {
        panel["id"]: await _series(panel, asked)
        for panel in dashboard["panels"]
        if panel["type"] != "row"
    }


async def _series(panel, asked):
    series = []
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "1m").replace("$namespace", ".*")
        if target.get("instant"):
            answer = await asked.at_the_end(query)
        else:
            answer = await asked.over_time(query)
        for one in answer:
            points = [(at, float(value)) for at, value in one.get("values", [one.get("value")])]
            # Prometheus says so where nothing was observed; a line has a gap there.
            points = [(at, value) for at, value in points if not math.isnan(value)]
            if points:
                series.append((drawing.named(target["legendFormat"], one["metric"]), points))
    return series
