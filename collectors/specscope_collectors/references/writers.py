"""Which tool wrote a file: a name for people, and what the tool is known to do with the last state.

What the tensors are was decided by their shapes before; here keys only help to name the writer.
"""

from __future__ import annotations

from dataclasses import dataclass

from specscope_collectors.layer_ids import System
from specscope_collectors.references.opening import DumpFile
from specscope_collectors.references.shapes import Sample

POST_NORM, PRE_NORM, UNKNOWN = "post_norm", "pre_norm", "unknown"


@dataclass(frozen=True, slots=True)
class Writer:
    """A tool."""

    name: str
    last_norm: str = UNKNOWN
    """Whether its last state is taken before or after the final norm, as far as the tool alone says."""
    system: System | None = None
    """How it reads a layer id; None = it depends."""
    version: str | None = None
    """Which of its versions, where the form of the files tells."""


SPECFORGE = Writer("SpecForge", POST_NORM, System.SPECFORGE)
SPECFORGE_DFLASH = Writer("SpecForge (dflash, domino, dspark)", UNKNOWN, System.SPECFORGE)
SPECULATORS_V0 = Writer("speculators v0", POST_NORM)
SPECULATORS_V1 = Writer("speculators 0.3–0.4", PRE_NORM, System.SPECULATORS, "0.4.0")
SPECULATORS = Writer("speculators 0.5 or newer (vLLM)", PRE_NORM, System.SPECULATORS, "0.5.0")
EAGLE = Writer("EAGLE", POST_NORM)
BALDEAGLE = Writer("BaldEagle", POST_NORM)
MODELOPT = Writer("ModelOpt")
ANGELSLIM = Writer("AngelSlim", UNKNOWN, System.ANGELSLIM)
HYBRID = Writer("speculators' files in SpecForge's folders", PRE_NORM, System.SPECULATORS, "0.4.0")
NOBODY = Writer("an unknown tool")

_BY_KEYS = {
    frozenset({"aux_hidden_state", "hidden_state"}): SPECFORGE,
    frozenset({"hidden_states", "target_last_hidden_states"}): SPECFORGE_DFLASH,
    frozenset({"hidden_state", "target"}): SPECULATORS_V0,
    frozenset({"hidden_state", "target_hidden_states"}): BALDEAGLE,
    frozenset({"hidden_states", "aux_hidden_states"}): MODELOPT,
    frozenset({"hidden_states", "target_hiddens"}): ANGELSLIM,
}


def writer_of(opened: DumpFile, sample: Sample, in_rows_folder: bool) -> Writer:
    """Return who wrote a file, as far as it can be told."""
    names = {tensor.key.partition("[")[0] for tensor in opened.tensors if tensor.dtype.is_state}
    if sample.form == "layers":
        return SPECULATORS if opened.container == "safetensors" else NOBODY
    if sample.form == "list":
        return HYBRID if in_rows_folder else SPECULATORS_V1
    if sample.form == "concatenated" and frozenset(names) in _BY_KEYS:
        return _modelopt(opened, _BY_KEYS[frozenset(names)])
    if sample.form == "concatenated" and names == {"hidden_states"}:
        return SPECFORGE_DFLASH
    if sample.form == "single" and names == {"hidden_state"}:
        has_batch = any(len(tensor.shape) == 3 for tensor in opened.tensors)
        return SPECFORGE if has_batch else EAGLE
    return NOBODY


def _modelopt(opened: DumpFile, writer: Writer) -> Writer:
    if writer is MODELOPT and opened.values.get("hidden_states_prenorm") in (True, False):
        kind = PRE_NORM if opened.values["hidden_states_prenorm"] else POST_NORM
        return Writer(writer.name, kind, writer.system, writer.version)
    return writer
