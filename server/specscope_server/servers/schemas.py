"""What the server and launch endpoints return."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class LaunchItem(BaseModel):
    """One launch in a list."""

    id: int
    server: str
    key: str = Field(description="Fingerprint that changes with every process start or configuration change")
    first_seen: str
    last_seen: str
    reason: str = Field(description="Why this is a launch of its own")
    engine: str
    engine_version: str | None
    version_source: str | None = Field(
        description="`server_info`, `metric_names` (the oldest version that fits) or `log_lines` (a range)"
    )
    model: str | None
    served_model_name: str | None
    dtype: str | None
    quantization: str | None
    kv_cache_dtype: str | None
    algorithm: str | None
    num_steps: int | None = Field(description="K, draft depth")
    eagle_topk: int | None
    num_draft_tokens: int | None = Field(description="D, verified tokens per request and cycle")
    draft_model: str | None
    adaptive: bool | None
    tp_size: int | None
    dp_size: int | None
    pp_size: int | None
    ep_size: int | None
    nnodes: int | None
    enable_dp_attention: bool | None
    is_demo: bool


class ServerItem(BaseModel):
    """One watched server in a list."""

    name: str
    base_url: str
    created: str
    last_seen: str = Field(description="Newest observation of any kind, failures included")
    age_seconds: float
    state: str = Field(description="Overall state of its sources: ok, partial, stale, failing or unknown")
    launches: int
    newest_launch: LaunchItem | None
    is_demo: bool


class ServerList(BaseModel):
    """One page of servers, by name."""

    servers: list[ServerItem]
    next_cursor: str | None


class LaunchList(BaseModel):
    """One page of launches, newest first."""

    server: str
    launches: list[LaunchItem]
    next_cursor: str | None


class ConfigChange(BaseModel):
    """One key with different values; nested keys are joined with dots."""

    key: str
    before: Any
    after: Any


class LaunchDiff(BaseModel):
    """What differs from the launch before."""

    previous_id: int | None = Field(description="None = there was no launch before")
    added: list[ConfigChange]
    removed: list[ConfigChange]
    changed: list[ConfigChange]


class LaunchDetail(BaseModel):
    """One launch with its whole redacted configuration."""

    launch: LaunchItem
    environment: dict[str, str]
    config: dict[str, Any]
    diff: LaunchDiff
