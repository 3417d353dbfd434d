"""Ids → boundaries with the rule in words, or why it cannot be told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specscope_collectors.layer_ids import sglang
from specscope_collectors.layer_ids.rules import TOOLS, Ids, NeedsLayersError, Rule, System, rules_in
from specscope_collectors.layer_ids.versions import ANY, Span, span_of, text_of

MAX_ID = 4_096
MAX_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which ids, whose, and what is known of the engine and the model."""

    system: System
    ids: Ids | None
    """None = none were named: the default holds."""
    version: str | None = None
    model_class: str | None = None
    """Class of the target as its configuration names it (`architectures`); only SGLang's rule needs it."""
    layers: int | None = None
    """Decoder layers n of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The answer."""

    ids: Ids | None
    boundaries: Ids | None
    """Ascending, as slots are; None: it cannot be told, and ``reason`` says why. () = nothing is captured."""
    rule: str
    source: str
    reason: str = ""
    notes: tuple[str, ...] = ()
    is_default: bool = False
    """Nobody named ids: the tool guesses."""
    candidates: tuple[Ids, ...] = ()
    """What it may be where it cannot be told, oldest rule first."""
    dropped: Ids = ()
    """Ids that an engine never meets and leaves out without a word."""


def as_list(numbers: Ids) -> str:
    """Return numbers as a list is written."""
    return "[" + ", ".join(map(str, numbers)) + "]"


def resolve(asked: Question) -> Resolved:
    """Turn ids into boundaries."""
    wrong = _wrong_numbers(asked)
    if wrong:
        return _untold(asked, wrong)
    if asked.system is System.SGLANG:
        return _by_sglang(asked)
    tool = TOOLS[asked.system]
    rules = rules_in(tool.eras, span_of(asked.version))
    found = [_by_tool(asked, rule) for rule in rules]
    return _agreed(asked, rules, found, f"{tool.title}: ", tool.source, tool.notes)


def _wrong_numbers(asked: Question) -> str:
    if asked.layers is not None and not 0 < asked.layers <= MAX_ID:
        return f"a model has no {asked.layers} decoder layers"
    if asked.ids == ():
        return "the list is empty"
    if asked.ids is not None and any(abs(number) > MAX_ID for number in asked.ids):
        return f"an id is beyond {MAX_ID}"
    return ""


def _untold(asked: Question, reason: str, rule: str = "", source: str = "") -> Resolved:
    return Resolved(ids=asked.ids, boundaries=None, rule=rule, source=source, reason=reason)


# SGLang


def _by_sglang(asked: Question) -> Resolved:
    family, span = sglang.family_of(asked.model_class), span_of(asked.version)
    if family is None:
        return _unknown_class(asked, span)
    rules = rules_in(family.eras, span)
    found = [_by_engine(asked, rule, last) for rule in rules for last in _last_captured(family, span)]
    prefix = f"SGLang {(asked.version or 'of unknown version')[:MAX_NAME]}, {family.name}: "
    return _agreed(asked, rules, found, prefix, sglang.SOURCE, tuple(_version_notes(asked, span)))


def _unknown_class(asked: Question, span: Span) -> Resolved:
    """Without a class every rule may hold; where all agree (ids from 1 on) it does not matter."""
    named = (asked.model_class or "")[:MAX_NAME]
    rules = [rule for family in sglang.FAMILIES for rule in rules_in(family.eras, span)]
    rules = list(dict.fromkeys(rules))
    found = [_by_engine(asked, rule, False) for rule in rules]
    candidates = tuple(dict.fromkeys(each.boundaries for each in found if each.boundaries is not None))
    who = f"SGLang's rule for {named} is not known here" if named else "the class of the model is not known"
    reason = f"{who}, and rules differ by class"
    return Resolved(
        ids=asked.ids, boundaries=None, rule="", source=sglang.SOURCE, reason=reason, candidates=candidates
    )


def _version_notes(asked: Question, span: Span) -> Iterator[str]:
    if span == ANY:
        yield "the version is not known"
    elif span.low > sglang.LAST_READ:
        yield f"newer than {text_of(sglang.LAST_READ)}, the newest whose code was read: its rule is assumed"
    elif span.high < sglang.FIRST_READ:
        yield f"older than {text_of(sglang.FIRST_READ)}, the oldest whose code was read: its rule is assumed"
    if asked.model_class == "KimiK25ForConditionalGeneration" and span.high <= (0, 5, 8):
        yield "this version has no class for Kimi K2.5: the rule is that of its DeepSeek language model"


def _last_captured(family: sglang.Family, span: Span) -> tuple[bool, ...]:
    """Return whether the state behind the last layer is captured; both, where versions of the span differ."""
    since = family.last_captured_from
    if since is None or span.high < since:
        return (False,)
    return (True,) if span.low >= since else (False, True)


