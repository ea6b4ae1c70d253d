"""The picture of the cluster as a table for a terminal, or as plain lines."""

from collections.abc import Iterator

from rich import box, console, table, text

from cli.doctor.checkup import findings
from cli.output import cells, columns
from cli.quota import table as quota_table
from cli.view import overview
from domain import wording

BAR = 18
NARROWEST = 80
"""Columns of a terminal below which the bars leave no room for the figures."""
_NODE_WIDTH = 7
MOST_PENDING = 12
MOST_QUOTAS = 12
COLUMNS = (
    "NODE",
    "CPU",
    "REQ",
    "USED",
    "LENT",
    "BATCH",
    "MEM USED",
    "PODS",
)


LINE_COLUMNS = (
    *columns.left("NODE", "CAPACITY", *COLUMNS[2:]),
    *columns.more("READY", "MEM CAPACITY", "MEM REQ", "MEM LENT", "MEM BATCH"),
)


def bar(gauge: overview.Gauge, width: int = BAR) -> text.Text:
    """Draw a node's cpu: used by online pods, used by batch, requested but idle, free."""
    if gauge.capacity <= 0:
        return text.Text("·" * width, style="dim")
    borrowed = min(gauge.borrowed, gauge.capacity)
    used = min(gauge.used or 0, gauge.capacity)
    online = max(used - borrowed, 0)
    parts = (
        (online, "█", "green"),
        (borrowed, "▓", "yellow"),
        (max(gauge.requested - online - borrowed, 0), "░", "cyan"),
    )
    drawn = text.Text()
    left = width
    for amount, sign, style in parts:
        cells = min(round(amount * width / gauge.capacity), left)
        drawn.append(sign * cells, style=style)
        left -= cells
    return drawn.append("·" * left, style="dim")


def render(shown: overview.Picture, title: str) -> console.Group:
    """Build the live view: nodes above, pending pods below."""
    nodes = table.Table(
        title=cells.cell(title), box=box.SIMPLE_HEAD, title_justify="left", expand=True
    )
    for column in COLUMNS:
        # Where the terminal is narrow, names are folded: a figure that is cut says nothing.
        nodes.add_column(
            column,
            justify="left" if column in COLUMNS[:2] else "right",
            no_wrap=column != COLUMNS[0],
            overflow="fold",
            min_width=_NODE_WIDTH if column == COLUMNS[0] else None,
        )
    for row in shown.nodes:
        nodes.add_row(cells.cell(row.name, "" if row.ready else "red"), bar(row.cpu), *_cells(row))
    legend = text.Text("█ used online  ▓ batch  ░ requested, idle  · free", style="dim")
    pending = table.Table(box=box.SIMPLE_HEAD, title_justify="left", expand=True)
    pending.title = (
        f"{len(shown.pending)} pending, {shown.running} running ({shown.batch_running} batch)"
    )
    pending.add_column("POD", no_wrap=True)
    pending.add_column("ASKS", no_wrap=True)
    pending.add_column("REASON", overflow="fold", ratio=1)
    for waiting in shown.pending[:MOST_PENDING]:
        pending.add_row(*map(cells.cell, (waiting.key, waiting.asks, waiting.reason)))
    if len(shown.pending) > MOST_PENDING:
        pending.add_row(f"and {len(shown.pending) - MOST_PENDING} more", "", "")
    odd = [
        cells.cell(sentence, "red") for sentence in (*_unreadable(shown), *overview.hidden(shown))
    ]
    switched = [cells.cell(f"switch: {sentence}", "yellow") for sentence in shown.switched]
    said = [cells.cell(f"plug-ins: {sentence}", "yellow") for sentence in shown.configured]
    quotas = [cells.cell(line) for line in _quotas(shown)]
    did = [cells.cell(sentence) for sentence in shown.agents]
    return console.Group(*switched, *said, *odd, nodes, legend, pending, *did, *quotas)


def lines(shown: overview.Picture, *, wide: bool = False) -> Iterator[str]:
    """Write the picture as lines without colour or cursor movement; `wide` leaves nothing out."""
    yield from (f"switch: {sentence}" for sentence in shown.switched)
    yield from (f"plug-ins: {sentence}" for sentence in shown.configured)
    yield from _unreadable(shown)
    yield from overview.hidden(shown)
    rows = (
        (row.name, overview.cores(row.cpu.capacity), *_cells(row), *_more_cells(row))
        for row in shown.nodes
    )
    yield from columns.lines(LINE_COLUMNS, rows, wide=wide)
    yield (
        f"{wording.count(shown.running, 'pod', 'pods')} running, {shown.batch_running} of them "
        f"batch; {len(shown.pending)} pending"
    )
    most = len(shown.pending) if wide else MOST_PENDING
    for waiting in shown.pending[:most]:
        yield f"  {waiting.key} asks {waiting.asks}: {waiting.reason}"
    if len(shown.pending) > most:
        yield f"  and {len(shown.pending) - most} more"
    yield from shown.agents
    yield from _quotas(shown, wide=wide)


def _quotas(shown: overview.Picture, *, wide: bool = False) -> Iterator[str]:
    """Yield what each quota uses, borrows and lends; those with waiting pods come first."""
    if not shown.quotas:
        return
    ordered = sorted(shown.quotas, key=lambda row: -row.waiting_pods)
    yield ""
    most = len(ordered) if wide else MOST_QUOTAS
    yield from quota_table.lines(ordered[:most], wide=wide)
    if more := len(ordered[most:]):
        yield f"and {wording.count(more, 'more quota', 'more quotas')}: koord get quota -A"


def _unreadable(shown: overview.Picture) -> Iterator[str]:
    if shown.unreadable:
        count, some = len(shown.unreadable), findings.some(list(shown.unreadable))
        objects = wording.count(count, "object", "objects")
        are = wording.form(count, "is", "are")
        yield f"{objects} of an unexpected shape {are} left out: {some}"


def _cells(row: overview.NodeRow) -> tuple[str, ...]:
    used = "?" if row.cpu.used is None else overview.cores(row.cpu.used)
    memory = "?" if row.memory.used is None else overview.gibibytes(row.memory.used)
    return (
        overview.cores(row.cpu.requested),
        used,
        overview.cores(row.cpu.lent),
        overview.cores(row.cpu.borrowed),
        memory,
        str(row.pods),
    )


def _more_cells(row: overview.NodeRow) -> tuple[str, ...]:
    memory = row.memory
    amounts = (memory.capacity, memory.requested, memory.lent, memory.borrowed)
    return ("yes" if row.ready else "no", *map(overview.gibibytes, amounts))
