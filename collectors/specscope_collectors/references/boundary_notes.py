"""What weakens a reference of all boundaries, as far as it can be told from what was summed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.row_classes import OTHER
from specscope_collectors.states.bank import LEAST_REFERENCE_ROWS

FEW_REQUESTS = 64
FEW_IDS = 16
ONE_KIND = (
    "Nothing here tells how many kinds of text these are. A reference of mixed kinds (conversations, prose, "
    "code) holds for kinds that it has not seen; one of a single kind may not."
)


def notes_of(requests: int, parts: int, profiles: Sequence[StateProfile]) -> Iterator[str]:
    """Yield warnings. ``parts`` are the folders or windows that rows come from: of one there is one kind."""
    if requests < FEW_REQUESTS:
        yield f"Requests: {requests}. Use {FEW_REQUESTS} or more, of mixed kinds of text."
    if parts < 2:
        yield ONE_KIND
    others = [each for each in profiles if each.row_class == OTHER]
    enough = [
        {
            token
            for token, rows in zip(each.token_ids, each.token_rows, strict=True)
            if rows >= LEAST_REFERENCE_ROWS
        }
        for each in others
    ]
    common = set.intersection(*enough) if enough else set()
    if len(common) < FEW_IDS:
        yield (
            f"Token ids with directions at every boundary: {len(common)}. With fewer than {FEW_IDS} serving "
            "windows will often have too few rows in common with them; give more rows."
        )
