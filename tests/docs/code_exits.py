"""The exit codes that a command's own modules return, read from their source."""

import ast
import importlib
import inspect
import pathlib
import sys

from process.runtime import entry

ROOT = pathlib.Path(__file__).parents[2]
CODES = ("OK", "FAILED", "BAD_SETTINGS")


def returned(module):
    """Every code that a module, or one of the command line that it imports, may return."""
    return {code for one in _closure(module) for code in _of_module(one)}


def _closure(start):
    known, waiting = {start}, [start]
    while waiting:
        here = importlib.import_module(waiting.pop())
        used = {one.__name__ for one in vars(here).values() if inspect.ismodule(one)}
        more = {name for name in used if name.startswith("cli.")} - known
        known |= more
        waiting += more
    return known


def _tree(module):
    return ast.parse(pathlib.Path(module.__file__).read_text())


def _of_module(name):
    module = sys.modules[name]
    for node in ast.walk(_tree(module)):
        match node:
            case ast.Attribute(value=ast.Name(id="entry"), attr=attr) if attr in CODES:
                yield getattr(entry, attr)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=at), attr="exit_code")):
                yield from _of_function(vars(module)[at], "exit_code")


def _of_function(module, name):
    """The integers, and the module's constants that are integers, in what a function returns."""
    (function,) = [one for one in _tree(module).body if getattr(one, "name", "") == name]
    returns = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
    for part in (part for one in returns for part in ast.walk(one.value)):
        found = vars(module).get(part.id) if isinstance(part, ast.Name) else None
        found = part.value if isinstance(part, ast.Constant) else found
        if isinstance(found, int):
            yield found
