"""The part of JSONPath that `-o jsonpath=` understands."""

import pytest

from cli.output import answers, json_path

BODY = {
    "items": [
        {"name": "a", "namespace": "x", "labels": {"a.b/c": "1"}, "cpu": 4},
        {"name": "b", "cpu": None},
    ],
    "ready": True,
}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{.items[*].name}", "a b"),
        (".ready", "true"),
        ("{.items[0].cpu}", "4"),
        ("{.items[-1].name}", "b"),
        ("{.items[7].name}", ""),
        ("{$.items[0].labels['a.b/c']}", "1"),
        ('{range .items[*]}{.name}{"\\t"}{@.cpu}{"\\n"}{end}', "a\t4\nb\tnull\n"),
        ("all: {.items[*].absent}.", "all: ."),
        ('{.items[?(@.name=="a")].namespace}', "x"),
        ("{.items[?(@.name=='b')].name}", "b"),
        ("{.items[?(@.name!='b')].name}", "a"),
        ("{.items[?(@.cpu>3)].name}", "a"),
        ("{.items[?(@.cpu<=3.5)].name}", ""),
        ("{.items[?(@.namespace)].name}", "a"),
        ("{.items[?(@.labels['a.b/c']=='1')].name}", "a"),
        ("{.items[?(@.labels['a.b/c'] == '2')].name}", ""),
        ('{range .items[?(@.cpu==4)]}{.name}{"\\n"}{end}', "a\n"),
        ("{.items[?(@.cpu=='4')].name}", ""),
        ("{.items[?(@.ready==true)].name}", ""),
        ("{.items[0].labels}", '{"a.b/c": "1"}'),
    ],
    ids=str,
)
def test_what_a_template_finds(template, said):
    assert json_path.found(json_path.parse(template), BODY) == said


@pytest.mark.parametrize(
    "template",
    [
        "{.a",
        "{.a}}",
        "{range .items[*]}x",
        "{.items[?(@.a==1 && @.b)]}",
        "{.items[?(@.a==x)]}",
        "{.items[?(@.a==1]}",
        "{.items[?(a==1)]}",
        "{.items[?(@.a=~'x')]}",
        '{"x}',
        "." * 5000,
    ],
    ids=lambda text: text[:20],
)
def test_what_makes_no_sense_is_refused(template):
    with pytest.raises(ValueError, match="JSONPath"):
        json_path.parse(template)


def test_names_are_those_of_objects_with_their_namespaces():
    assert answers.names(BODY) == ["x/a", "b"]


def test_documents_are_told_from_tables(capsys):
    assert [answers.is_document(one) for one in ("text", "wide", "yaml", "jsonpath={.a}")] == [
        False, False, True, True,
    ]  # fmt: skip
    answers.show("yaml", {"a": 1})
    answers.show("jsonpath={.a}", {"a": "x\x1b[1m\ny"})
    assert capsys.readouterr().out == "a: 1\nx\\x1b[1m\ny"


def test_an_answer_without_names_says_so(capsys):
    answers.show("name", BODY)
    assert capsys.readouterr() == ("x/a\nb\n", "")
    answers.show("name", {"findings": [{"check": "crd"}]})
    told = capsys.readouterr()
    assert (told.out, "nothing in this answer has a name" in told.err) == ("", True)
