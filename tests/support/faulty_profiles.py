"""Stored profiles and references with faults that checks of today would not let through."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import zstandard

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import Reference

Fields = dict[str, Any]
Change = Callable[[Fields], Any]
ARRAYS = ("direction_sum", "direction_sum_of_squares", "sum_of_squares", "token_directions")


def _array(name: str, change: Callable[[bytes], bytes]) -> Change:
    def changed(profile: Fields) -> None:
        content = base64.b64decode(profile.get(name, ""))
        profile[name] = base64.b64encode(change(content)).decode()

    return changed


def _norms(**values: Any) -> Change:
    return lambda profile: profile["ln_norms"].update(values)


def _poisoned(content: bytes) -> bytes:
    values = np.frombuffer(content, "<f4").copy()
    values[len(values) // 2] = np.nan
    return values.tobytes()


PROFILE_FAULTS: dict[str, Change] = {
    **{f"no {name}": _array(name, lambda content: b"") for name in ARRAYS},
    **{f"{name} narrower": _array(name, lambda content: content[:-4]) for name in ARRAYS},
    **{f"{name} cut inside a number": _array(name, lambda content: content[:-3]) for name in ARRAYS},
    **{f"{name} not a number": _array(name, _poisoned) for name in ARRAYS},
    **{f"{name} infinite": _array(name, lambda content: b"\x00\x00\x80\x7f" * (len(content) // 4))
       for name in ARRAYS},
    "another hidden size": lambda profile: profile.update(hidden_size=profile["hidden_size"] // 2),
    "a negative hidden size": lambda profile: profile.update(hidden_size=-1),
    "norms too far apart": _norms(bins={"-900000": 100, "900000": 100}),
    "one norm very far": _norms(bins={str(2**40): 256}),
    "norms of other bins": _norms(bin_width=0.05),
    "bins of no width": _norms(bin_width=0.0),
    "norms below nothing": _norms(bins={"1": -300}),
    "no norms": _norms(bins={}),
    "sums of norms that are enormous": _norms(sum=1e308, sum_of_squares=1e308),
    "fewer counts than token ids": lambda profile: profile.update(token_rows=profile["token_rows"][:-1]),
    "a token id twice": lambda profile: profile.update(
        token_ids=[profile["token_ids"][0]] * len(profile["token_ids"])),
    "counts of nothing": lambda profile: profile.update(token_rows=[0] * len(profile["token_rows"])),
    "no token ids": lambda profile: profile.update(token_ids=[], token_rows=[]),
    "another projection": lambda profile: profile.update(projection="gauss-256-1"),
    "no projection": lambda profile: profile.update(projection=""),
    "more rows than there are": lambda profile: profile.update(rows=2**62),
    "no rows": lambda profile: profile.update(rows=0, requests=0),
    "negative invariants": lambda profile: profile.update(invariants={"zero_rows": -5}),
    "another phase": lambda profile: profile.update(phase="training"),
    "a slot that is not there": lambda profile: profile.update(slot=400),
    "a number where a text is": lambda profile: profile.update(phase=7),
    "a field that is unknown": lambda profile: profile.update(unheard_of=1),
}  # fmt: skip


def _cleared(reference: Fields) -> None:
    reference.update(profiles=[], answer_profiles=[])


def _only_sinks(reference: Fields) -> None:
    for profile in reference["profiles"]:
        profile["row_class"] = "sink"


DOCUMENT_FAULTS: dict[str, Change] = {
    "a future version": lambda reference: reference.update(version=2),
    "another format": lambda reference: reference.update(format="something"),
    "an unknown kind": lambda reference: reference.update(kind="tokens"),
    "arrays of another width": lambda reference: reference.update(arrays="float16"),
    "no profiles": _cleared,
    "no ordinary rows": _only_sinks,
    "one profile": lambda reference: reference.update(profiles=reference["profiles"][:1]),
    "a profile twice": lambda reference: reference.update(profiles=reference["profiles"][:1] * 2),
    "no boundaries": lambda reference: reference.update(boundaries=[]),
    "boundaries below 0": lambda reference: reference.update(
        boundaries=[-1] * len(reference["boundaries"])),
    "a weight of another size": lambda reference: reference.update(last={"weight": "AACAPwAAgD8="}),
    "a weight cut off": lambda reference: reference.update(last={"weight": "AACA"}),
    "a hidden size of nothing": lambda reference: reference.update(hidden_size=0),
    "a field missing": lambda reference: reference.pop("fingerprint"),
}  # fmt: skip

BODY_FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda body: b"",
    "cut off": lambda body: body[: len(body) // 2],
    "garbage": lambda body: b"garbage" * 40,
    "a flipped byte": lambda body: body[:60] + bytes([body[60] ^ 255]) + body[61:],
}


def faulty_profile(profile: StateProfile, fault: str) -> bytes:
    """Return the stored form of a profile with that fault."""
    if fault in BODY_FAULTS:
        return BODY_FAULTS[fault](_packed(msgspec.msgpack.encode(profile)))
    fields = msgspec.to_builtins(profile, str_keys=True)
    PROFILE_FAULTS[fault](fields)
    fields |= {name: base64.b64decode(fields[name] + "==") for name in ARRAYS if name in fields}
    fields["ln_norms"]["bins"] = {int(place): count for place, count in fields["ln_norms"]["bins"].items()}
    return _packed(msgspec.msgpack.encode(fields))


def faulty_reference(reference: Reference, fault: str, place: int = 0) -> bytes:
    """Return the stored form of a reference with that fault, in the profile at that place."""
    fields = msgspec.to_builtins(reference, str_keys=True)
    if fault in PROFILE_FAULTS:
        PROFILE_FAULTS[fault](fields["profiles"][place % len(fields["profiles"])])
    elif fault in DOCUMENT_FAULTS:
        DOCUMENT_FAULTS[fault](fields)
    body = gzip.compress(json.dumps(fields).encode(), compresslevel=1, mtime=0)
    return BODY_FAULTS[fault](body) if fault in BODY_FAULTS else body


def _packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(content)
