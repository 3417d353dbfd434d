"""The house rules that a machine can check: import directions, sizes, annotations, assertions, words."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("collectors", "server", "migrations", "scripts")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 60

Function = ast.FunctionDef | ast.AsyncFunctionDef

ASSERTS = re.compile(r"assert|raises|warns|expect|fail|check|verify")
"""Names of calls that assert; a test may leave that to a helper named so."""

FORBIDDEN = {
    "an unfinished part": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b"),
    "a path of one machine": re.compile(r"(?<![\w.}])/(?:home|root|work|Users)/\w"),
    "the host of a package registry": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|npmjs\.org|npmjs\.com|download\.pytorch\.org)\b"
    ),
}


@cache
def project_files() -> tuple[Path, ...]:
    """Return every file that is or would be committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """Return the Python files under these top folders."""
    return [p for p in project_files() if p.suffix == ".py" and p.relative_to(ROOT).parts[0] in folders]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[Function]:
    """Yield every function of a file, nested ones included."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            yield node


def lines(node: Function) -> int:
    """Return how many lines a function takes, its signature and docstring included."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def place(path: Path, node: Function) -> str:
    """Return where a function is, for the message."""
    return f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_import_directions_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_no_file_is_long() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in python_files(*PRODUCT, "tests")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert not long


def test_no_function_is_long() -> None:
    long = {
        place(path, node): lines(node)
        for path in python_files(*PRODUCT, "tests")
        if "stubs" not in path.parts  # their signatures are those of the compiled kernels
        for node in functions(path)
        if lines(node) > MAX_FUNCTION_LINES
    }
    assert not long


def test_the_usual_file_and_function_are_small() -> None:
    files = [len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*PRODUCT)]
    sizes = [lines(node) for path in python_files(*PRODUCT) for node in functions(path)]
    assert statistics.median(files) <= 100
    assert statistics.median(sizes) <= 10
    assert statistics.quantiles(sizes, n=20)[-1] <= 45


def test_every_function_says_what_it_returns() -> None:
    bare = [
        place(path, node)
        for path in python_files(*PRODUCT)
        for node in functions(path)
        if node.returns is None and node.name != "__init__"
    ]
    assert not bare


def test_every_test_asserts_something() -> None:
    empty = [
        place(path, node)
        for path in python_files("tests")
        for node in functions(path)
        if node.name.startswith("test_") and not asserts(node)
    ]
    assert not empty


def asserts(test: Function) -> bool:
    """Return whether a test contains an assertion or calls something that is named like one."""
    nodes = list(ast.walk(test))
    if any(isinstance(node, ast.Assert) for node in nodes):
        return True
    return any(isinstance(node, ast.Call) and ASSERTS.search(ast.unparse(node.func)) for node in nodes)


def project_texts() -> Iterator[tuple[Path, str]]:
    """Yield every text file with its content; recorded answers (fixtures) are kept as they came."""
    for path in project_files():
        if "fixtures" not in path.parts:
            with suppress(UnicodeDecodeError):  # a picture
                yield path, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_contains(kind: str) -> None:
    found = []
    for path, text in project_texts():
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN[kind].search(line) and path != Path(__file__):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found


def test_the_rules_find_what_they_forbid() -> None:
    examples = ["# TODO: later", "see /work/notes", "https://pypi.org/simple"]
    assert all(pattern.search(text) for pattern, text in zip(FORBIDDEN.values(), examples, strict=True))
    assert not asserts(
        next(n for n in ast.walk(ast.parse("def test_x(): print(1)")) if isinstance(n, Function))
    )
