"""The dashboard for Reservations: what they keep, what is used of it, and which wait."""

from cli.install.dashboards.panels import Dashboard, Row, figure, graph


def _all(expression: str, *labels: str) -> str:
    """Return one gauge; every replica of the manager exports it, so the largest counts."""
    return f"max by ({', '.join(labels)}) ({expression})"


def _amounts(resource: str, title: str, unit: str) -> Row:
    """Return what is reserved of one resource."""

    def line(name: str) -> tuple[str, str]:
        return _all(f'koord_reservation_{name}{{resource="{resource}"}}', "resource"), name

    return Row(
        title,
        (
            graph("Reserved and used", line("reserved"), line("allocated"), unit=unit),
            graph(
                "Unused",
                line("unused"),
                unit=unit,
                about="Kept from other pods, and used by no owner.",
            ),
            graph("Asked for by Pending ones", line("waiting"), unit=unit),
        ),
    )


_PHASES = _all("koord_reservation_objects", "phase")
_RATIO = _all("koord_reservation_used_ratio", "reservation", "node")

PAGE = Dashboard(
    "reservations",
    "Reservations",
    (
        Row(
            "Now",
            (
                figure("Available", _all('koord_reservation_objects{phase="Available"}', "phase")),
                figure("Pending", _all('koord_reservation_objects{phase="Pending"}', "phase")),
                figure(
                    "Longest wait",
                    "max(koord_reservation_longest_wait_seconds)",
                    "s",
                    alarm=900,
                    about="koord explain reservation NAME says what a Pending one lacks.",
                ),
                figure("Overdue", "max(koord_reservation_overdue)", alarm=1),
                figure("Series not shown", "max(koord_reservation_hidden_series)"),
            ),
        ),
        Row(
            "Use",
            (
                graph("Phases", (_PHASES, "{{phase}}")),
                graph(
                    "Least used",
                    (f"bottomk(20, {_RATIO})", "{{reservation}} {{node}}"),
                    unit="percentunit",
                ),
                graph(
                    "Most used",
                    (f"topk(20, {_RATIO})", "{{reservation}} {{node}}"),
                    unit="percentunit",
                ),
            ),
        ),
        _amounts("cpu", "Cores", "short"),
        _amounts("memory", "Memory", "bytes"),
        _amounts("nvidia.com/gpu", "GPUs", "short"),
    ),
)
