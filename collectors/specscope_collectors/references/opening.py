"""Open one file of a dump by what it contains, whatever it is called, without reading its tensors."""

from __future__ import annotations

import gzip
import stat
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

from specscope_collectors.references.contents import Content
from specscope_collectors.references.errors import NO_MEMORY, DumpError
from specscope_collectors.references.pickles import Described
from specscope_collectors.references.safetensors import is_safetensors, read_safetensors
from specscope_collectors.references.tensors import Tensor, Unread, make_tensor
from specscope_collectors.references.texts import whole
from specscope_collectors.references.torch_zip import LEGACY, Archive

MAX_INFLATED_BYTES = 2 << 30
MAX_TENSORS, MAX_DEPTH, MAX_PLACES = 1_024, 4, 100_000
MAX_KEY = 120
PIECE_BYTES = 1 << 20
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK"
NONE = "none"

Plain = str | int | float | bool


@dataclass(slots=True)
class DumpFile:
    """What a file holds."""

    path: Path
    container: str
    """``torch`` or ``safetensors``."""
    compression: str
    """``none``, ``gzip`` or ``zstd``."""
    file_bytes: int
    tensors: list[Tensor] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    """Tensors of types that are not read, such as float8."""
    values: dict[str, Plain] = field(default_factory=dict)
    """What stands beside the tensors, e.g. ``conversation_id``."""
    content: Content | None = None
    """Its bytes, unpacked."""


def open_dump(path: Path, max_inflated_bytes: int = MAX_INFLATED_BYTES) -> DumpFile:
    """Return what a file holds, its tensors as views. Raises DumpError, whose text begins with the path."""
    try:
        return _open(path, max_inflated_bytes)
    except DumpError as error:
        raise DumpError(f"{path}: {error}") from None
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise DumpError(f"{path}: {NO_MEMORY}") from None


def _open(path: Path, max_inflated_bytes: int) -> DumpFile:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise DumpError("it is no regular file")
    if found.st_size == 0:
        raise DumpError("it is empty (0 bytes): its writer was stopped; make it again or remove it")
    with path.open("rb") as file:
        beginning = file.read(16)
        compression = _compression(beginning)
        if compression == NONE:
            content = _content(file)
        else:
            with tempfile.TemporaryFile(prefix="specscope-dump-") as inflated:
                file.seek(0)
                _inflate(file, inflated, compression, max_inflated_bytes)
                content = _content(inflated)
    opened = DumpFile(path, "torch", compression, found.st_size, content=content)
    _read(opened, content)
    return opened


def _compression(beginning: bytes) -> str:
    return "gzip" if beginning.startswith(GZIP) else "zstd" if beginning.startswith(ZSTD) else NONE


def _content(file: IO[bytes]) -> Content:
    file.seek(0, 2)
    if not file.tell():
        raise DumpError("it holds nothing once it is unpacked")
    return Content(file.fileno())


def _inflate(source: IO[bytes], target: IO[bytes], compression: str, limit: int) -> None:
    """Unpack a whole file into another: there is no way to read a part."""
    reader: Any = (
        gzip.GzipFile(fileobj=source)
        if compression == "gzip"
        else zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            source, read_across_frames=True
        )
    )
    size = 0
    try:
        while piece := reader.read(PIECE_BYTES):
            size += len(piece)
            if size > limit:
                raise DumpError(
                    f"it unpacks to more than {limit} bytes: no sample of hidden states is so large"
                )
            target.write(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
        raise DumpError(_cut_off(compression, size)) from None
    if compression == "zstd" and not size:
        raise DumpError(_cut_off(compression, size))
    target.flush()


def _cut_off(compression: str, size: int) -> str:
    return (
        f"its {compression} is cut off or damaged after {size} bytes: its writer was stopped, or it is still "
        "being copied; copy or make it again, or remove it"
    )


def _read(opened: DumpFile, whole_content: Content) -> None:
    content = memoryview(whole_content.mapped)
    beginning = bytes(content[:16])
    if beginning.startswith(ZIP):
        archive = Archive(content, whole_content.ask)
        _Flattening(opened, archive).visit("", archive.tree(), 0)
    elif is_safetensors(beginning, len(content)):
        opened.container = "safetensors"
        tensors, unread = read_safetensors(content)
        opened.tensors, opened.unread = tensors[:MAX_TENSORS], unread[:MAX_TENSORS]
    elif beginning.startswith(LEGACY):
        raise DumpError("torch wrote it in the form before 1.6, which cannot be read in part: save it again")
    else:
        raise DumpError("it is neither a file of torch.save nor of safetensors")


class _Flattening:
    """Walks lists and dicts; what is shared is counted each time, so that nothing grows without bound."""

    def __init__(self, opened: DumpFile, archive: Archive) -> None:
        self._opened = opened
        self._archive = archive
        self._visited = 0

    def visit(self, key: str, node: Any, depth: int) -> None:
        self._visited += 1
        if depth > MAX_DEPTH or self._visited > MAX_PLACES or len(self._opened.tensors) >= MAX_TENSORS:
            raise DumpError("it holds more than a sample of hidden states does")
        if isinstance(node, Described):
            self._opened.tensors.append(self._tensor(key or "tensor", node))
        elif isinstance(node, dict):
            for name, child in node.items():
                self.visit(_joined(key, str(name)), child, depth + 1)
        elif isinstance(node, list | tuple):
            for number, child in enumerate(node):
                if isinstance(child, Described | dict | list | tuple):
                    self.visit(f"{key}[{number}]", child, depth + 1)
        elif isinstance(node, str | int | float | bool):
            self._opened.values[key] = whole(node[:200]) if isinstance(node, str) else node

    def _tensor(self, key: str, found: Described) -> Tensor:
        storage = self._archive.storage(found.storage.key)
        if found.storage.elements * found.storage.dtype.bytes > len(storage):
            raise DumpError(f"{key}: its storage is smaller than it says")
        return make_tensor(key, found.storage.dtype, storage, found.offset, found.shape, found.strides)


def _joined(key: str, name: str) -> str:
    return whole(f"{key}.{name[:MAX_KEY]}" if key else name[:MAX_KEY])
