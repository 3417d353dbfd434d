"""What the endpoints about single requests take and return."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Refused(BaseModel):
    """One answer that was not stored."""

    index: int = Field(description="Place in the list, or line of NDJSON, from 0")
    reason: str = Field(description="What is wrong with it and what to do")


class Receipt(BaseModel):
    """What became of the answers that were sent. All that could be stored is stored."""

    server: str
    accepted: int = Field(description="Requests stored now")
    duplicates: int = Field(description="Requests that were there already, by id; nothing changed")
    health_checks: int = Field(description="The engine's own requests, which are nobody's; left out")
    without_counts: int = Field(
        description="Of those accepted: how many say nothing about speculation (OpenAI answers need "
        "`return_meta_info` or `return_spec_tokens_details` in the request)"
    )
    refused_total: int
    refused: list[Refused] = Field(description="The first 100 of them")


class RequestItem(BaseModel):
    """One finished request: counts only. null = the engine did not say."""

    request_id: str
    time: str = Field(description="When it finished")
    launch_id: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    verify_calls: int | None
    accepted_drafts: int | None = Field(description="Without bonus tokens")
    proposed_drafts: int | None
    accept_length: float | None = Field(description="τ = 1 + accepted drafts / verify calls")
    draft_acceptance: float | None = Field(description="Accepted / proposed drafts")
    accepted_histogram: list[int] | None = Field(description="h[j] = cycles that accepted j drafts")
    e2e_seconds: float | None
    labels: dict[str, str]
    number: int = Field(description="Number of the request in this database, for links")


class RequestPage(BaseModel):
    """One page of requests, in the order asked for."""

    server: str
    requests: list[RequestItem]
    next_cursor: str | None
