"""Files as training tools write them: torch's zip archives and safetensors, written here without torch."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORAGES = {
    "bfloat16": "BFloat16Storage", "float16": "HalfStorage", "float32": "FloatStorage",
    "float64": "DoubleStorage", "int64": "LongStorage", "int32": "IntStorage", "bool": "BoolStorage",
}  # fmt: skip
CODES = {
    "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32",
    "bool": "BOOL",
}  # fmt: skip
ALIGNED = 64


def bfloat16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Return values as the upper halves of float32 (cut, not rounded)."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def widened(raw: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return bfloat16 as float32."""
    return (raw.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class T:
    """A tensor to be written: its storage, and where it lies there (elements)."""

    storage: NDArray[Any]
    dtype: str
    offset: int = 0
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    @property
    def size(self) -> tuple[int, ...]:
        return self.shape if self.shape is not None else tuple(self.storage.shape)

    @property
    def steps(self) -> tuple[int, ...]:
        if self.strides is not None:
            return self.strides
        steps, step = [], 1
        for size in reversed(self.size):
            steps.append(step)
            step *= max(size, 1)
        return tuple(reversed(steps))


def tensor(values: NDArray[Any], dtype: str | None = None) -> T:
    """Return a tensor of these values; floats become bfloat16 unless another type is named."""
    values = np.asarray(values)
    name = dtype or ("bfloat16" if values.dtype.kind == "f" else values.dtype.name)
    return T(bfloat16(values) if name == "bfloat16" else values.astype(name), name)


class _Global:
    """Pickled as a bare name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _Pickler(pickle._Pickler):
    """Writes protocol 2 as `torch.save` does: tensors by `_rebuild_tensor_v2`, storages by persistent ids."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=2)
        self.storages: list[NDArray[Any]] = []

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, _Storage):
            return None
        places = [place for place, known in enumerate(self.storages) if known is obj.tensor.storage]
        if not places:
            self.storages.append(obj.tensor.storage)
        number = places[0] if places else len(self.storages) - 1
        kind = _Global("torch", STORAGES[obj.tensor.dtype])
        return ("storage", kind, str(number), "cpu", obj.tensor.storage.size)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Global):
            self.write(f"c{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, T):
            arguments = (_Storage(obj), obj.offset, obj.size, obj.steps, False, OrderedDict())
            self.save_reduce(_Callable("torch._utils", "_rebuild_tensor_v2"), arguments)
        else:
            super().save(obj, save_persistent_id)

    def save_reduce(self, func: Any, args: Any, *rest: Any, **named: Any) -> None:
        if isinstance(func, _Callable):
            self.save(_Global(func.module, func.name))
            self.save(args)
            self.write(pickle.REDUCE)
        else:
            super().save_reduce(func, args, *rest, **named)


@dataclass(frozen=True)
class _Callable:
    module: str
    name: str


@dataclass(frozen=True, eq=False)
class _Storage:
    tensor: T


def torch_bytes(tree: Any, folder: str = "archive") -> bytes:
    """Return a file of `torch.save`: stored entries, the data of tensors at multiples of 64 bytes."""
    pickled = io.BytesIO()
    pickler = _Pickler(pickled)
    pickler.dump(tree)
    return archive(pickled.getvalue(), [storage.tobytes() for storage in pickler.storages], folder)


def archive(
    pickled: bytes, storages: Sequence[bytes], folder: str = "archive", packed: bool = False
) -> bytes:
    """Return a zip archive with this pickle."""
    target = io.BytesIO()
    entries = [("data.pkl", pickled), ("byteorder", b"little")]
    entries += [(f"data/{number}", content) for number, content in enumerate(storages)]
    entries += [("version", b"3\n")]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as file:
        for name, content in entries:
            info = zipfile.ZipInfo(f"{folder}/{name}")
            info.compress_type = file.compression
            header = target.tell() + 30 + len(info.filename)
            padding = -(header + 4) % ALIGNED
            info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            file.writestr(info, content)
    return target.getvalue()


def safetensors_bytes(tensors: Mapping[str, T], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a file of safetensors."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place, data = 0, b""
    for name, each in tensors.items():
        content = each.storage.tobytes()
        header[name] = {
            "dtype": CODES[each.dtype], "shape": list(each.size),
            "data_offsets": [place, place + len(content)],
        }  # fmt: skip
        place, data = place + len(content), data + content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write(path: Path, content: bytes) -> Path:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
