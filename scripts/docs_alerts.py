"""The page of alert rules: those that are shipped, the fields of a rule, kinds of conditions, signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docs_markdown import code, page, table

from specscope_server.alerts.rules.durations import write_duration
from specscope_server.alerts.rules.kinds import kinds, schema_of
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.schema import Inhibition, Rule
from specscope_server.alerts.rules.signals import signals
from specscope_server.series.signals import PREFIX

INTRODUCTION = """
Rules that are shipped and on by default, then what a rule of your own may say. [The
guide](../guide/alerts.md) tells how to write, check and replay one.
"""


def alerts_page() -> str:
    """Return the page."""
    return page(
        "Alert rules",
        INTRODUCTION,
        [
            "## Shipped rules",
            table(["rule", "severity", "fires when"], map(_summary, pack().values())),
            *map(_shipped, pack().values()),
            "## Fields of a rule",
            table(["field", "default", "meaning"], _fields(Rule.model_json_schema(by_alias=True))),
            "## Inhibition",
            table(["field", "default", "meaning"], _fields(Inhibition.model_json_schema())),
            "## Conditions",
            *(_kind(name, module) for name, module in kinds().items()),
            "## Signals",
            _signals(),
        ],
    )


def _summary(rule: Rule) -> list[str]:
    return [f"[{code(rule.name)}](#{rule.name})", rule.severity.value, words(rule.condition)]


def words(condition: Any) -> str:
    """Return a condition in one line."""
    if condition.kind in ("all", "any"):
        joint = " and " if condition.kind == "all" else " or "
        return joint.join(words(child) for child in condition.conditions)
    match = ", ".join(f"{name} {value}" for name, value in getattr(condition, "match", {}).items())
    where = f" ({match})" if match else ""
    window = write_duration(condition.window)
    if condition.kind == "threshold":
        side = "above" if condition.above is not None else "below"
        limit = condition.above if condition.above is not None else condition.below
        whole = ", whole interval" if condition.on == "interval" else ""
        return f"{code(condition.signal)}{where} {side} {limit:g}{whole}, over {window}"
    if condition.kind == "relative":
        share, side = (condition.drop, "down") if condition.drop is not None else (condition.rise, "up")
        against = condition.baseline.replace("_", " ")
        if condition.baseline == "preceding":
            against = f"the {write_duration(condition.baseline_window)} before"
        return f"{code(condition.signal)}{where} {side} by {100 * share:g} % against {against}, over {window}"
    if condition.kind == "event":
        changed = " that name changed settings" if condition.changed_only else ""
        return f"events {', '.join(map(code, condition.events))}{changed}, within {window}"
    if condition.kind == "drift":
        return f"{code(condition.signal)} is `{condition.at_least}`, over {window}"
    return f"{condition.kind.replace('_', ' ')} of {code(condition.signal)}{where}, over {window}"


def _shipped(rule: Rule) -> str:
    waits = [f"severity {rule.severity.value}", f"category {rule.category.value}"]
    if rule.for_:
        waits.append(f"must hold for {write_duration(rule.for_)}")
    if rule.keep_firing_for:
        waits.append(f"resolves when it was over for {write_duration(rule.keep_firing_for)}")
    parts = [
        f"### `{rule.name}`",
        f"**{rule.title}.** Fires when {words(rule.condition)}.",
        f"{'; '.join(waits)}.".capitalize(),
        f"*What it means, and why this threshold.* {rule.description}",
        f"*What to do.* {rule.advice}",
    ]
    if rule.inhibits:
        muted = ", ".join(map(_muted, rule.inhibits))
        parts.append(f"While it fires, other alerts of the same server are muted: {muted}.")
    return "\n\n".join(parts)


def _muted(inhibition: Inhibition) -> str:
    if inhibition.target == {"rule": "*"}:
        return "all"
    return " ".join(f"{name} {code(value)}" for name, value in inhibition.target.items())


def _kind(name: str, module: Any) -> str:
    head = f"### `{name}`\n\n{module.Condition.meaning}\n\n"
    fields = list(_fields(schema_of(name), leave_out=("kind",)))
    return head + (table(["field", "default", "meaning"], fields) if fields else "It has no fields.")


def _fields(schema: Mapping[str, Any], leave_out: tuple[str, ...] = ()) -> Iterator[list[str]]:
    needed = schema.get("required", [])
    for name, field in schema["properties"].items():
        if name not in leave_out:
            yield [
                code(name),
                "(needed)" if name in needed else _default(name, field),
                _meaning(name, field),
            ]


def _default(name: str, field: Mapping[str, Any]) -> str:
    default = field.get("default")
    if default is None or default == "":
        return ""
    if name in DURATIONS:
        return code(write_duration(default))
    if isinstance(default, bool):
        return code(str(default).lower())
    return code(f"{default:g}" if isinstance(default, float) else default)


DURATIONS = ("window", "history", "lookback", "baseline_window", "for", "keep_firing_for")
TOLD = {
    "name": "Unique; lower case, digits, `-` and `_`", "title": "What people read first",
    "category": "sources, acceptance, timing, drift, ranks, probe, configuration or other",
    "severity": "info, warning or critical", "enabled": "Whether it is evaluated",
    "condition": "See [Conditions](#conditions)",
    "no_data": "What becomes of an alert while nothing can be said: `keep` it as it is, `ok` (nothing to "
    "see is nothing wrong) or `alert`",
    "inhibits": "See [Inhibition](#inhibition)",
    "match": "Only series with these labels; `*` and `?` as in file names",
    "direction": "`up`, `down` or `both`", "conditions": "The conditions",
    "above": "Breach when higher than this", "below": "Breach when lower than this",
}  # fmt: skip
"""Fields whose description stands elsewhere or nowhere in the schema."""


def _meaning(name: str, field: Mapping[str, Any]) -> str:
    return str(field.get("description") or TOLD.get(name) or "")


def _signals() -> str:
    own = [one for name, one in sorted(signals().items()) if not name.startswith(PREFIX)]
    rows = [
        [
            code(one.name), one.unit, ", ".join(map(code, one.labels)), one.n_unit,
            "yes" if one.has_interval else "", one.meaning,
        ]
        for one in own
    ]  # fmt: skip
    head = ["signal", "unit", "labels beside `server`", "sample", "interval", "meaning"]
    metrics = (
        "Every [metric](metrics.md) is a signal, too: `metric:NAME` with its first summary (a rate for "
        "increments, a mean for levels, the median for distributions), or `metric:NAME:STAT`: `rate` and "
        "`sum` of increments; `mean`, `min`, `max` and `last` of levels; `p50`, `p90`, `p95`, `p99`, "
        "`mean`, `count` and `sum` of distributions. Their labels are those of the metric and of ranks."
    )
    return f"{table(head, rows)}\n\n{metrics}"
