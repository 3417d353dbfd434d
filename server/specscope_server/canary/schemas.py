"""What the canary's endpoints answer."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CanaryRun(BaseModel):
    """One run of one set of prompts."""

    run: int = Field(description="When the run began, epoch milliseconds: its name in `a` and `b`")
    time: str
    launch_id: int | None
    prompt_set: str = Field(description="Fingerprint of the prompts and their length")
    prompts: int
    cycles: int | None = Field(description="Verify calls of the whole run; null if the engine counts none")
    accepted_drafts: int | None
    accept_length: float | None = Field(description="1 + Σ accepted drafts / Σ cycles, over all prompts")
    request_mean_accept_length: float | None = Field(description="Mean of the prompts' own accept lengths")
    e2e_seconds: float | None = Field(description="Median over prompts")
    outputs_changed: int | None = Field(
        description="Prompts whose output differs from the run before of the same set; null for the first"
    )


class CanaryRuns(BaseModel):
    """Runs in the range, newest first."""

    server: str
    is_demo: bool
    is_limited: bool
    runs: list[CanaryRun]


class CanarySide(BaseModel):
    """What one side of a comparison consists of."""

    words: str
    launch_ids: list[int]
    runs: int
    prompts: int
    accept_length: float | None


class CanaryChange(BaseModel):
    """A paired change of b against a, with its 95 % interval over prompts."""

    name: str
    pairs: int
    change: float | None = Field(description="−0.04 = b is 4 % lower than a (mean over prompts of ln ratio)")
    low: float | None
    high: float | None
    p_value: float | None = Field(description="Sign-flip test; null below 6 pairs")
    lower: int = Field(description="Prompts that are lower in b")
    higher: int
    is_shown: bool = Field(description="Interval and test agree that there is a change")


class CanaryPair(BaseModel):
    """One prompt in both sides, over all runs of each."""

    prompt: str
    a_accept_length: float | None
    b_accept_length: float | None
    a_cycles: int
    b_cycles: int
    a_e2e_seconds: float | None
    b_e2e_seconds: float | None
    same_output: bool


class CanaryComparison(BaseModel):
    """Two launches or two runs, prompt by prompt."""

    server: str
    prompt_set: str | None
    is_demo: bool
    verdict: str
    state: str = Field(description="`ok`, `warn`, `bad` or `unknown`")
    a: CanarySide | None
    b: CanarySide | None
    changes: list[CanaryChange]
    outputs_changed: int
    pairs: list[CanaryPair]
