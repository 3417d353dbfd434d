"""The decision records keep their form, and name enforcement that exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, headings, read

FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
PARTS = ["Context", "Decision", "Consequences", "Enforced by", "Alternatives"]


def section(text: str, name: str) -> str:
    """Return the body of one `##` section."""
    match = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"no section {name}"
    return match.group(1).strip()


def sentences(text: str) -> int:
    """Count sentences: full stops at the end of a word, code left out."""
    return len(re.findall(r"[.!?](?=\s|$)", re.sub(r"`[^`]*`", "x", text)))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_the_five_headings_and_a_quotable_decision(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    number = record.name[:4]
    assert headings(text)[0].startswith(number)
    assert headings(text)[1:] == PARTS
    assert 1 <= sentences(section(text, "Decision")) <= 2


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_enforcement_exists(record: Path) -> None:
    body = section(record.read_text(encoding="utf-8"), "Enforced by")
    named = re.findall(r"`([\w./-]+\.(?:py|toml|js|css|cfg))(?:::(\w+))?`", body)
    assert named, "name the test or lint as `path`"
    for path, function in named:
        assert (ROOT / path).exists(), path
        assert not function or f"def {function}" in read(path), f"{path}::{function}"


def test_numbers_are_used_once_and_every_record_is_in_the_index() -> None:
    repeated = [
        number for number, times in Counter(record.name[:4] for record in RECORDS).items() if times > 1
    ]
    assert repeated == []
    index = read("docs/decisions/README.md")
    assert [record.name for record in RECORDS if f"]({record.name})" not in index] == []
