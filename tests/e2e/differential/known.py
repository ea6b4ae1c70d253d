"""The differences that remain between the simulator and a real API server, each with its reason.

An entry that no longer occurs fails the comparison just as an unlisted difference does.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Known:
    """Differences of one reason: patterns of the request, the place and both sides."""

    reason: str
    request: str
    place: str
    real: str
    simulated: str

    def covers(self, difference):
        """Whether this is the reason of a difference."""
        pairs = (
            (self.request, str(difference.step)),
            (self.place, difference.place),
            (self.real, difference.real),
            (self.simulated, difference.simulated),
        )
        return all(re.search(pattern, text, re.DOTALL) for pattern, text in pairs)


KNOWN = (
    Known(
        "a resource of a built-in group that is not served is refused by name, for it may exist",
        request=r"^unknown resource: GET /api",
        place=r"^answer$",
        real=r"^404 NotFound",
        simulated=r"^501 NotImplemented",
    ),
    Known(
        "there is no namespace controller apart from the store: an empty namespace goes at once",
        request=r": (DELETE|PATCH|PUT|POST) /api/v1/namespaces/[^/]+(/status)?(\?|$)",
        place=r"^(afterwards|answer)",
        real=r"",
        simulated=r"^404",
    ),
    Known(
        "the real server takes a POST to a custom object for one to its collection",
        request=r"^post to an object: POST /apis/differential",
        place=r"^answer$",
        real=r"^409 AlreadyExists",
        simulated=r"^405 MethodNotAllowed",
    ),
    Known(
        "the real server misses the name where a collection of custom objects is PUT",
        request=r"^put to a collection: PUT /apis/differential",
        place=r"^answer$",
        real=r"^400 BadRequest name must be provided",
        simulated=r"^405 MethodNotAllowed",
    ),
    Known(
        "the types do not tell which zero values Go leaves out, so somebody owns them here",
        request=r"/priorityclasses",
        place=r"managedFields",
        real=r"",
        simulated=r"f:globalDefault",
    ),
    Known(
        "the types do not tell which empty lists Go writes, so nobody owns them here",
        request=r"/roles",
        place=r"managedFields",
        real=r"f:rules",
        simulated=r"^(?!.*f:rules)",
    ),
    Known(
        "conditions of a budget are written by nobody here, and not checked",
        request=r"status: (PUT|PATCH) .*/poddisruptionbudgets/",
        place=r"^answer$",
        real=r"^422 Invalid .*status.conditions\[0\]",
        simulated=r"^200",
    ),
    Known(
        "the real server loses a map that a patch replaces where there was none",
        request=r"^odd strategic-merge-patch",
        place=r"^answer.metadata.labels",
        real=r"^None$",
        simulated=r"only",
    ),
    Known(
        "the strategic merge names an element without its key, the real server a missing uid",
        request=r"^strategic patch",
        place=r"^answer$",
        real=r"^422 .*ownerReferences",
        simulated=r"^500 Failure metadata.ownerReferences: an element lacks its merge key",
    ),
    Known(
        "there are no runtime classes, which say what overhead a pod may declare",
        request=r"^create.*: POST .*/pods",
        place=r"^answer$",
        real=r"^403 Forbidden .*Pod Overhead set without",
        simulated=r"^201",
    ),
    Known(
        "label selectors have no comparison of numbers here",
        request=r"^list: GET .*labelSelector=x>1",
        place=r"^answer$",
        real=r"^200",
        simulated=r"^400 BadRequest unable to parse requirement",
    ),
    Known(
        "an apply to a custom object that changes nothing is sometimes written by the real server",
        request=r"^watch: GET .*/widgets",
        place=r"^event",
        real=r"MODIFIED",
        simulated=r"",
    ),
    Known(
        "labels in a status of a Deployment are dropped, and who owns them is told otherwise",
        request=r"status: (PUT|PATCH) .*/deployments/",
        place=r"managedFields",
        real=r"",
        simulated=r"",
    ),
)


def sorted_out(differences):
    """What is not explained, and the entries that explain nothing."""
    used = set()
    unexplained = []
    for difference in differences:
        reasons = [known for known in KNOWN if known.covers(difference)]
        used.update(reasons[:1])
        if not reasons:
            unexplained.append(difference)
    return unexplained, [known for known in KNOWN if known not in used]