def _by_engine(asked: Question, rule: Rule, last: bool) -> Resolved:
    if asked.ids is None:
        return _default(asked, rule)
    try:
        shift = rule.shift(asked.ids, asked.layers)
    except NeedsLayersError:
        return _untold(asked, "the number of decoder layers is needed", rule.words)
    most = MAX_ID if asked.layers is None else asked.layers - (0 if last else 1)
    kept = tuple(number for number in asked.ids if 0 <= number + shift <= most)
    boundaries = tuple(sorted({number + shift for number in kept}))
    dropped = tuple(number for number in asked.ids if number not in kept)
    notes = tuple(_notes(asked, boundaries, dropped))
    return Resolved(
        ids=asked.ids, boundaries=boundaries, rule=rule.words, source="", notes=notes, dropped=dropped
    )


def _notes(asked: Question, boundaries: Ids, dropped: Ids) -> Iterator[str]:
    ids = asked.ids or ()
    if dropped:
        yield (
            f"ids {as_list(dropped)} are met by no layer and left out without a word: "
            f"{len(boundaries)} slots instead of {len(ids)}"
        )
    if not boundaries:
        yield "nothing is captured: the draft's fc is skipped without a word"
    if len(set(ids)) < len(ids):
        yield "a repeated id is captured once"
    if list(ids) != sorted(ids):
        yield "slots are by depth, not in the order of the list"
    if 0 in boundaries:
        yield "boundary 0 is the embedding: no residual exists there yet, and some models fail on it"
    if asked.layers is None and asked.system is not System.BOUNDARIES:
        yield "the number of layers is not known, so that ids beyond it cannot be seen"


# Tools


def _by_tool(asked: Question, rule: Rule) -> Resolved:
    if asked.ids is None:
        return _default(asked, rule)
    reason = _out_of_range(asked, rule)
    if reason:
        return _untold(asked, reason, rule.words)
    shift = rule.shift(asked.ids, asked.layers)
    boundaries = tuple(sorted({number + shift for number in asked.ids}))
    notes = [note for note in _notes(asked, boundaries, ()) if "fail on it" not in note]
    if asked.system is System.VLLM and asked.layers in asked.ids:
        notes.append("vLLM's DeepSeek class cannot give the state behind the last layer")
    return Resolved(ids=asked.ids, boundaries=boundaries, rule=rule.words, source="", notes=tuple(notes))


def _out_of_range(asked: Question, rule: Rule) -> str:
    ids, layers = asked.ids or (), asked.layers
    if asked.system is System.HUGGING_FACE and (-1 in ids or (layers is not None and layers in ids)):
        return "the last of output_hidden_states is taken behind the final norm: it is no boundary"
    low = [number for number in ids if number < rule.least]
    if low:
        return f"{TOOLS[asked.system].title} gives {as_list(tuple(low))} no meaning that is known"
    if layers is not None:
        shift = rule.shift(ids, layers)
        high = [number for number in ids if number + shift > layers]
        if high:
            return f"{as_list(tuple(high))} is out of range: the model has {layers} layers"
    return ""


# Both


def _default(asked: Question, rule: Rule) -> Resolved:
    if rule.default is None:
        return _untold(asked, "no ids are named, and there is no default", rule.words)
    words = "no ids are named: the default"
    if asked.layers is None:
        return Resolved(
            ids=None, boundaries=None, rule=words, source="", is_default=True,
            reason="the default follows the number of decoder layers, which is not known",
        )  # fmt: skip
    places = rule.default(asked.layers)
    if list(places) != sorted(set(places)) or places[0] < 0:
        return _untold(asked, f"a model of {asked.layers} layers is too shallow for the default", words)
    note = f"guessed as (2, n//2, n − 3) of n = {asked.layers}: nobody said what the draft was trained on"
    return Resolved(ids=None, boundaries=places, rule=words, source="", notes=(note,), is_default=True)


def _agreed(
    asked: Question, rules: list[Rule], found: list[Resolved], prefix: str, source: str,
    notes: tuple[str, ...],
) -> Resolved:  # fmt: skip
    """Return the one answer, or the choice between several where the version leaves it open."""
    answers = list(dict.fromkeys((each.boundaries, each.dropped) for each in found))
    first = found[-1]
    if len(answers) == 1:
        words = " or ".join(dict.fromkeys(each.rule for each in found))
        return Resolved(
            ids=first.ids, boundaries=first.boundaries, rule=f"{prefix}{words}", source=source,
            reason=first.reason, notes=(*first.notes, *notes), is_default=first.is_default,
            dropped=first.dropped,
        )  # fmt: skip
    candidates = tuple(each.boundaries for each in found if each.boundaries is not None)
    words = " or ".join(
        f"{as_list(each.boundaries)} ({each.rule})" for each in found if each.boundaries is not None
    )
    version = (asked.version or "")[:MAX_NAME]
    which = (
        f"{version} lies between versions that read ids otherwise" if version else "the version is not known"
    )
    return Resolved(
        ids=asked.ids, boundaries=None, rule=prefix.rstrip(": "), source=source,
        reason=f"{which}: {words}", notes=notes, candidates=candidates,
    )  # fmt: skip
