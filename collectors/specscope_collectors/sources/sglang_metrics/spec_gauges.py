"""What the engine's speculative gauges may say together.

They are means over a log window, printed side by side, and 0 has three meanings:

* accept length 0: no speculation, or no window yet. It is no measurement (left out before this point);
* rate 0: the same, unless the accept length of the window is 1: then nothing was accepted, which is real;
* depth 0: the same, unless an adaptive engine sits in its tier without drafts (D = 1), which is real.

Impossible values are refused. An accept length may exceed D by one: an engine may add two tokens of its own
per cycle instead of one (UNO). Under adaptive depth the gauges of K and D tell the tier at the log tick,
while the window may have seen a deeper one; only then is an accept length beyond D + 1 sound. A rate above 1
is not even then: its numerator spans the window and its denominator does not.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from specscope_collectors.increments import LabelPairs, SeriesKey

ACCEPT_LENGTH = "spec.accept_length"
RATE = "spec.engine_accept_rate"
NUM_STEPS = "spec.num_steps"
NUM_DRAFT_TOKENS = "spec.num_draft_tokens"
_GAUGES = frozenset({ACCEPT_LENGTH, RATE, NUM_STEPS, NUM_DRAFT_TOKENS})

Refuse = Callable[[SeriesKey, str], None]


def settle(levels: MutableMapping[SeriesKey, float], *, is_adaptive: bool, refuse: Refuse) -> None:
    """Take out of ``levels`` the zeros that are no measurement and, calling ``refuse``, impossible values."""
    label_sets = dict.fromkeys(labels for metric, labels in levels if metric in _GAUGES)
    for labels in label_sets:
        _settle_length(levels, labels, is_adaptive, refuse)
        _settle_rate(levels, labels, refuse)
        _settle_depth(levels, labels)


def _settle_length(
    levels: MutableMapping[SeriesKey, float], labels: LabelPairs, is_adaptive: bool, refuse: Refuse
) -> None:
    key = (ACCEPT_LENGTH, labels)
    length, drafts = levels.get(key), levels.get((NUM_DRAFT_TOKENS, labels))
    if length is None:
        return
    if length < 1:
        refuse(key, f"accept length {length:g} is below 1: a cycle emits at least the bonus token")
        del levels[key]
    elif drafts is not None and length > drafts + 1 and not is_adaptive:
        refuse(key, f"accept length {length:g} is impossible with {drafts:g} verified tokens per cycle")
        del levels[key]


def _settle_rate(levels: MutableMapping[SeriesKey, float], labels: LabelPairs, refuse: Refuse) -> None:
    key = (RATE, labels)
    rate, length = levels.get(key), levels.get((ACCEPT_LENGTH, labels))
    if rate is None:
        return
    if rate > 1:
        refuse(key, f"accept rate {rate:g} is above 1 (adaptive depth prints this after a switch)")
        del levels[key]
    elif rate == 0 and length is None:
        del levels[key]
    elif rate == 0 and length is not None and length > 1:
        refuse(
            key, f"accept rate 0 beside accept length {length:g} (adaptive depth prints this after a switch)"
        )
        del levels[key]


def _settle_depth(levels: MutableMapping[SeriesKey, float], labels: LabelPairs) -> None:
    key = (NUM_STEPS, labels)
    has_window = (ACCEPT_LENGTH, labels) in levels
    is_tier_without_drafts = has_window and levels.get((NUM_DRAFT_TOKENS, labels), 1.0) == 1
    if levels.get(key) == 0 and not is_tier_without_drafts:
        del levels[key]
