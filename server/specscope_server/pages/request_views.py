"""Finished requests as the pages show them (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.pages.number_views import NumberCard
from specscope_server.pages.views import CheckView, check_views
from specscope_server.pages.wording import MISSING, count_text, number_text
from specscope_server.requests.breakdown_schemas import Part
from specscope_server.requests.parts import LABEL, LENGTHS
from specscope_server.requests.summary_schemas import RequestSummary

MAX_BARS = 24
"""Bars of a sparkline; longer runs of accepted drafts share the last one."""
BAR, GAP, HEIGHT = 5, 1, 20
MIN_CYCLES_SHOWN = 200
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
COLUMNS = (
    ("time", "Finished", False),
    ("", "Request", False),
    ("", "Drafts per cycle", False),
    ("accept_length", "τ", True),
    ("draft_acceptance", "Draft acc.", True),
    ("verify_calls", "Cycles", True),
    ("prompt_tokens", "Prompt", True),
    ("cached_tokens", "Cached", True),
    ("completion_tokens", "Output", True),
    ("e2e_seconds", "Took", True),
    ("", "Launch", False),
    ("", "Labels", False),
)
"""(what it is sorted by, heading, whether it is a number)."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a sparkline, in units of its view box."""

    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Spark:
    """A histogram of accepted drafts, small."""

    width: int
    words: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """Head of a column. ``sort`` is what a press sorts by, "" for columns that cannot be."""

    title: str
    sort: str
    order: str
    """Value of ``aria-sort``."""
    is_number: bool


def spark(histogram: Sequence[int] | None) -> Spark | None:
    """Return the sparkline; None without histogram."""
    if not histogram or not any(histogram):
        return None
    shown = list(histogram)
    if len(shown) > MAX_BARS:
        shown = [*shown[: MAX_BARS - 1], sum(shown[MAX_BARS - 1 :])]
    top = max(shown)
    heights = [max(HEIGHT * steps / top, 1.0) if steps else 0.0 for steps in shown]
    bars = (
        Bar(index * (BAR + GAP), HEIGHT - height, height) for index, height in enumerate(heights) if height
    )
    said = ", ".join(f"{j}: {steps:,}" for j, steps in enumerate(shown))
    return Spark(len(shown) * (BAR + GAP) - GAP, f"cycles by accepted drafts, {said}", tuple(bars))


def headings(sort: str) -> list[Heading]:
    """Return the columns; a press on the one that is sorted by turns its order round."""
    found = []
    for name, title, is_number in COLUMNS:
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "none") if name else "none"
        turned = name if order == "descending" else f"-{name}"
        found.append(Heading(title, turned if name else "", order, is_number))
    return found


