"""The prompts of a canary: the set that is shipped, or a file of the user's own."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from specscope_collectors.job import JobError

MAX_PROMPTS, MAX_FILE_BYTES = 200, 8 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One prompt: a text, or token ids (then no tokenizer or template can change it)."""

    id: str
    text: str | None = None
    input_ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"id {self.id[:40]!r} is no name; use letters, digits, _ . -")
        if (self.text is None) == (self.input_ids is None):
            raise ValueError(f"prompt {self.id} needs either text or input_ids")
        if not (self.text or self.input_ids) or any(token < 0 for token in self.input_ids or ()):
            raise ValueError(f"prompt {self.id} is empty or has a negative token id")


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts with the fingerprint of what is asked: another set, or another length, is another canary."""

    prompts: tuple[Prompt, ...]
    max_new_tokens: int
    fingerprint: str


def prompt_set(file: str | None, max_new_tokens: int) -> PromptSet:
    """Return the prompts of ``file`` (JSON lines), or the shipped ones. Raises `JobError`."""
    prompts = SHIPPED if file is None else read_prompts(Path(file))
    asked = msgspec.json.encode([max_new_tokens, prompts])
    return PromptSet(prompts, max_new_tokens, hashlib.sha256(asked).hexdigest()[:12])


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Return the prompts of a file, one JSON object a line. Raises `JobError` that names file and line."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise JobError(
            f"canary: prompts_file {path} cannot be read ({error.strerror}); check path and rights"
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise JobError(
            f"canary: prompts_file {path} is larger than {MAX_FILE_BYTES} bytes; keep the set small"
        )
    prompts = tuple(
        _prompt(path, number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()
    )
    _check(path, prompts)
    return prompts


def _prompt(path: Path, number: int, line: bytes) -> Prompt:
    try:
        return msgspec.json.decode(line, type=Prompt)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise JobError(
            f'canary: {path}, line {number}: {error}; write {{"id": "code-1", "text": "…"}} '
            'or {"id": "code-1", "input_ids": [1, 2, 3]}'
        ) from None


def _check(path: Path, prompts: tuple[Prompt, ...]) -> None:
    if not prompts:
        raise JobError(f"canary: prompts_file {path} holds no prompt; write one JSON object a line")
    if len(prompts) > MAX_PROMPTS:
        raise JobError(f"canary: prompts_file {path} holds {len(prompts)} prompts; at most {MAX_PROMPTS}")
    names = [prompt.id for prompt in prompts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise JobError(f"canary: {path}: two prompts have the id {twice!r}; each needs its own")


_TEXTS = {
    "code-lru": "Write a Python class LruCache with get and put in O(1).\n\n```python\nclass LruCache:",
    "code-sql": "-- Customers with more than three orders in the last month, and their total\nSELECT",
    "code-c": "/* Reverse a singly linked list in place and return its new head. */\nstruct node *reverse(",
    "code-test": "import pytest\n\n# Tests of a function slugify(title: str) -> str\n\ndef test_slugify_",
    "code-shell": "#!/bin/sh\n# Delete log files older than 14 days, never the newest of a service.\n",
    "code-review": "Review this diff.\n\n-    if count > limit:\n+    if count => limit:\n\nReview:",
    "json-order": '{"order": {"id": 48213, "customer": {"name": "Ines Paulo", "city": "Porto"}, "items": [{"',
    "json-event": '{"time": "2024-05-14T08:31:07Z", "level": "warning", "service": "billing", "message": "',
    "csv-table": "date,city,minimum,maximum,rain_mm\n2024-03-01,Bergen,2.1,6.4,11.8\n2024-03-02,Bergen,",
    "html-form": "<form action=\"/signup\" method=\"post\">\n  <label for=\"email\">E-mail</label>\n  <input",
    "math-trains": "Two trains start at 9:00, 420 km apart, at 80 and 60 km/h towards each other. They meet",
    "math-proof": "Claim: the sum of two odd integers is even. Proof.",
    "math-steps": "Question: A shirt costs 40 after a discount of 20 %. What did it cost before?\nStep 1:",
    "list-packing": "A packing list for three days of hiking in autumn:\n1.",
    "list-capitals": "Capitals: Norway: Oslo. Portugal: Lisbon. Kenya: Nairobi. Peru: Lima. Japan:",
    "prose-harbour": "The harbour was quiet when the last ferry came in. Marta counted the lanterns and",
    "prose-letter": "Dear neighbours,\n\nnext Saturday the street will be closed for the summer party, and",
    "prose-physics": "Why is the sky blue? Sunlight is made of many colours, and the air scatters",
    "prose-history": "The printing press changed Europe in three ways. First,",
    "chat-support": "User: My invoice shows the wrong address. What should I do?\nAssistant:",
    "chat-explain": "User: Explain to a ten-year-old what a database index is.\nAssistant:",
    "chat-translate": "User: Translate into German: The meeting is moved to Thursday afternoon.\nAssistant:",
    "summary-report": "Report: Sales rose by 4 % in the north and fell by 9 % in the south, where two stores "
    "were closed for repairs until June. The new web shop made up for half of it.\nSummary in one sentence:",
    "repeat-copy": "Copy the text exactly. Text: the quick brown fox jumps over the lazy dog, and the dog "
    "does not mind. Copy: the quick",
}  # fmt: skip
SHIPPED = tuple(Prompt(name, text) for name, text in _TEXTS.items())
"""Code, data, arithmetic, prose and chat, since drafts are accepted differently in each."""
