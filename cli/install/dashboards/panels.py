"""Grafana dashboards out of a list of panels: placed row by row, complete, the same every time."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

SCHEMA_VERSION = 41
_COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_STAT, _SERIES, _HEAT = "stat", "timeseries", "heatmap"
_HEIGHTS = {_STAT: 4, _SERIES: 8, _HEAT: 8}


@dataclasses.dataclass(frozen=True, slots=True)
class Panel:
    """One graph or figure."""

    title: str
    queries: tuple[tuple[str, str], ...]
    """Expressions with the legend of their lines."""
    unit: str = "short"
    width: int = 8
    kind: str = _SERIES
    about: str = ""
    alarm: float | None = None
    """From here on it is red; below it is green."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    name: str
    title: str
    rows: tuple[Row, ...]


def graph(title: str, *queries: tuple[str, str], unit: str = "short", about: str = "") -> Panel:
    """Return a graph over time, three in a row."""
    return Panel(title, queries, unit, about=about)


def figure(
    title: str, query: str, unit: str = "short", *, alarm: float | None = None, about: str = ""
) -> Panel:
    """Return one figure, six in a row."""
    return Panel(title, ((query, ""),), unit, 4, _STAT, about, alarm)


def heat_map(title: str, *rows: tuple[str, str], about: str = "") -> Panel:
    """Return a heat map over time, two in a row; each query is a row, the lowest first.

    Queries count what falls into their row, so that it has as many series as rows, however much
    there is to be counted.
    """
    return Panel(title, rows, width=12, kind=_HEAT, about=about)


def document(dashboard: Dashboard) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it."""
    return {
        "uid": f"koord-{dashboard.name}",
        "title": f"Koord / {dashboard.title}",
        "tags": ["koord"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [_datasource(), _namespace()]},
        "links": [
            {
                "type": "dashboards",
                "title": "Koord",
                "tags": ["koord"],
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "panels": _placed(dashboard.rows),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}


def _namespace() -> dict[str, Any]:
    return {
        "name": "namespace",
        "type": "query",
        "label": "Namespace",
        "datasource": _SOURCE,
        "query": "label_values(koord_process_ready, namespace)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _placed(rows: Iterable[Row]) -> list[dict[str, Any]]:
    placed: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        placed.append(_numbered(placed, {"type": "row", "title": row.title, "gridPos": place}))
        top += 1
        for line in _lines(row.panels):
            left, height = 0, max(_HEIGHTS[panel.kind] for panel in line)
            for panel in line:
                place = {"x": left, "y": top, "w": panel.width, "h": height}
                placed.append(_numbered(placed, {**_panel(panel), "gridPos": place}))
                left += panel.width
            top += height
    return placed


def _numbered(before: Sequence[Any], panel: dict[str, Any]) -> dict[str, Any]:
    return {"id": len(before) + 1, **panel}


def _lines(panels: Iterable[Panel]) -> list[list[Panel]]:
    """Break panels where they would pass the right edge, and between figures and graphs."""
    lines: list[list[Panel]] = []
    for panel in panels:
        last = lines[-1] if lines else []
        fits = sum(one.width for one in last) + panel.width <= _COLUMNS
        if last and fits and last[0].kind == panel.kind:
            last.append(panel)
        else:
            lines.append([panel])
    return lines


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.alarm is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.alarm}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel.kind),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": _chosen(expression),
                "legendFormat": legend,
                "instant": panel.kind == _STAT,
                "range": panel.kind != _STAT,
            }
            for number, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _options(kind: str) -> dict[str, Any]:
    if kind == _HEAT:
        return {
            "calculate": False,
            "rowsFrame": {"layout": "auto"},
            "yAxis": {"axisPlacement": "left"},
            "color": {"mode": "scheme", "scheme": "Blues", "steps": 64},
            "cellGap": 1,
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "yHistogram": False},
        }
    if kind == _STAT:
        reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        return {"reduceOptions": reduced, "colorMode": "value", "graphMode": "none"}
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


_METRIC = re.compile(r"\b((?:koord|process)_[a-z0-9_]+)(\{)?")


def _chosen(expression: str) -> str:
    """Return an expression that looks at the chosen namespaces only."""

    def narrowed(found: re.Match[str]) -> str:
        name, braced = found.groups()
        return f'{name}{{namespace=~"$namespace"' + (", " if braced else "}")

    return _METRIC.sub(narrowed, " ".join(expression.split()))