def choices_of(by: str, labels: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Return (words, value, whether it is chosen) of what requests can be compared by."""
    values = [*((words, name) for name, (words, _) in LENGTHS.items())]
    values += [(name, f"{LABEL}{name}") for name in labels]
    if by not in [value for _, value in values]:
        values.append((by.removeprefix(LABEL), by))
    return [(words, value, value == by) for words, value in values]


def cards_of(summary: RequestSummary) -> list[NumberCard]:
    """Return the headline numbers of the requests of a range."""
    few = summary.cycles < MIN_CYCLES_SHOWN
    return [_count(summary), _pooled(summary, few), _mean(summary, few), _strict(summary, few),
            _covered(summary), _apart(summary)]  # fmt: skip


def _card(
    key: str, name: str, text: str, unit: str = "", *, facts: Sequence[str] = (),
    why: Sequence[tuple[str, str]], is_few: bool = False, missing: str = "no data",
) -> NumberCard:  # fmt: skip
    is_missing = text == MISSING
    words = missing if is_missing else "too few to say" if is_few else ""
    return NumberCard(
        key=key, name=name, text=text, unit="" if is_missing else unit,
        state_kind="unknown" if words else "ok", state_words=words, is_grey=bool(words),
        facts=tuple(filter(None, facts)), explanation=tuple(pair for pair in why if pair[1]),
    )  # fmt: skip


def _count(summary: RequestSummary) -> NumberCard:
    facts = [
        f"{summary.without_counts:,} without counts" if summary.without_counts else "",
        f"{summary.without_histogram:,} without histogram" if summary.without_histogram else "",
        f"computed from 1 in {summary.sampled_every:,}" if summary.sampled_every > 1 else "",
    ]
    why = [("Definition", "Requests that finished in the range and match"), ("Note", summary.note)]
    return _card("requests", "Finished requests", count_text(summary.total), facts=facts, why=why)


def _pooled(summary: RequestSummary, few: bool) -> NumberCard:
    bounds = (summary.accept_length_low, summary.accept_length_high)
    low, high = (number_text(bound) for bound in bounds)
    facts = [
        f"95 %: {low} to {high}" if None not in bounds else "", f"n = {count_text(summary.cycles)} cycles",
    ]  # fmt: skip
    why = [
        ("Definition", "1 + Σ accepted drafts / Σ cycles"),
        ("Interval", "linearised ratio, clustered by request"),
        ("Source", "counts in the engine's answers"),
    ]
    text = number_text(summary.accept_length)
    return _card("pooled", "Accept length τ, pooled", text, "tokens/cycle", facts=facts, why=why, is_few=few)


def _mean(summary: RequestSummary, few: bool) -> NumberCard:
    gap = "" if summary.gap is None else f"pooled is {abs(summary.gap):.2f} {_direction(summary.gap)}"
    if summary.gap is not None and abs(summary.gap) < 0.005:
        gap = "equal to the pooled one"
    facts = [gap, f"n = {count_text(summary.requests)} requests"]
    why = [("Definition", "Mean of the requests' own τ: each counts once"), ("Gap", summary.gap_note)]
    text = number_text(summary.request_mean_accept_length)
    return _card("mean", "Accept length τ, mean", text, "tokens/cycle", facts=facts, why=why, is_few=few)


def _direction(gap: float) -> str:
    return "lower" if gap < 0 else "higher"


def _strict(summary: RequestSummary, few: bool) -> NumberCard:
    facts = [f"{count_text(summary.accepted_drafts)} of {count_text(summary.proposed_drafts)} drafts"]
    why = [("Definition", "Σ accepted / Σ proposed drafts, without the bonus token")]
    text = number_text(summary.draft_acceptance, "1")
    return _card("strict", "Draft acceptance", text, "%", facts=facts, why=why, is_few=few)


def _covered(summary: RequestSummary) -> NumberCard:
    found = summary.coverage
    facts = [f"{count_text(found.request_cycles)} of {count_text(found.engine_cycles)} cycles"]
    why = [
        ("Definition", "Cycles of the reported requests / cycles that the engine counted, over all labels"),
        ("Source", "spec.verify_calls (else spec.cycles) of the same launches and range"),
    ]
    text = MISSING if found.share is None else f"{100 * found.share:.0f}"
    return _card("coverage", "Coverage", text, "%", facts=facts, why=why)


def _apart(summary: RequestSummary) -> NumberCard:
    found = summary.outliers
    facts = [f"of {count_text(found.judged)} judged", f"{count_text(found.not_judged)} not judged"]
    text = f"{found.low:,} / {found.high:,}" if found.judged else MISSING
    return _card(
        "apart",
        "Stand apart, low / high",
        text,
        facts=facts,
        why=[("Rule", found.rule)],
        missing="none judged",
    )


def interval_text(part: Part) -> str:
    """Return "2.10 to 2.31"; a dash without interval."""
    if part.accept_length_low is None or part.accept_length_high is None:
        return MISSING
    return f"{part.accept_length_low:.2f} to {part.accept_length_high:.2f}"


def depths_text(part: Part) -> str:
    """Return "3", or "3, 5, varies"."""
    return ", ".join("varies" if depth is None else str(depth) for depth in part.depths)


def chance_text(log10_chance: float) -> str:
    """Return "1 in 1,200", or "1 in 10¹⁴": a bound on a chance has no third digit."""
    power = -log10_chance
    if power < 6:
        return f"1 in {float(f'{10**power:.1e}'):,.0f}"
    return f"1 in 10{f'{power:.0f}'.translate(SUPERSCRIPTS)}"


VERDICTS = {
    "ordinary": ("ok", "as expected among its peers"),
    "low": ("warn", "stands apart: accepts less than its peers"),
    "high": ("warn", "stands apart: accepts more than its peers"),
    "not_judged": ("unknown", "not judged: too few cycles, or too few peers"),
    "canary": ("unknown", "asked by a canary: its peers are those of the page Canary, not users' requests"),
    "unread": ("unknown", "not judged: too many requests around it, of which a part was read"),
}
"""Verdict of the API → (kind of the shape, words)."""


def badges(summary: RequestSummary) -> list[CheckView]:
    """Return the self-checks as badges."""
    return check_views(summary.checks)
