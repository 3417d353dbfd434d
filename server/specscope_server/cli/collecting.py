"""What is collected in this process: the servers of ``--watch`` and what the collectors' file says."""

from __future__ import annotations

from dataclasses import replace

from specscope_collectors.collect_file import CollectFileError, load_collect_file
from specscope_collectors.config import CollectorOptions, OptionsError, TargetError, parse_targets
from specscope_collectors.job_set import JobSetError
from specscope_collectors.plan import CollectPlan, watching_all
from specscope_server.settings import Settings

COLLECT_ERRORS = (CollectFileError, JobSetError, OptionsError, TargetError)
"""What is wrong with what the user wrote; the message says where, why and what to do."""


def options_of(settings: Settings, api_key: str | None = None) -> CollectorOptions:
    """Return how servers are read; ``api_key`` wins over the setting. Raises `OptionsError`."""
    stored = settings.engine_api_key.get_secret_value() if settings.engine_api_key else None
    return CollectorOptions(
        scrape_interval_seconds=settings.scrape_interval_seconds,
        scrape_timeout_seconds=settings.scrape_timeout_seconds,
        info_interval_seconds=settings.info_interval_seconds,
        max_body_bytes=settings.max_body_bytes,
        max_series_per_target=settings.max_series_per_target,
        api_key=api_key or stored,
        tls_verify=settings.tls_verify,
        ca_file=str(settings.ca_file) if settings.ca_file else None,
    )


def plan_of(settings: Settings, api_key: str | None = None) -> CollectPlan:
    """Return everything that is to be collected. Raises one of `COLLECT_ERRORS`."""
    watched = parse_targets(settings.watch)
    options = options_of(settings, api_key)
    also = watching_all(tuple(watched), options)
    if settings.collect is None:
        return replace(CollectPlan(), options=options, targets=also)
    return load_collect_file(settings.collect, options, also)


def is_empty(plan: CollectPlan) -> bool:
    """Return whether nothing is collected and nothing can come."""
    return plan.file is None and not (plan.targets or plan.jobs or plan.discoveries)
