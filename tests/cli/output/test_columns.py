"""Columns of text and of figures, and those that `-o wide` adds."""

from cli.output import columns

TABLE = (
    *columns.left("NAME"),
    *columns.more("NODE"),
    *columns.right("CPU"),
    columns.Column("WHY", narrow=True),
    *columns.more("WHY"),
)
ROWS = [("web", "n1", "4", "short", "not so short"), ("a-job", "n2", "16", "-", "-")]


def test_figures_end_below_each_other():
    assert list(columns.lines(TABLE, ROWS)) == [
        "NAME   CPU  WHY",
        "web      4  short",
        "a-job   16  -",
    ]


def test_a_wide_table_has_more_and_cuts_nothing():
    assert list(columns.lines(TABLE, ROWS, wide=True)) == [
        "NAME   NODE  CPU  WHY",
        "web    n1      4  not so short",
        "a-job  n2     16  -",
    ]


def test_without_rows_there_is_the_head():
    assert list(columns.lines(TABLE, [])) == ["NAME  CPU  WHY"]


def test_a_text_that_is_cut_says_so():
    assert [columns.cut(text, 4) for text in ("", "abcd", "abcde")] == ["", "abcd", "abc…"]
