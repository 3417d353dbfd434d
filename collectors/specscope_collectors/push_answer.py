"""What the server's answer to a push means: go on, wait, send less, or set a batch aside."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

import httpx
import msgspec

MAX_ANSWER_CHARACTERS = 300
PROBLEM_TYPE = "application/problem+json"
"""Of each error that Specscope itself answers; a proxy before it, or another server, answers otherwise."""
_PLACE = re.compile(r"batches\.(\d+)")


class Verdict(Enum):
    """What to do next."""

    DONE = auto()
    AGAIN = auto()
    """The same may work later."""
    LESS = auto()
    """The request was too large."""
    BAD = auto()
    """A batch can never be applied: `Answer.place`, or one among them when there is no place."""
    FAILED = auto()
    """The server failed, perhaps over one batch: it may be a fault of the moment."""
    GZIP = auto()
    """Somebody on the way does not know zstd."""
    DENIED = auto()
    """Token missing, wrong, revoked or of another scope: a person must act."""
    WRONG = auto()
    """What answers is not Specscope: a person must act."""


class BatchReceipt(msgspec.Struct, frozen=True):
    """What became of one batch."""

    collector_id: str
    outcome: str
    applied_up_to: int | None = None
    also_collected_by: list[str] = []
    refused: dict[str, int] = {}
    """Reason → observations that were not stored."""


class Receipt(msgspec.Struct, frozen=True):
    """What became of all of them."""

    applied: int
    repeated: int
    batches: list[BatchReceipt]


class _Item(msgspec.Struct, frozen=True):
    location: str = ""


class _Problem(msgspec.Struct, frozen=True):
    detail: str = ""
    errors: list[_Item] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer means."""

    verdict: Verdict
    problem: str = ""
    receipt: Receipt | None = None
    place: int | None = None
    """Which batch of the request it is about; all before it are applied."""
    retry_seconds: float = field(default=0.0)
    """Not before this."""
    is_ours: bool = True
    """Whether Specscope said it, and nobody between."""


def read(response: httpx.Response, sent: int, token_sent: bool) -> Answer:
    """Return what ``response`` to ``sent`` batches means."""
    status = response.status_code
    if status == httpx.codes.OK:
        return _receipt(response, sent)
    problem = _problem(response)
    words = f"HTTP {status}: {(problem.detail or response.text)[:MAX_ANSWER_CHARACTERS]}"
    place = _place(problem, sent)
    if status in (401, 403):
        words = f"the server wants a token and none was sent ({words})" if not token_sent else words
        return Answer(Verdict.DENIED, words)
    is_ours = response.headers.get("content-type", "").startswith(PROBLEM_TYPE)
    if status == 413:
        return Answer(Verdict.LESS, words, is_ours=is_ours)
    if status == 415:
        return Answer(Verdict.GZIP, words)
    if status in (400, 422) and is_ours:  # else it says nothing about a batch: none must be given up for it
        return Answer(Verdict.BAD, words, place=place)
    if status == 500 and is_ours:
        return Answer(Verdict.FAILED, words, place=place)
    if status in (408, 425, 429) or status >= 500:
        return Answer(Verdict.AGAIN, words, retry_seconds=_retry_after(response))
    return Answer(Verdict.WRONG, f"{words}; is --server the address of a Specscope?")


def _receipt(response: httpx.Response, sent: int) -> Answer:
    """A proxy's log-in page is 200 too: only a receipt for what was sent counts."""
    try:
        receipt = msgspec.json.decode(response.content, type=Receipt)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Answer(Verdict.WRONG, "the answer is no receipt; is --server the address of a Specscope?")
    if not receipt.applied + receipt.repeated == len(receipt.batches) == sent:
        told = f"{len(receipt.batches)} batches were acknowledged, {sent} were sent"
        return Answer(Verdict.WRONG, f"the receipt does not fit: {told}")
    return Answer(Verdict.DONE, receipt=receipt)


def _problem(response: httpx.Response) -> _Problem:
    try:
        return msgspec.json.decode(response.content, type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Problem()


def _place(problem: _Problem, sent: int) -> int | None:
    match = _PLACE.match(problem.errors[0].location) if problem.errors else None
    place = int(match[1]) if match else sent
    return place if place < sent else None


def _retry_after(response: httpx.Response) -> float:
    """Seconds only; a date would need clocks that agree. An hour at most."""
    text = response.headers.get("retry-after", "").strip()
    return min(float(text[:6]), 3_600.0) if text.isascii() and text.isdigit() else 0.0
