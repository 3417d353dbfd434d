"""Every command in README and the guides names something that exists: a make target, a subcommand, a flag."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, all_pages, commands, headings, read

from specscope.__main__ import COMMANDS

_ASSIGNMENT = re.compile(r"[A-Z_]+=")


def make_targets() -> set[str]:
    """Return the targets that `make help` lists."""
    return set(re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE))


def flags_of(subcommand: str) -> set[str]:
    """Return the flags that the command page lists for a (sub)command."""
    page = read("docs/reference/cli.md")
    section = re.search(
        rf"^#+ `specscope {subcommand}`\n(.*?)(?=^## |^### |\Z)", page, re.MULTILINE | re.DOTALL
    )
    assert section, f"no command specscope {subcommand}"
    return set(re.findall(r"`(--?[\w-]+)`", section.group(1))) | {"--help"}


def simple_commands(line: str) -> list[list[str]]:
    """Split a line at && and |, and take variables off the front."""
    words = shlex.split(line, comments=True)
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "|"):
            parts.append([])
        elif parts[-1] or not _ASSIGNMENT.match(word):
            parts[-1].append(word)
    return [part for part in parts if part]


def complaint(words: list[str]) -> str:
    """Return what is wrong with one simple command; empty when nothing is."""
    program = Path(words[0]).name
    if program == "make":
        unknown = [word for word in words[1:] if "=" not in word and word not in make_targets()]
        return f"no make target {unknown}" if unknown else ""
    if program == "specscope":
        return _specscope_complaint(words[1:])
    return ""


def _specscope_complaint(words: list[str]) -> str:
    if not words or words[0] not in COMMANDS:
        return f"no subcommand {words}" if words != ["--version"] else ""
    name = " ".join(words[:2]) if f"specscope {' '.join(words[:2])}" in _command_headings() else words[0]
    flags = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
    unknown = [flag for flag in flags if flag not in flags_of(name)]
    return f"specscope {name} has no {unknown}" if unknown else ""


def _command_headings() -> list[str]:
    return headings(read("docs/reference/cli.md"))


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_commands_exist(page: Path) -> None:
    lines = commands(page.read_text(encoding="utf-8"))
    found = [(line, complaint(words)) for line in lines for words in simple_commands(line)]
    assert [(line, wrong) for line, wrong in found if wrong] == []


def test_the_readme_documents_commands() -> None:
    lines = commands(read("README.md"))
    assert any("make demo" in line for line in lines)
    assert any("specscope serve" in line for line in lines)


@pytest.mark.parametrize(
    "line", ["make dmeo", "specscope sevre", "specscope serve --wacth http://gpu1:30000"]
)
def test_a_wrong_command_is_found(line: str) -> None:
    assert [complaint(words) for words in simple_commands(line)] != [""]
