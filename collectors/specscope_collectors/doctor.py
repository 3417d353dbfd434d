"""What can and cannot be seen at a target, in plain words, with the flag or variable that shows more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.config import CollectorOptions
from specscope_collectors.engine import InfoReading, LoadsReading
from specscope_collectors.engines import engine_named
from specscope_collectors.fetch import make_client
from specscope_collectors.finding import Finding, Grade, bad, lacking, ok
from specscope_collectors.health import READ
from specscope_collectors.observations import HealthState, Launch, SourceHealth, Target
from specscope_collectors.reader import Reader
from specscope_collectors.scrape import MetricsReading

__all__ = ["Diagnosis", "Finding", "Grade", "describe", "examine", "examine_all", "examine_each"]

NO_CONTACT = frozenset({HealthState.UNREACHABLE, HealthState.TIMEOUT, HealthState.TLS_ERROR})


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
        metrics = await reader.metrics(engine_named(None))
        if metrics.health.state in NO_CONTACT:
            return _diagnosis(target, [_bad("connection", metrics.health)], 2)
        engine = metrics.engine
        info = await engine.info(reader)
        loads = await engine.loads(reader, None, None)
    findings = describe(metrics, info, loads)
    nothing = metrics.mapped is None and info.told is None and not (loads and loads.was_read)
    return _diagnosis(target, findings, 2 if nothing and not _is_locked(metrics, info) else None)


def examine_all(targets: Sequence[Target], options: CollectorOptions) -> list[Diagnosis]:
    """Examine all targets at once, all read alike, in their order."""
    return examine_each([(target, options) for target in targets])


def examine_each(targets: Sequence[tuple[Target, CollectorOptions]]) -> list[Diagnosis]:
    """Examine all targets, each read in its own way, in their order; not more at once than they allow."""

    async def gathered() -> list[Diagnosis]:
        places = asyncio.Semaphore(min((options.concurrency for _, options in targets), default=1))

        async def one(target: Target, options: CollectorOptions) -> Diagnosis:
            async with places:
                return await examine(target, options)

        return await asyncio.gather(*(one(target, options) for target, options in targets))

    return asyncio.run(gathered())


def describe(metrics: MetricsReading, info: InfoReading, loads: LoadsReading | None) -> list[Finding]:
    """Return the findings of one target that answers."""
    launch, mapped = info.told.launch if info.told else None, metrics.mapped
    said = metrics.engine.findings(mapped, launch)
    findings = [_engine(launch, metrics, info.health)]
    findings += [finding for finding in said if finding.subject == "speculation"]
    findings.append(_metrics(metrics))
    findings += [finding for finding in said if finding.subject != "speculation"]
    if mapped is not None:
        hints = metrics.engine.missing(mapped, launch)
        hints.pop("speculative decoding", None)  # has a finding of its own
        findings += [lacking(subject, "cannot be seen", remedy) for subject, remedy in hints.items()]
    if loads is not None and (launch is not None or mapped is not None):
        findings.append(_loads(loads))
    return findings


def _engine(launch: Launch | None, metrics: MetricsReading, health: SourceHealth) -> Finding:
    title = metrics.engine.title
    if launch is not None:
        demo = " (demo: simulated numbers)" if launch.is_demo else ""
        words = f"{title} {launch.engine_version or 'of unknown version'}{demo}, model {launch.model}"
        return ok("engine", ", ".join(filter(None, (words, _sizes(launch)))))
    guess = metrics.mapped.version_from_metric_set if metrics.mapped else None
    if guess is None:
        return _bad("engine", health)
    words = f"{title} {guess} or later by its metrics; its configuration cannot be read: {health.detail}"
    return lacking("engine", words, health.remedy)


def _sizes(launch: Launch) -> str:
    sizes = launch.parallelism
    named = {"TP": sizes.tp_size, "DP": sizes.dp_size, "PP": sizes.pp_size, "EP": sizes.ep_size}
    return " ".join(f"{name}{size}" for name, size in named.items() if size is not None)


def _metrics(metrics: MetricsReading) -> Finding:
    health = metrics.health
    if health.state not in READ:
        grade = Grade.MISSING if health.state is HealthState.DISABLED else Grade.BAD
        words = "off: " + health.detail if health.state is HealthState.DISABLED else health.detail
        return Finding(grade=grade, subject="metrics", words=words, remedy=health.remedy)
    if health.state is HealthState.PARTIAL:
        return lacking("metrics", health.detail, health.remedy)
    size, took = (health.body_bytes or 0) / 1000, health.duration_seconds * 1000
    return ok("metrics", f"on: {health.series} series used, {size:.0f} kB in {took:.0f} ms")


def _loads(loads: LoadsReading) -> Finding:
    health = loads.health
    if health.state is HealthState.NOT_OFFERED:
        return ok("current load", "no /v1/loads in this version; nothing else needs it")
    if health.state is HealthState.OK:
        return ok("current load", "offered on /v1/loads")
    return lacking("current load", health.detail, health.remedy)


def _is_locked(metrics: MetricsReading, info: InfoReading) -> bool:
    """Return whether a key would open it: then it is there, and only the key is missing."""
    return HealthState.UNAUTHORIZED in (metrics.health.state, info.health.state)


def _bad(subject: str, health: SourceHealth) -> Finding:
    return bad(subject, health.detail, health.remedy)


def _diagnosis(target: Target, findings: list[Finding], status: int | None) -> Diagnosis:
    if status is None:
        status = int(any(finding.grade is not Grade.OK for finding in findings))
    return Diagnosis(target=target.name, url=target.base_url, findings=tuple(findings), exit_status=status)
