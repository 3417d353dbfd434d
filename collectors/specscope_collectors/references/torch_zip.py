"""Files of `torch.save` (1.6 and newer): a zip archive of stored entries, of which rows can be read."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.pickles import read_pickle

MAX_DIRECTORY_BYTES = 4 << 20
LOCAL_HEADER_BYTES = 30
HEADER_BYTES, MAX_ASKED = 4_096, 64
"""Of the headers of entries, which stand all over the file: asked for at once, not waited for one by one."""
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""First bytes of what torch wrote before 1.6."""


Ask = Callable[[Iterable[tuple[int, int]]], None]


class _Bounded(io.RawIOBase):
    """Mapped bytes as a file for `zipfile`, which reads the whole directory at once."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._place = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        start = (0, self._place, len(self._content))[whence]
        if start + offset < 0:
            raise OSError("before the beginning")
        self._place = start + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        end = len(self._content) if size is None or size < 0 else self._place + size
        end = min(end, len(self._content))
        if end - self._place > MAX_DIRECTORY_BYTES:
            raise DumpError("its directory of entries is too large for a sample of hidden states")
        data = bytes(self._content[self._place : end])
        self._place += len(data)
        return data


class Archive:
    """The entries of one file."""

    def __init__(self, content: memoryview, ask: Ask = lambda places: None) -> None:
        """Read the directory. ``ask`` lets the system read (offset, length). Raises DumpError."""
        self._content = content
        try:
            with zipfile.ZipFile(_Bounded(content)) as found:
                self._entries = {info.filename: info for info in found.infolist()}
        except (zipfile.BadZipFile, OSError, struct.error, ValueError, NotImplementedError) as error:
            if isinstance(error, DumpError):
                raise
            raise DumpError(
                "it begins like a file of torch but has no end (the directory is missing): its "
                "writer was stopped, "
                "or it is still being written or copied"
            ) from None
        pickles = [name for name in self._entries if name == "data.pkl" or name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise DumpError("it is a zip archive without one data.pkl: torch did not write it")
        ask([(info.header_offset, HEADER_BYTES) for info in islice(self._entries.values(), MAX_ASKED)])
        self._prefix = pickles[0][: -len("data.pkl")]
        order = self._prefix + "byteorder"
        if order in self._entries and bytes(self._bytes_of(order)).strip() != b"little":
            raise DumpError("it was written on a big-endian machine, which is not read here")

    def tree(self) -> Any:
        """Return the lists and dicts of the file. Raises DumpError."""
        return read_pickle(bytes(self._bytes_of(self._prefix + "data.pkl")))

    def storage(self, key: str) -> memoryview:
        """Return the bytes of a storage, unread. Raises DumpError."""
        return self._bytes_of(f"{self._prefix}data/{key}")

    def _bytes_of(self, name: str) -> memoryview:
        info = self._entries.get(name)
        if info is None:
            raise DumpError(f"its entry {name[:80]!r} is missing")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise DumpError("its entries are compressed, which torch does not do: unpack and save it again")
        header = bytes(self._content[info.header_offset : info.header_offset + LOCAL_HEADER_BYTES])
        if len(header) < LOCAL_HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
            raise DumpError(f"its entry {name[:80]!r} is not where the directory says")
        start = info.header_offset + LOCAL_HEADER_BYTES + sum(struct.unpack_from("<HH", header, 26))
        data = self._content[start : start + info.file_size]
        if len(data) != info.file_size:
            raise DumpError(f"its entry {name[:80]!r} is cut off")
        return data
