"""Split a line into the status lines that it holds: usually one, two when two processes wrote at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from specscope_collectors.logs.stamps import BRACKET

_BODY = re.compile(r"(Decode|Prefill) batch(?: \[\d+\])?[.,] ?")
_HEAD_CHARACTERS = 200
MAX_GAP = 120
"""Most characters between the stamp and the words; more is another line that quotes a status line."""


@dataclass(slots=True)  # not frozen: making one takes a third of the time
class Segment:
    """One status line."""

    is_decode: bool
    prefix: str
    """What stands in front: stamps, ranks, and whatever wrote them."""
    body: str
    """``#running-req: 8, #token: …``"""
    is_open: bool
    """Another writer follows on the same line, so that the end may be missing."""
    head: str
    """``Decode batch.`` or ``Decode batch,``: which versions write it so."""


def split(line: str) -> Iterator[Segment]:
    """Yield the status lines of a line without colours."""
    matches = list(_BODY.finditer(line))
    head = line[: matches[0].start()][:_HEAD_CHARACTERS] if len(matches) > 1 else ""
    before = 0
    for at, match in enumerate(matches):
        following = matches[at + 1].start() if at + 1 < len(matches) else len(line)
        end = _end_of_body(line, match.end(), following)
        prefix = line[before : match.start()]
        yield Segment(
            is_decode=match[1] == "Decode",
            prefix=f"{head} {prefix}" if at else prefix,
            body=line[match.end() : end],
            is_open=end < len(line),
            head=match[0],
        )
        before = end


def _end_of_body(line: str, start: int, following: int) -> int:
    """Where the next stamp begins: whatever follows it is somebody else's."""
    stamp = BRACKET.search(line, start, following)
    return stamp.start() if stamp else following


def is_quoted(prefix: str) -> bool:
    """Whether the words stand inside another message (a logged prompt, say) and are no status line."""
    message = prefix[prefix.rfind("]") + 1 :]
    return len(message) > MAX_GAP or "obj=" in message or "text=" in message or "\\n" in message
