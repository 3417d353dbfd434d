"""Verdicts, self-checks, sources and launches as the pages show them (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.acceptance.schemas import AcceptanceSummary, Check, Counts, LaunchBrief, Verdict
from specscope_server.kit.engines import engine_title
from specscope_server.kit.health import Overall
from specscope_server.kit.versions import tells_settings, version_text
from specscope_server.pages.wording import MISSING, count_text
from specscope_server.servers.schemas import ConfigChange, LaunchDiff, LaunchItem
from specscope_server.sources.schemas import ServerSources, SourceItem

KINDS = ("ok", "warn", "bad", "idle", "unknown")
"""Shapes that a state may take."""

SOURCE_STATES: dict[str, tuple[str, str]] = {
    "ok": ("ok", "reading"),
    "partial": ("warn", "reading, with parts missing"),
    "unreachable": ("bad", "not reachable"),
    "timeout": ("bad", "timed out"),
    "tls_error": ("bad", "TLS error"),
    "unauthorized": ("bad", "key refused"),
    "disabled": ("warn", "switched off"),
    "not_offered": ("unknown", "not in this version"),
    "http_error": ("bad", "HTTP error"),
    "not_this_engine": ("bad", "not this engine"),
    "invalid": ("bad", "answer not readable"),
    "too_large": ("bad", "answer too large"),
    "gone": ("idle", "gone: no longer listed"),
}
SOURCE_WORDS = {
    "sglang_metrics": "numbers over time",
    "sglang_info": "configuration: the launch",
    "sglang_loads": "load",
    "sglang_log": "the engine's log",
    "vllm_metrics": "numbers over time",
    "vllm_info": "version and models",
    "vllm_log": "the engine's log",
    "requests": "single requests",
    "canary": "the same prompts again and again",
    "prometheus": "numbers over time, from a Prometheus",
    "collect_file": "what is to be collected",
    "push": "what waits to be sent here",
}
"""What a source gives, in few words."""
OWN_STATES: dict[str, tuple[str, str]] = {
    "ok": ("ok", "working"),
    "partial": ("warn", "working, with something to tell"),
    "invalid": ("bad", "has errors"),
}
"""The same for what a collector says of itself: no answer of an engine is behind it."""
OVERALL_STATES: dict[str, tuple[str, str]] = {
    Overall.OK: ("ok", "all sources read"),
    Overall.PARTIAL: ("warn", "read in part"),
    Overall.STALE: ("warn", "nothing read lately"),
    Overall.FAILING: ("bad", "no source can be read"),
    Overall.GONE: ("idle", "gone: no longer listed"),
    Overall.UNKNOWN: ("unknown", "waiting for the first scrape"),
}
"""State → (kind of the shape, words)."""
OWN_OVERALL = {
    Overall.OK: ("ok", "working"),
    Overall.PARTIAL: ("warn", "working in part"),
    Overall.STALE: ("warn", "silent"),
    Overall.FAILING: ("bad", "in trouble"),
}
"""The same for a collector as a whole."""


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict with the kind of its shape."""

    kind: str
    headline: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which launches the numbers are of, and the other choices: (words, value of ``launch``)."""

    words: str
    since: str | None
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CheckView:
    """A self-check with the kind of its shape."""

    kind: str
    name: str
    words: str
    message: str


def verdict_view(verdict: Verdict) -> VerdictView:
    """Return the verdict; a state that this page does not know is shown as unknown."""
    kind = verdict.state if verdict.state in KINDS else "unknown"
    return VerdictView(kind, verdict.headline, tuple(verdict.reasons))


def check_views(checks: Sequence[Check]) -> list[CheckView]:
    """Return the self-checks as badges."""
    states = {True: ("ok", "holds"), False: ("bad", "violated"), None: ("unknown", "cannot be checked")}
    return [
        CheckView(states[check.passed][0], check.name, states[check.passed][1], check.message)
        for check in checks
    ]


def scope_of(summary: AcceptanceSummary, choice: str, in_range: int) -> Scope:
    """Return which launches a summary is of; ``choice`` is an id, ``newest`` or ``all``."""
    newest, everything = ("newest launch", ""), (f"all {in_range} launches in this range", "all")
    since = summary.launch.first_seen if summary.launch else None
    if choice == "newest":
        return Scope("the newest launch", since, (everything,) if in_range > 1 else ())
    if choice in ("", "all"):
        return Scope(f"all {in_range} launches in this range, added up", None, (newest,))
    return Scope("one launch", since, (newest, everything) if in_range > 1 else (newest,))


def source_state(source: SourceItem, server: ServerSources) -> tuple[str, str]:
    """Return (kind, words) of one source; of a server that is gone, none is read."""
    if server.state == Overall.GONE:
        return SOURCE_STATES["gone"]
    own = OWN_STATES.get(source.state) if server.is_collector else None
    return own or SOURCE_STATES.get(source.state, ("unknown", source.state))


def server_state(server: ServerSources) -> tuple[str, str]:
    """Return (kind, words) of a server as a whole, or of a collector."""
    if server.is_collector and server.state in OWN_OVERALL:
        return OWN_OVERALL[Overall(server.state)]
    if server.state == Overall.UNKNOWN and not _has_address(server):
        return "unknown", "not watched"
    return OVERALL_STATES.get(server.state, ("unknown", server.state))


def reach_of(server: ServerSources) -> tuple[str, str] | None:
    """Return (kind, words) when a server cannot be read (any more); None while it can be."""
    if server.state in (Overall.FAILING, Overall.STALE, Overall.GONE):
        return server_state(server)
    return None


def without_sources(server: ServerSources) -> str:
    """Return what is said of a server that nothing was read from yet."""
    if _has_address(server):
        return "Waiting for the first scrape."
    return "Nothing reads from this server: what is known of it was imported or reported."


def _has_address(server: ServerSources) -> bool:
    return "://" in server.base_url


def ranks_view(server: ServerSources) -> tuple[str, str]:
    """Return (kind, words) of the ranks that report; no words without a launch or of a gone server."""
    ranks = server.ranks
    if server.state == Overall.GONE:
        return "", ""
    if ranks.missing:
        return "warn", ranks.text
    return ("unknown" if ranks.expected is None else "ok"), ranks.text


def count_rows(counts: Counts) -> list[tuple[str, str, str]]:
    """Return (name, count, meaning) for the table of raw counts."""
    is_counted = counts.accepted_drafts_kind == "counted"
    kinds = {
        "counted": "counted by the engine as they happen",
        "reported": "reported by requests",
        "derived": "derived: tokens − requests − verify calls",
    }
    proposed = kinds["counted"] if is_counted else "verify calls × drafts proposed in each"
    cycles = kinds["counted"] if is_counted else "one per request and cycle, of finished requests"
    accepted = kinds.get(counts.accepted_drafts_kind, "not counted")
    return [
        (
            "Accepted drafts",
            count_text(counts.accepted_drafts),
            accepted,
        ),
        (
            "Proposed drafts",
            count_text(counts.proposed_drafts),
            "not counted" if counts.proposed_drafts is None else proposed,
        ),
        (
            "Verify calls",
            count_text(counts.verify_calls),
            "not counted" if counts.verify_calls is None else cycles,
        ),
        (
            "Generated tokens",
            count_text(counts.generated_tokens),
            f"{'as they happen' if is_counted else 'of finished requests'}, prefill's one included",
        ),
        ("Finished requests", count_text(counts.finished_requests), ""),
        ("Decoded tokens", count_text(counts.decoded_tokens), "live counter, unfinished requests included"),
    ]


def launch_title(launch: LaunchItem) -> str:
    """Return a launch in a few words: engine, algorithm, depth."""
    parts = [
        f"{engine_title(launch.engine)} {_version(launch) or 'of unknown version'}",
        launch.algorithm or ("no speculation" if _says_settings(launch) else "speculation not said"),
    ]
    if launch.num_steps is not None:
        parts.append(f"K = {launch.num_steps}")
    if launch.num_draft_tokens is not None:
        parts.append(f"D = {launch.num_draft_tokens}")
    return " · ".join(parts)


def launch_range(launch: LaunchItem, *, is_newest: bool) -> dict[str, str]:
    """Return the range of a page that shows one launch, in whole seconds; the newest one goes on."""
    start, end = (f"{moment[:19]}Z" for moment in (launch.first_seen, launch.last_seen))
    return {"from": start, "to": "" if is_newest or start == end else end}


def diff_rows(diff: LaunchDiff) -> list[tuple[str, str, str]]:
    """Return (key, before, after) of everything that differs from the launch before."""
    changes: list[ConfigChange] = [*diff.changed, *diff.added, *diff.removed]
    return [(change.key, _value(change.before), _value(change.after)) for change in changes]


def _version(launch: LaunchItem | LaunchBrief) -> str | None:
    return version_text(launch.engine_version, launch.version_source)


def _says_settings(launch: LaunchItem | LaunchBrief) -> bool:
    """Tell whether the engine says how it was started: then what it does not name is off."""
    return tells_settings(launch.engine, launch.version_source, launch.model)


def _speculation(summary: AcceptanceSummary, launch: LaunchBrief) -> str:
    """Return the method; where the engine does not say it, whether anything shows that drafts are made."""
    if launch.algorithm or _says_settings(launch):
        return launch.algorithm or "off"
    return "on (method not said)" if summary.accept_length.value is not None else "not said"


def _depth(summary: AcceptanceSummary, launch: LaunchBrief) -> int | None:
    told = summary.num_steps.value
    return round(told) if launch.num_steps is None and told is not None else launch.num_steps


def _value(value: object) -> str:
    return MISSING if value is None else str(value)


def facts_of(summary: AcceptanceSummary) -> list[tuple[str, str]]:
    """Return what is known about the launch behind a summary, as (term, text); all text is untrusted."""
    launch = summary.launch
    if launch is None:
        return []
    shape = [
        f"{symbol} = {value}"
        for symbol, value in (
            ("K", _depth(summary, launch)),
            ("topk", launch.eagle_topk),
            ("D", launch.num_draft_tokens),
        )
        if value is not None
    ]
    rows = [
        ("Engine", f"{engine_title(launch.engine)} {_version(launch) or '(version unknown)'}"),
        ("Speculation", " · ".join([_speculation(summary, launch), *shape])),
        ("Model", launch.model or ""),
        ("Draft", launch.draft_model or ""),
    ]
    return [(term, text) for term, text in rows if text]
