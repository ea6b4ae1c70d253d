"""Reads PromQL far enough to tell a wrong query: its syntax, its metrics and the labels it uses."""

import dataclasses
import re

TOKEN = re.compile(
    r"""\s*(?:
    (?P<duration>(?:\d+(?:ms|[smhdwy]))+)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<sign>==|!=|<=|>=|=~|!~|[-+*/%^<>=(){}\[\],:@])
    )""",
    re.VERBOSE,
)
AGGREGATIONS = {"sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile", "group"}
COUNTING = {"rate", "increase", "irate"}
FUNCTIONS = {*COUNTING, "histogram_quantile", "time", "vector", "absent", "clamp_min", "scalar"}
OPERATORS = {*"+-*/%^<>", "==", "!=", "<=", ">=", "and", "or", "unless"}


class QueryError(AssertionError):
    """A query that Prometheus would not take, or that does not mean what it seems to."""


@dataclasses.dataclass(frozen=True)
class Use:
    """A metric as one query uses it."""

    metric: str
    matched: frozenset
    grouped: frozenset
    within: tuple
    """The functions around it, the nearest last."""
    ranged: bool


class Reader:
    def __init__(self, query):
        self._tokens = []
        self._query, position = query.strip(), 0
        while position < len(self._query):
            found = TOKEN.match(self._query, position)
            if found is None:
                self.fail(f"what is {self._query[position : position + 10]!r}?")
            self._tokens.append((found.lastgroup, found.group(found.lastgroup)))
            position = found.end()
        self._at = 0
        self.uses = []

    def fail(self, why):
        raise QueryError(f"{why} in {self._query}")

    def peek(self):
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def next(self, wanted="", kind=""):
        if self._at == len(self._tokens):
            self.fail("it ends too soon")
        found = self._tokens[self._at]
        if (wanted and found[1] != wanted) or (kind and found[0] != kind):
            self.fail(f"expected {wanted or kind}, found {found[1]!r}")
        self._at += 1
        return found[1]

    def take(self, *wanted):
        if self.peek() in wanted:
            return self.next()
        return ""

    def whole(self):
        self.expression((), frozenset())
        if self.peek():
            self.fail(f"what is {self.peek()!r} for?")
        return self.uses

    def expression(self, within, grouped):
        self.operand(within, grouped)
        while self.peek() in OPERATORS:
            self.next()
            self.take("bool")
            joined = self.labels() if self.take("on", "ignoring") else frozenset()
            if self.take("group_left", "group_right") and self.peek() == "(":
                self.labels()
            self.operand(within, grouped | joined)

    def operand(self, within, grouped):
        self.take("-", "+")
        kind = self._tokens[self._at][0] if self.peek() else ""
        if self.take("("):
            self.expression(within, grouped)
            self.next(")")
        elif kind in ("number", "string"):
            self.next()
        elif self.peek() in AGGREGATIONS:
            self.aggregation(within, grouped)
        elif self.peek() in FUNCTIONS:
            self.call(self.next(), within, grouped)
        else:
            self.selector(within, grouped)

    def aggregation(self, within, grouped):
        """Labels come before what is aggregated: one way to write it is enough."""
        name = self.next()
        by = self.labels() if self.take("by", "without") else frozenset()
        self.call(name, within, grouped | by)

    def call(self, name, within, grouped):
        self.next("(")
        while self.peek() != ")":
            self.expression((*within, name), grouped)
            if not self.take(","):
                break
        self.next(")")

    def selector(self, within, grouped):
        metric = self.next(kind="word")
        matched = self.matchers() if self.take("{") else frozenset()
        ranged = bool(self.take("["))
        if ranged:
            self.next(kind="duration")
            self.next("]")
        if self.take("offset"):
            self.next(kind="duration")
        self.uses.append(Use(metric, matched, grouped, within, ranged))

    def matchers(self):
        found = set()
        while self.peek() != "}":
            found.add(self.next(kind="word"))
            if not self.take("=", "!=", "=~", "!~"):
                self.fail("a matcher compares")
            self.next(kind="string")
            if not self.take(","):
                break
        self.next("}")
        return frozenset(found)

    def labels(self):
        found = set()
        self.next("(")
        while self.peek() != ")":
            found.add(self.next(kind="word"))
            if not self.take(","):
                break
        self.next(")")
        return frozenset(found)


def uses(query):
    """Return every metric that a query uses, and how; refuses what is no query."""
    return Reader(query).whole()
