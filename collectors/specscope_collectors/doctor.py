"""What can and cannot be seen at a target, in plain words, with the flag or variable that shows more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.fetch import make_client
from specscope_collectors.health import READ
from specscope_collectors.missing import missing_of, reporters
from specscope_collectors.observations import HealthState, Launch, SourceHealth, Target
from specscope_collectors.reader import Reader
from specscope_collectors.sources.sglang_info import to_launch
from specscope_collectors.sources.sglang_info.launch import expected_ranks
from specscope_collectors.sources.sglang_info.reading import InfoReading
from specscope_collectors.sources.sglang_loads.reading import LoadsReading
from specscope_collectors.sources.sglang_metrics.reading import MetricsReading

NO_CONTACT = frozenset({HealthState.UNREACHABLE, HealthState.TIMEOUT, HealthState.TLS_ERROR})


class Grade(StrEnum):
    """How a finding bears on what can be seen."""

    OK = "ok"
    MISSING = "missing"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at."""

    grade: Grade
    subject: str
    words: str
    remedy: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found at one target."""

    target: str
    url: str
    findings: tuple[Finding, ...]
    exit_status: int
    """0: all can be seen; 1: something is missing; 2: nothing can be seen there."""


async def examine(target: Target, options: CollectorOptions, clock: Clock = system_clock) -> Diagnosis:
    """Read each source of ``target`` once; `/health` is not asked, since it runs a generation."""
    async with make_client(options, with_tls=target.base_url.startswith("https:")) as client:
        reader = Reader(target, client, options, clock)
        metrics = await reader.metrics()
        if metrics.health.state in NO_CONTACT:
            return _diagnosis(target, [_bad("connection", metrics.health)], 2)
        info = await reader.info()
        loads = await reader.loads(already=(), labels={})
    findings = describe(metrics, info, loads, clock())
    nothing = metrics.mapped is None and info.info is None and loads.loads is None
    return _diagnosis(target, findings, 2 if nothing and not _is_locked(metrics, info) else None)


def examine_all(targets: Sequence[Target], options: CollectorOptions) -> list[Diagnosis]:
    """Examine all targets at once, in their order."""

    async def gathered() -> list[Diagnosis]:
        return await asyncio.gather(*(examine(target, options) for target in targets))

    return asyncio.run(gathered())


def describe(metrics: MetricsReading, info: InfoReading, loads: LoadsReading, now_ms: int) -> list[Finding]:
    """Return the findings of one target that answers."""
    launch = to_launch(info.info, key="", time_ms=now_ms) if info.info else None
    findings = [_engine(launch, metrics, info.health), _metrics(metrics)]
    if launch is not None:
        findings.insert(1, _speculation(launch))
    if metrics.mapped is not None:
        findings += _seen(metrics, launch)
        hints = missing_of(metrics.mapped, launch)
        hints.pop("speculative decoding", None)  # has a finding of its own
        findings += [_missing(subject, "cannot be seen", remedy) for subject, remedy in hints.items()]
    if launch is not None or metrics.mapped is not None:
        findings.append(_loads(loads))
    return findings


def _engine(launch: Launch | None, metrics: MetricsReading, health: SourceHealth) -> Finding:
    if launch is not None:
        demo = " (demo: simulated numbers)" if launch.is_demo else ""
        words = f"SGLang {launch.engine_version or 'of unknown version'}{demo}, model {launch.model}"
        return _ok("engine", f"{words}, {_sizes(launch)}")
    guess = metrics.mapped.version_from_metric_set if metrics.mapped else None
    if guess is None:
        return _bad("engine", health)
    words = f"SGLang {guess} or later by its metrics; its configuration cannot be read: {health.detail}"
    return _missing("engine", words, health.remedy)


def _sizes(launch: Launch) -> str:
    sizes = launch.parallelism
    named = {"TP": sizes.tp_size, "DP": sizes.dp_size, "PP": sizes.pp_size, "EP": sizes.ep_size}
    return " ".join(f"{name}{size}" for name, size in named.items() if size is not None)


def _speculation(launch: Launch) -> Finding:
    speculative = launch.speculative
    if speculative.algorithm is None:
        remedy = "start SGLang with --speculative-algorithm EAGLE3 --speculative-draft-model-path …"
        return _missing("speculation", "off in this launch", remedy)
    parts = [
        f"{speculative.algorithm}",
        f"K = {speculative.num_steps} steps",
        f"D = {speculative.num_draft_tokens} verified tokens",
        f"top-k {speculative.eagle_topk}",
        f"draft model {speculative.draft_model}",
    ]
    if speculative.adaptive:
        parts.append("adaptive")
    return _ok("speculation", ", ".join(part for part in parts if "None" not in part))


def _metrics(metrics: MetricsReading) -> Finding:
    health = metrics.health
    if health.state not in READ:
        grade = Grade.MISSING if health.state is HealthState.DISABLED else Grade.BAD
        words = "off: " + health.detail if health.state is HealthState.DISABLED else health.detail
        return Finding(grade=grade, subject="metrics", words=words, remedy=health.remedy)
    if health.state is HealthState.PARTIAL:
        return _missing("metrics", health.detail, health.remedy)
    size, took = (health.body_bytes or 0) / 1000, health.duration_seconds * 1000
    return _ok("metrics", f"on: {health.series} series used, {size:.0f} kB in {took:.0f} ms")


def _seen(metrics: MetricsReading, launch: Launch | None) -> list[Finding]:
    assert metrics.mapped is not None
    found = []
    if any(metric == "time.forward" for metric, _ in metrics.mapped.counters):
        found.append(_ok("device timer", "on: device time of forward passes is reported"))
    reporting = reporters(metrics.mapped)
    if launch is not None and reporting and reporting >= expected_ranks(launch.parallelism):
        found.append(_ok("ranks", f"{reporting} of {expected_ranks(launch.parallelism)} report"))
    return found


def _loads(loads: LoadsReading) -> Finding:
    health = loads.health
    if health.state is HealthState.NOT_OFFERED:
        return _ok("current load", "no /v1/loads in this version; nothing else needs it")
    if health.state is HealthState.OK:
        return _ok("current load", "offered on /v1/loads")
    return _missing("current load", health.detail, health.remedy)


def _is_locked(metrics: MetricsReading, info: InfoReading) -> bool:
    """Return whether a key would open it: then it is there, and only the key is missing."""
    return HealthState.UNAUTHORIZED in (metrics.health.state, info.health.state)


def _ok(subject: str, words: str) -> Finding:
    return Finding(grade=Grade.OK, subject=subject, words=words)


def _missing(subject: str, words: str, remedy: str) -> Finding:
    return Finding(grade=Grade.MISSING, subject=subject, words=words, remedy=remedy)


def _bad(subject: str, health: SourceHealth) -> Finding:
    return Finding(grade=Grade.BAD, subject=subject, words=health.detail, remedy=health.remedy)


def _diagnosis(target: Target, findings: list[Finding], status: int | None) -> Diagnosis:
    if status is None:
        status = int(any(finding.grade is not Grade.OK for finding in findings))
    return Diagnosis(target=target.name, url=target.base_url, findings=tuple(findings), exit_status=status)
