"""Look at the candidates one by one that every vector filter let pass, where a plug-in has to."""

import numpy as np

from extender.framework import cycle, extension_points, verdicts, views
from extender.framework.nodes import numa


def judge(
    points: extension_points.Points,
    aligned: numa.Aligned,
    question: tuple[cycle.Cycle, views.View, verdicts.Rows],
    judged: tuple[verdicts.Codes, list[cycle.Refusal]],
) -> None:
    """Write the refusals of node filters, and of NUMA alignment, into what was judged so far."""
    plugins, is_aligned = points.node_filters, points.is_aligned
    if not plugins and not is_aligned:
        return
    asked, view, rows = question
    codes, refusals = judged
    numbers: dict[cycle.Refusal, int] = {}
    for place in np.flatnonzero(codes == 0).tolist() if plugins else ():
        row = int(rows[place])
        for plugin in plugins:
            status = plugin.filter_node(asked.prepared[plugin.name], view, row)
            if status is not None:
                refusal = cycle.Refusal(plugin.name, status)
                codes[place] = _number(refusal, numbers, refusals)
                break
    if not is_aligned:
        return
    passed = (codes == 0).nonzero()[0] if np.count_nonzero(codes) else None
    trials = aligned.trials(asked, view, rows if passed is None else rows[passed])
    if trials is None or not np.count_nonzero(trials):
        return
    left = trials.nonzero()[0] if passed is None else passed[trials]
    found, known = aligned.refusals(asked, view, rows[left])
    for number in np.unique(found[found > 0]).tolist():
        codes[left[found == number]] = _number(known[number - 1], numbers, refusals)


def _number(
    refusal: cycle.Refusal, numbers: dict[cycle.Refusal, int], refusals: list[cycle.Refusal]
) -> int:
    """Return the code of a refusal, which is put into the list where it is new."""
    if refusal not in numbers:
        refusals.append(refusal)
        numbers[refusal] = len(refusals)
    return numbers[refusal]
