"""What says how much room an ElasticQuota has: some of its figures, without the others. Pure."""

from domain.quota import model
from domain.quota.tree import accounts, figures


def bounds(reading: figures.Reading, name: str) -> model.Bounds | None:
    """Return the bounds of a quota, None where it is unknown."""
    row = reading.row(name)
    if row is None:
        return None
    layout, rows = reading.layout, reading.rows
    shape, cells = layout.shapes[row], rows[row][0]
    shares, scaled = [], []
    for at, (key, tree, total, steps) in enumerate(layout.routes(row)):
        share, least = reading.at_top(tree, key) if total is None else total, shape.minimum[at]
        above = share
        for parent, column, slot in steps:
            above, share = share, rows[parent][1][column].share(slot, share)
        if steps:
            parent, column, slot = steps[-1]
            least = rows[parent][1][column].scaled_of(slot, above)
        shares.append(share)
        scaled.append(least)
    keys, written = shape.keys, shape.written
    limit = shares if layout.rules.runtime else shape.cap
    return model.Bounds(
        dict(zip(keys, limit, strict=True)),
        {key: shape.minimum[at] for at, key in enumerate(keys) if written[at]},
        {key: scaled[at] for at, key in enumerate(keys) if written[at]},
        {key: cells[at][accounts.USED] for at, key in enumerate(keys)},
        {key: cells[at][accounts.FIRM_USED] for at, key in enumerate(keys)},
    )
