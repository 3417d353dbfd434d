"""The summary of a log in words, for a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.rate_definition import NONE
from specscope_collectors.sources.sglang_log.summary import LaunchSummary, RankSummary, Summary

MAX_LISTED = 20
DILUTED = frozenset({"0.4.6", "0.5.2"})
"""Versions whose accept length counts prefill batches as cycles of one token."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_REMEDIES = {
    "no_stamp": "no time in the line",
    "no_date": "a time without a date: give --date",
    "no_year": "a date without a year: give --year",
    "bad_stamp": "a time that does not exist",
}


def report(summary: Summary) -> Iterator[str]:
    """Yield the lines of the report; text from the log is shown without control characters."""
    yield f"read      {summary.lines} lines, {summary.bytes_read} bytes"
    yield f"matched   {summary.decode_lines} Decode lines, {summary.prefill_lines} Prefill lines"
    if summary.mirror_lines:
        yield f"mirrors   {summary.mirror_lines} of them repeat what the first rank of their group printed"
    if summary.cut_lines:
        yield f"cut       {summary.cut_lines} of them have no end; their whole fields are used"
    if summary.first_ms is not None and summary.last_ms is not None:
        yield f"time      {iso(summary.first_ms)} to {iso(summary.last_ms)}"
    yield from _counts("refused", {_REMEDIES.get(name, name): n for name, n in summary.refused.items()})
    yield from _counts("events", summary.events)
    yield from _forms(summary.forms)
    yield from (f"damaged   {damage}" for damage in summary.damage)
    for number, launch in enumerate(summary.launches[:MAX_LISTED], start=1):
        yield from _launch(number, launch)
    if len(summary.launches) > MAX_LISTED:
        yield f"          and {len(summary.launches) + summary.further_launches - MAX_LISTED} more launches"


def iso(time_ms: int) -> str:
    """Return a time in ISO 8601, or the number where no calendar reaches."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(text: object) -> str:
    """Return untrusted text for a terminal."""
    return _CONTROL.sub(" ", str(text))[:300]


def _counts(word: str, counts: dict[str, int] | Counter[str]) -> Iterator[str]:
    for name, count in sorted(counts.items(), key=lambda entry: -entry[1])[:MAX_LISTED]:
        if count:
            yield f"{word:<10}{count} × {plain(name)}"


def _forms(forms: Counter[str]) -> Iterator[str]:
    for form, count in forms.most_common():
        note = "; their accept length counts prefill batches, so it is too low" if form in DILUTED else ""
        yield f"form      {count} Decode lines are written as SGLang {form} writes them{note}"


def _launch(number: int, launch: LaunchSummary) -> Iterator[str]:
    known = (launch.model, launch.algorithm, launch.draft_tokens and f"D = {launch.draft_tokens}")
    shown = ", ".join(str(part) for part in known if part) or "configuration not in the log"
    yield f"launch {number}  {iso(launch.time_ms)} {plain(launch.reason)}: {plain(shown)}"
    decision = launch.definition
    if decision is not None and decision.definition != NONE:
        yield f"          printed rate: {decision.definition} ({decision.reason})"
    for rank, found in list(launch.ranks.items())[:MAX_LISTED]:
        if not found.is_mirror:
            yield _rank(rank, found)


def _rank(rank: Rank, found: RankSummary) -> str:
    length, cycles = found.accept_length.median, found.cycles_per_second.median
    parts = [f"{found.decode_lines} Decode lines"]
    if length is not None:
        parts.append(f"accept length {length:.2f} (median of {found.accept_length.count} windows)")
    if cycles is not None:
        parts.append(f"{cycles:.1f} cycles/s (median)")
    return f"          {rank}: " + ", ".join(parts)
