"""Workers find tests compiled in the form that pytest would write itself."""

import sys

from _pytest.assertion import rewrite

from tests.runner import compiling


def test_what_is_compiled_is_found_until_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", None)
    file = tmp_path / "test_one.py"
    file.write_text("def test_it():\n    assert [1] == [2]\n")
    compiling.compiled(file)
    code = rewrite._read_pyc(file, compiling.written(file))
    assert code is not None
    # Its assertions say what was compared.
    assert "@pytest_ar" in code.co_names
    file.write_text("def test_it():\n    assert [1] == [3]\n")
    assert rewrite._read_pyc(file, compiling.written(file)) is None


def test_a_test_with_an_error_is_left_to_whoever_imports_it(tmp_path):
    file = tmp_path / "test_two.py"
    file.write_text("def test_it(:\n")
    compiling.compiled(file)
    assert not compiling.written(file).exists()
