"""The pickle of a file that torch wrote: read with three names known and nothing executed.

Allowed are `collections.OrderedDict`, `torch._utils._rebuild_tensor_v2` and torch's storages, and none of
these is what it says: they stand for an empty dict and for descriptions. All else that a pickle asks for is
refused by its name, where it asks for it; what it had before is lists, dicts and descriptions. Only the
opcodes that plain data need are known.

Keys of dicts are text or numbers. The unpickler in C would hash any key: of tuples within tuples that takes
forever, or overflows the stack of the process. Of the one in Python, the step that fills dicts is replaced.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from specscope_collectors.references.dtypes import TORCH_STORAGES, Dtype
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.texts import plain

MAX_PICKLE_BYTES = 1 << 20
_PLAIN = """
PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE
EMPTY_DICT EMPTY_LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 SETITEM SETITEMS APPEND APPENDS
BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE GLOBAL STACK_GLOBAL BINPERSID REDUCE
"""
OPCODES = frozenset(_PLAIN.split())
NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}


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


def _ordered_dict() -> dict[str | int, Any]:
    """Stand for `collections.OrderedDict`, which torch writes without arguments and then fills."""
    return {}


_REBUILD = _Rebuild()


class _Steps(dict[int, Callable[[Any], None]]):
    """What to do at each opcode."""

    def __missing__(self, code: int) -> Callable[[Any], None]:
        if code not in NAMES:
            raise DumpError(f"its pickle is damaged (no opcode {code})")
        raise DumpError(refusal(f"the opcode {NAMES[code]}"))


class _Restricted(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = _Steps(
        {code: step for code, step in pickle._Unpickler.dispatch.items() if NAMES[code] in OPCODES}
    )
    stack: list[Any]
    memo: dict[int, Any]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return _ordered_dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _REBUILD
        if (module, name) == ("torch._utils", "_rebuild_tensor_v3"):
            raise DumpError(
                "it holds a tensor of a type that torch has no storage for, such as float8 "
                "(_rebuild_tensor_v3), which is not read: write the dump as bfloat16, by "
                "tensor.to(torch.bfloat16)"
            )
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

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        _put(self.stack[-1], [key, value])

    def load_setitems(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]  # of the stack since the last mark
        _put(self.stack[-1], items)

    def load_long_binput(self) -> None:
        place = int.from_bytes(self.read(4), "little")  # type: ignore[attr-defined]
        if place > MAX_PICKLE_BYTES:
            raise DumpError("its pickle is damaged (a memo beyond its size)")
        self.memo[place] = self.stack[-1]

    dispatch[pickle.LONG_BINPUT[0]] = load_long_binput
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems


def _put(target: Any, items: list[Any]) -> None:
    """Put keys and values, one after the other, into a dict. Raises DumpError for keys of other kinds."""
    if type(target) is not dict or len(items) % 2:
        raise DumpError("its pickle is damaged (items of what is no dict)")
    for place in range(0, len(items), 2):
        kind = type(items[place])
        if kind not in (str, int):
            raise DumpError(
                f"its pickle has a dict with a key of the type {kind.__name__}: only text and "
                "whole numbers are read; write it again with such keys"
            )
        target[items[place]] = items[place + 1]


def refusal(name: str) -> str:
    """Say what a pickle asked for."""
    shown = plain(name[:80])
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
        return _Restricted(io.BytesIO(content)).load()
    except DumpError:
        raise
    except (MemoryError, RecursionError):
        raise DumpError("its pickle cannot be read within bounds") from None
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise DumpError(f"its pickle is damaged ({type(error).__name__})") from None
