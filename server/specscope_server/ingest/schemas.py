"""What the server answers to collectors that push."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class BatchItem(BaseModel):
    """What became of one batch."""

    collector_id: str
    sequence: int
    outcome: Literal["applied", "repeated"] = Field(
        description="`repeated`: this sequence, or a later one, was applied before; nothing was changed"
    )
    samples: int = Field(description="Increments and levels stored")
    distributions: int = Field(description="Histograms stored")
    refused: dict[str, int] = Field(description="Reason → observations that cannot be; the rest is stored")
    applied_up_to: int | None = Field(
        description="Of a repeated batch: the last sequence that was applied of this collector"
    )
    also_collected_by: list[str] = Field(
        description="Other collectors that lately sent measurements of the same server: growth counts double"
    )


class Receipt(BaseModel):
    """What became of the batches of one body."""

    applied: int = Field(description="Batches stored now")
    repeated: int = Field(description="Batches that had been applied before")
    batches: list[BatchItem] = Field(description="In the order sent")


class Position(BaseModel):
    """How far a collector got."""

    collector_id: str
    sequence: int = Field(description="Last applied sequence; 0: nothing was applied yet")


class LaunchItem(BaseModel):
    """What a sender beside the engine must know of the launch that is being watched."""

    server: str
    base_url: str
    launch_key: str = Field(description="The `launch_key` of batches that speak of this launch")
    first_seen: str = Field(description="When the launch was first seen here")
    random_seed: int | None = Field(
        description="The seed that the engine drew at its start, by which it knows itself again; None = it "
        "has not been read"
    )
