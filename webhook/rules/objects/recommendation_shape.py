"""Check Recommendations and ScheduleExplanations: questions that have no answer."""

from api.koordinator import explanation
from api.koordinator.metrics import analysis
from domain.pods import label_syntax
from webhook import review


def check(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at which pods are meant."""
    target = analysis.read_recommendation(asked.object).spec.target
    warnings, selector = [], target.pod_selector
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        warnings.append("spec.target.podSelector: empty, so every pod of the namespace counts")
    if target.workload is not None and selector is not None:
        unused = "podSelector" if target.type == "workload" else "workload"
        warnings.append(f"spec.target.{unused}: ignored because type is {target.type}")
    faults = label_syntax.bad_selector("spec.target.podSelector", selector)
    return review.Findings(tuple(faults), tuple(warnings))


def check_question(asked: review.Review, _picture: review.Picture) -> review.Findings:
    """Look at the key of the pod or job that is asked about."""
    found = explanation.read_schedule_explanation(asked.object)
    key = found.spec.question_object_key
    if not key or "/" in key:
        return review.Findings()
    text = f'spec.questionObjectKey: "{key}" names no namespace; write namespace/name'
    return review.Findings((), (text,))
