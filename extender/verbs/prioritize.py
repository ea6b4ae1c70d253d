"""The prioritize verb: our points for the nodes that passed."""

import itertools

import numpy as np

from extender.framework import verdicts
from extender.verbs import parts, response


def answer(on: parts.Parts, body: bytes, now: float) -> bytes:
    """Answer a prioritize call; zero scores are left out, a failure scores nothing."""
    if not on.switches.enforces:
        return response.NO_SCORES
    try:
        question = on.reader.read(body)
        if question.nodes is not None:
            view, candidates = on.overlay(parts.NODES.decode(question.nodes))
            asked = on.plugins.cycle(question.request, view)
        else:
            view = on.cluster.view()
            asked = on.cycles.get(on.plugins, question.request, view)
            candidates = on.reader.candidates(question.text, view)
    except parts.BAD_INPUT:
        return response.NO_SCORES
    names, rows = candidates.names, candidates.rows
    known = rows >= 0
    if np.count_nonzero(known) < known.size:
        names, rows = list(itertools.compress(names, known.tolist())), rows[known]
    if not rows.size:
        return response.NO_SCORES
    scores = on.plugins.score(asked, view, rows, now)
    return on.writer.write(names, points(scores))


def points(scores: verdicts.Column) -> verdicts.Column:
    """Return what prioritize answers for scores: as little as possible, with the same distances."""
    least: verdicts.Column = scores - scores.min()
    return least
