"""Which methods the classes of an installed SGLang have, read from its source without importing it.

Importing SGLang takes tens of seconds and may touch the device; reading a few files takes neither.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path


class NotInstalledError(LookupError):
    """There is no SGLang in this environment; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Class:
    """A class as it is written."""

    bases: tuple[str, ...]
    """Last component of each base's name."""
    methods: frozenset[str]


@dataclass
class SourceTree:
    """The package ``sglang.srt`` on disk."""

    root: Path
    version: str
    unreadable: list[str] = field(default_factory=list)
    """Files that could not be parsed, with the reason."""

    def methods(self, class_name: str) -> frozenset[str] | None:
        """Return the methods of a class, inherited ones included; None: there is no such class."""
        return self._methods(class_name, frozenset())

    def _methods(self, class_name: str, below: frozenset[str]) -> frozenset[str] | None:
        found = self._classes.get(class_name)
        if found is None or class_name in below:
            return None
        inherited = (self._methods(base, below | {class_name}) for base in found.bases)
        return found.methods.union(*(methods for methods in inherited if methods))

    @cached_property
    def _classes(self) -> dict[str, Class]:
        """Every class of the folders in which workers, runners and schedulers live, by name."""
        classes: dict[str, Class] = {}
        for folder in ("speculative", "managers", "model_executor", "disaggregation", "multiplex"):
            for path in sorted((self.root / folder).rglob("*.py")):
                classes |= self._read(path)
        return classes

    def _read(self, path: Path) -> dict[str, Class]:
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        except (SyntaxError, ValueError, OSError) as error:
            self.unreadable.append(f"{path.relative_to(self.root)}: {error}")
            return {}
        return {node.name: _class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class(node: ast.ClassDef) -> Class:
    methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    return Class(tuple(bases), frozenset(methods))


def installed() -> SourceTree:
    """Return the source of the SGLang of this environment. Raises NotInstalledError."""
    found = importlib.util.find_spec("sglang")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    roots = [Path(folder) / "srt" for folder in folders if (Path(folder) / "srt").is_dir()]
    if not roots:
        raise NotInstalledError(
            "there is no SGLang in this environment; run this command with the Python that runs SGLang"
        )
    return SourceTree(roots[0], _version(roots[0].parent.parent))


def _version(site_packages: Path) -> str:
    """Return the version of the SGLang in that folder, which is not always the first one on the path."""
    for folder in sorted(site_packages.glob("sglang-*.dist-info")):
        return folder.name.removeprefix("sglang-").removesuffix(".dist-info")
    try:
        return importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
