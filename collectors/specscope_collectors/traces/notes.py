"""What a reader must know of the numbers of a capture, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from specscope_collectors.observations import TraceFile, TraceRank
from specscope_collectors.traces.kernels import KernelClass

CPU_ONLY = (
    "No GPU activity in the trace: phases are times of the CPU's ranges, nothing is known of kernels. "
    'Capture with activities ["CPU", "GPU"].'
)
FUSED = "Fused all-reduce and norm cannot be separated: their kernels are shown as a class of their own."
STRUCTURE = "No named ranges: phases are told from the order of CUDA graphs; {share:.0%} of cycles keep it."
NO_PHASES = "Phases cannot be told: there are no named ranges and no regular order of CUDA graphs."
GPU_RANGES = "Launches are missing: kernels belong to the phase whose range on the GPU they lie in."
REFUSED = "Refused: {what}."
NO_TIME = "The trace does not say when it was taken: the time of the file is shown."
UNEVEN = "Ranks have different numbers of cycles ({counts}): they are compared in so far as they match."


def notes_of(ranks: Sequence[TraceRank], files: Sequence[TraceFile], *, has_time: bool) -> Iterator[str]:
    """Yield the notes of a capture."""
    bases = {rank.basis for rank in ranks}
    if any(rank.kernels == 0 for rank in ranks):
        yield CPU_ONLY
    if "structure" in bases:
        yield STRUCTURE.format(share=min(rank.confidence for rank in ranks if rank.basis == "structure"))
    if "gpu_ranges" in bases:
        yield GPU_RANGES
    if "none" in bases:
        yield NO_PHASES
    if any(KernelClass.FUSED_ALL_REDUCE in phase.busy_ms for rank in ranks for phase in rank.phases):
        yield FUSED
    refused: Counter[str] = Counter()
    for rank in ranks:
        refused.update(rank.refused)
    if refused:
        counts = (f"{count:,} events {why}" for why, count in sorted(refused.items()))
        yield REFUSED.format(what=", ".join(counts))
    cycles = sorted({rank.cycles for rank in ranks})
    if len(cycles) > 1:
        yield UNEVEN.format(counts=", ".join(map(str, cycles)))
    for file in files:
        if file.trouble:
            yield f"{file.name}: {file.trouble}."
    if not has_time:
        yield NO_TIME
