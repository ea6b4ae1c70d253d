"""When the members of a gang may be bound: the match policies of Permit. Pure."""

from domain.gangs import declaration


def satisfied(gang: declaration.Gang, waiting: int, bound: int, ever_bound: bool) -> bool:
    """Whether a gang has its quorum.

    `waiting` are members that hold a node and are not bound, `bound` those with a node.
    `ever_bound`: whether any member of the gang group was bound once; a gang that is satisfied
    once stays so under that policy, and its further members are placed as pods of their own.
    """
    match gang.match_policy:
        case declaration.MatchPolicy.ONLY_WAITING:
            return waiting >= gang.min_member
        case declaration.MatchPolicy.WAITING_AND_RUNNING:
            return waiting + bound >= gang.min_member
        case declaration.MatchPolicy.ONCE_SATISFIED:
            return ever_bound or waiting >= gang.min_member
