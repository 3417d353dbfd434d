"""The page of the collectors' file, from the structs that read it and the docstrings of their fields."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any

import msgspec
from docs_markdown import code, one_line, page, table

from specscope_collectors.access import Access
from specscope_collectors.collect_tables import DEFAULTS, Options, Target
from specscope_collectors.discoveries import Discover, discovery_kinds
from specscope_collectors.jobs import job_kinds

INTRODUCTION = """
Tables and keys of the file that `specscope collect --config FILE` and `specscope serve --collect FILE` read.
[What to collect](../guide/fleet.md) explains it by example. An unknown table or key is an error.

`name = "…"` at the top of the file is the name of the collector on the Sources page; without it, it is the
host's. It is read when the collector starts; everything else takes effect as soon as the file is saved.

In text, `${NAME}` stands for the environment variable `NAME`, and `$$` for `$`. Write whole paths: others are
taken from where the command was started.
"""


def collect_page() -> str:
    """Return the page."""
    return page("The collectors' file", INTRODUCTION, [*_fixed(), *_discoveries(), *_jobs()])


def _fixed() -> list[str]:
    defaults = {name: DEFAULTS[name] for name in Options.__struct_fields__ if name in DEFAULTS}
    return [_section("[options]", Options, defaults), _section("[[target]]", Target)]


def _discoveries() -> list[str]:
    common = _section("[[discover]]", Discover)
    head = (
        f"`kind` is one of {', '.join(code(name) for name in discovery_kinds())}; each has keys of its own.\n"
    )
    first, _, rest = common.partition("\n\n")
    kinds = [
        _section(f'[[discover]] kind = "{name}"', kind.config, without=Discover)
        for name, kind in discovery_kinds().items()
    ]
    return [f"{first}\n\n{head}\n{rest}", *kinds]


def _jobs() -> list[str]:
    return [_section(f"[[{name}]]", kind.config) for name, kind in job_kinds().items()]


def _section(title: str, kind: type[Any], defaults: dict[str, Any] | None = None, without: Any = None) -> str:
    skipped = set() if without is None else _same_as(kind, without)
    fields = [field for field in msgspec.structs.fields(kind) if field.encode_name not in skipped]
    fields.sort(key=lambda field: field.encode_name in Access.__struct_fields__)
    docs = field_docs(kind)
    rows = [
        [
            code(field.encode_name),
            _type(field.type),
            _default(field, defaults or {}),
            docs.get(field.name, ""),
        ]
        for field in fields
    ]
    head = one_line(inspect.getdoc(kind) or "").replace("``", "`")
    return f"## `{title}`\n\n{head}\n\n" + table(["key", "type", "default", "meaning"], rows)


def _same_as(kind: type[Any], base: Any) -> set[str]:
    """Return the keys of ``base`` that ``kind`` takes over as they are."""
    own = {field.name: field for field in msgspec.structs.fields(kind)}
    return {field.name for field in msgspec.structs.fields(base) if own[field.name].default == field.default}


def field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings of a struct's fields, those of its bases too."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each in (msgspec.Struct, object) or not issubclass(each, msgspec.Struct):
            continue
        found |= _own_docs(each)
    return found


def _own_docs(kind: type[Any]) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[field.target.id] = one_line(str(after.value.value)).replace("``", "`")
    return found


def _type(kind: Any) -> str:
    """Return a type as a user of TOML knows it."""
    info = msgspec.inspect.type_info(kind)
    return _words(info)


def _words(info: Any) -> str:
    inspect_ = msgspec.inspect
    if isinstance(info, inspect_.UnionType):
        return " or ".join(_words(each) for each in info.types if not isinstance(each, inspect_.NoneType))
    if isinstance(
        info, inspect_.ListType | inspect_.VarTupleType | inspect_.SetType | inspect_.FrozenSetType
    ):
        return f"list of {_words(info.item_type)}"
    if isinstance(info, inspect_.DictType):
        return f"table of {_words(info.value_type)}"
    if isinstance(info, inspect_.LiteralType):
        return " or ".join(code(json.dumps(value)) for value in info.values)
    if isinstance(info, inspect_.EnumType):
        return " or ".join(code(json.dumps(each.value)) for each in info.cls)
    simple = {
        inspect_.StrType: "text", inspect_.IntType: "whole number", inspect_.FloatType: "number",
        inspect_.BoolType: "`true` or `false`", inspect_.CustomType: "path", inspect_.AnyType: "anything",
    }  # fmt: skip
    return simple.get(type(info), "table")


def _default(field: Any, defaults: dict[str, Any]) -> str:
    if field.required:
        return "required"
    value = defaults.get(field.name, field.default)
    if value is msgspec.NODEFAULT:
        value = field.default_factory()
    if value is None or value in ({}, [], (), ""):
        return "none"
    return code(json.dumps(value, default=str, ensure_ascii=False))
