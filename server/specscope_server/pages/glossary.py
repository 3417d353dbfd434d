"""The words of the product, the same in code, database, API and on screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One word. ``formula`` may be empty."""

    anchor: str
    word: str
    meaning: str
    formula: str = ""


GROUPS: tuple[tuple[str, tuple[Term, ...]], ...] = (
    (
        "Who is watched",
        (
            Term(
                "server",
                "server",
                "A watched inference server: one base URL, possibly many ranks.",
            ),
            Term(
                "launch",
                "launch",
                "One start of a server with one resolved configuration. A new process or a new "
                "configuration is a new launch. Everything measured belongs to one.",
            ),
            Term(
                "rank",
                "rank",
                "The process that reported, by data, tensor, pipeline and expert parallel rank.",
            ),
            Term(
                "cycle",
                "cycle",
                "One speculative round: draft, verify, sample, draft-extend.",
            ),
        ),
    ),
    (
        "Acceptance",
        (
            Term(
                "K",
                "K, draft depth",
                "Draft steps in one cycle.",
                "num_steps",
            ),
            Term(
                "D",
                "D, verified tokens",
                "Tokens verified for each request in one cycle.",
                "num_draft_tokens; K + 1 for a chain (topk = 1)",
            ),
            Term(
                "accepted-drafts",
                "accepted drafts d",
                "Drafts that one cycle keeps, 0 to K, without the bonus token that verification always adds.",
            ),
            Term(
                "accept-length",
                "accept length τ",
                "Tokens that one cycle emits, bonus token included. Never below 1: at 1, no draft is "
                "accepted.",
                "τ = 1 + mean(d) = 1 + Σ Sₖ",
            ),
            Term(
                "draft-acceptance",
                "draft acceptance (strict)",
                "The share of proposed drafts that is kept, without the bonus token. The only rate that "
                "is called acceptance here.",
                "Σ d / Σ proposed drafts = (τ − 1) / K for a chain",
            ),
            Term(
                "engine-rate",
                "engine-reported rate",
                "What the server printed, shown only with the definition of its version. SGLang used to "
                "print τ/D, which counts the bonus token: a draft that is never right still shows 1/D. "
                "At D = 6, a printed 19 % means that 2.4 % of the drafts are accepted. Later versions "
                "print the strict rate.",
                "τ/D (floor 1/D), later (τ − 1)/(D − 1)",
            ),
            Term(
                "survival",
                "survival Sₖ",
                "How often at least k drafts are accepted.",
                "Sₖ = P(d ≥ k)",
            ),
            Term(
                "conditional",
                "conditional αₖ",
                "How often the k-th draft is accepted when the ones before it were.",
                "αₖ = Sₖ / Sₖ₋₁",
            ),
        ),
    ),
    (
        "Finished requests",
        (
            Term(
                "pooled",
                "pooled, mean of requests",
                "Pooled τ counts each cycle once, so long requests weigh more and throughput follows it. The "
                "mean counts each request once: what a typical user sees. Both are shown and never mixed.",
                "1 + Σ accepted / Σ cycles; mean of the requests' own τ",
            ),
            Term(
                "label",
                "label",
                "A name and a value that a client gave its request, such as tenant or data set.",
            ),
            Term(
                "coverage",
                "coverage",
                "Which part of the cycles that the engine counted the reported requests account for.",
                "Σ cycles of requests / growth of spec.verify_calls",
            ),
            Term(
                "peers",
                "peers",
                "The requests of the same launch and the same K: those that a request is compared with.",
            ),
            Term(
                "outlier",
                "request that stands apart",
                "Its accept length is so far from that of its peers, low or high, that chance would give "
                "such a request in less than one window of twenty. Near 1: the draft fails on it. Near "
                "K + 1: its output often repeats itself.",
                "n · 2 · exp(−m · I(τ − 1)) < 5 %, m corrected for how much requests differ",
            ),
        ),
    ),
    (
        "Does it pay",
        (
            Term(
                "times",
                "T_v, T_d, T_e, T_o, T_c, T_ar",
                "Time of verify, of one draft step, of draft-extend, of the unattributed rest, of the "
                "whole cycle, and of a plain decode step at the same batch size.",
            ),
            Term(
                "break-even",
                "break-even τ*",
                "The accept length at which speculation is as fast as plain decoding.",
                "τ* = T_c / T_ar; speed-up = τ / τ*",
            ),
            Term(
                "level-of-evidence",
                "level of evidence",
                "What measured a time: (c) the probe inside the engine, (b) SGLang's device timer, (a) rates "
                "alone. One answer uses one level; where two disagree, a check says so with both numbers.",
                "(a): T_c = running × τ / throughput",
            ),
            Term(
                "unattributed",
                "unattributed",
                "Time that no source explains. It is drawn as a grey hatch and never spread over the rest.",
            ),
            Term(
                "warm-up",
                "warm-up",
                "The first cycles of each batch size and D, which hold compilation. Kept out of every mean.",
            ),
            Term(
                "active-time",
                "active time per cycle",
                "Wall time in which the engine was at work, per cycle: T_c, and the prefills in between.",
                "tokens/s = requests per cycle × τ / active time per cycle",
            ),
            Term(
                "straggler",
                "straggler",
                "The rank that the others of its group wait for: collectives end on all at once, so who "
                "comes last waits least, and its verify is the shortest.",
            ),
        ),
    ),
    (
        "What the draft sees",
        (
            Term(
                "boundary",
                "boundary b",
                "The residual stream after b decoder layers: 0 is the embedding, n the last layer before the "
                "final norm. Every layer id of every tool is turned into one.",
            ),
            Term(
                "layer-id",
                "layer id",
                "A number by which a tool names a layer. Which boundary it means depends on the tool, its "
                "version and the class of the model.",
            ),
            Term(
                "slot",
                "slot",
                "Place in the concatenated hidden states that the draft reads; EAGLE-3 has three.",
            ),
            Term(
                "reference",
                "reference",
                "Profiles of the hidden states that the draft was trained on, or of all boundaries of its "
                "target, in versions.",
            ),
            Term(
                "sink",
                "sink",
                "A row of massive norm, mostly at position 0. It is never pooled with other rows: one of "
                "them can be nearly all of a total.",
            ),
        ),
    ),
    (
        "How a number is to be read",
        (
            Term(
                "evidence",
                "evidence",
                "What a number was computed from, best first: histograms of single requests; growth of "
                "the counters of tokens and verify calls; the engine's own window means (gauges).",
            ),
            Term(
                "idle",
                "idle",
                "The engine has nothing to do. Its acceptance gauges freeze then, so such stretches are "
                "shaded instead of being drawn as a flat line.",
            ),
            Term(
                "stale",
                "stale",
                "Nothing could be read lately, so the number may be of the past.",
            ),
            Term(
                "gone",
                "gone",
                "The server is no longer listed where it was found, so nobody asks it any more. Its data "
                "stays.",
            ),
            Term(
                "gap",
                "gap",
                "Nothing was observed. A gap is never drawn as zero and never bridged by a line.",
            ),
            Term(
                "few",
                "too few to say",
                "The number rests on too few cycles; it is grey.",
            ),
            Term(
                "undetermined",
                "undetermined",
                "What the engine printed contradicts every formula known for its version.",
            ),
            Term(
                "demo",
                "demo",
                "Simulated by the demo engine, not measured. Labelled wherever it appears.",
            ),
        ),
    ),
)
