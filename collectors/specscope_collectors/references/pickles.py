"""The pickle of a file that torch wrote: read with three names known and nothing executed.

Allowed are `collections.OrderedDict`, `torch._utils._rebuild_tensor_v2` and torch's storages, and of these
only the first is what it says: the others stand for descriptions. All else that a pickle asks for is refused
by its name, before anything is built. Only the opcodes that plain data need are let in.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from specscope_collectors.references.dtypes import TORCH_STORAGES, Dtype
from specscope_collectors.references.errors import DumpError

MAX_PICKLE_BYTES = 1 << 20
_PLAIN = """
PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE
EMPTY_DICT EMPTY_LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 SETITEM SETITEMS APPEND APPENDS
BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE GLOBAL STACK_GLOBAL BINPERSID REDUCE
"""
OPCODES = frozenset(_PLAIN.split())


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A name such as ``torch.BFloat16Storage``."""

    name: str


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage of the archive: an entry, and the type of its elements."""

    key: str
    dtype: Dtype
    elements: int


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor: where in its storage it lies; ``offset`` and ``strides`` count elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Rebuild:
    """Stands for `torch._utils._rebuild_tensor_v2`."""

    __slots__ = ()

    def __call__(
        self, storage: Any, offset: Any, shape: Any, strides: Any, *_gradient_hooks_metadata: Any
    ) -> Described:
        if not isinstance(storage, Storage) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
            raise DumpError("a tensor of its pickle is described by something else than numbers")
        return Described(storage, offset, shape, strides)


_REBUILD = _Rebuild()


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _REBUILD
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            return StorageKind(name)
        raise DumpError(refusal(f"{module}.{name}"))

    def persistent_load(self, pid: Any) -> Storage:
        match pid:
            case ("storage", StorageKind(name), str(key), _, int(elements)):
                if name not in TORCH_STORAGES:
                    raise DumpError(
                        f"torch.{name[:60]} holds elements of a kind that no writer of dumps uses"
                    )
                return Storage(key, TORCH_STORAGES[name], elements)
        raise DumpError("its pickle refers to something else than a storage of the archive")


def refusal(name: str) -> str:
    """Say what a pickle asked for."""
    shown = "".join(character if character.isprintable() else "?" for character in name[:80])
    return (
        f"its pickle asks for {shown}, which is refused: nothing of a dump is executed, and "
        "only tensors, lists "
        "and dicts are read; write it again with tensors alone if you trust it"
    )


def read_pickle(content: bytes) -> Any:
    """Return the lists and dicts of a pickle, tensors as `Described`. Raises DumpError."""
    if len(content) > MAX_PICKLE_BYTES:
        raise DumpError(
            f"its pickle has {len(content)} bytes, over {MAX_PICKLE_BYTES}: no sample of hidden states"
        )
    try:
        _look_through(content)
        return _Restricted(io.BytesIO(content)).load()
    except DumpError:
        raise
    except (MemoryError, RecursionError):
        raise DumpError("its pickle cannot be read within bounds") from None
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise DumpError(f"its pickle is damaged ({type(error).__name__})") from None


def _look_through(content: bytes) -> None:
    """Refuse opcodes that plain data do not need, and memo places that would take memory for nothing."""
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "GLOBAL" and isinstance(argument, str):
            module, _, name = argument.partition(" ")
            _Restricted(io.BytesIO(b"")).find_class(module, name)
        if opcode.name not in OPCODES:
            raise DumpError(refusal(f"the opcode {opcode.name}"))
        if "BINPUT" in opcode.name and isinstance(argument, int) and argument > len(content):
            raise DumpError("its pickle is damaged (a memo beyond its size)")
