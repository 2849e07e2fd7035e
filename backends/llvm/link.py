"""Linking of LLVM IR modules: imported ones, and parts of weft's own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.backends.llvm.compile import IMPORTED, located, parse_ir, target_machine
from weft.backends.llvm.pass_selection import without_pass_selection
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import llvmlite.binding as llvm

    from weft.support.target import Target


def link_ir(text: str, imports: Sequence[str]) -> str:
    """The functions of `imports` become private. Raises `CompileError` for imports that are not LLVM IR, and for
    duplicate definitions."""
    with _parsed(f"{text}\n{IMPORTED} = !{{}}\n") as (module, context):
        own = set(_defined(module))
        for source in imports:
            own |= _link_import(module, source, own, context)
        return str(module)


def linked_ir(texts: Sequence[str]) -> str:
    """The modules resolve each other's declarations."""
    if len(texts) == 1:
        return texts[0]
    first, *others = map(without_pass_selection, texts)
    with _parsed(first) as (module, context):
        for text in others:
            module.link_in(parse_ir(text, context))
        return str(module)


@contextmanager
def _parsed(text: str) -> Generator[tuple[llvm.ModuleRef, llvm.ContextRef]]:
    """Both are valid until the end of the `with` block."""
    import llvmlite.binding as llvm

    context = llvm.create_context()
    try:
        module = parse_ir(text, context)
        try:
            yield module, context
        finally:
            module.close()
    finally:
        context.close()


def _link_import(module: llvm.ModuleRef, text: str, own: set[str], context: llvm.ContextRef) -> set[str]:
    """`module` defines the functions `own`. Returns those that `text` defines."""
    import llvmlite.binding as llvm

    try:
        imported = llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise CompileError(f"imported LLVM IR is not valid: {located(str(error), text)}") from error
    names = _defined(imported)
    clash = sorted(own.intersection(names))
    if clash:
        imported.close()  # before its context
        raise CompileError(f"imported LLVM IR defines '{clash[0]}', which the module defines too")
    imported.triple = module.triple
    imported.data_layout = module.data_layout
    for name in names:
        imported.get_function(name).linkage = llvm.Linkage.linkonce_odr
    module.link_in(imported)
    return set(names)


def _defined(module: llvm.ModuleRef) -> list[str]:
    functions = [f for f in module.functions if not f.is_declaration]
    return [str(f.name) for f in functions]  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True)
class LinkedText:
    """Definitions are hidden and weak, so that several objects share one. Functions of `internal` become private, those
    of `kept` stay even if unused, and those of `visible` stay and are exported."""

    text: str
    internal: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()


def link_parts(text: str, parts: Sequence[LinkedText], target: Target) -> str:
    """Raises `InternalError` if a part is not LLVM IR."""
    import llvmlite.binding as llvm

    layout = str(target_machine(target).target_data)
    with _parsed(without_pass_selection(text)) as (module, context):
        for part in parts:
            linked = parse_ir(part.text, context)
            for one in (module, linked):
                one.triple, one.data_layout = target.triple, layout
            _weaken(linked, part)
            module.link_in(linked)
            for name in part.internal:
                module.get_function(name).linkage = llvm.Linkage.internal
        return str(module)


def _weaken(module: llvm.ModuleRef, part: LinkedText) -> None:
    """Functions that become internal must still be visible to the linker."""
    import llvmlite.binding as llvm

    for value in (*module.functions, *module.global_variables):
        name = str(value.name)  # pyright: ignore[reportUnknownArgumentType]
        if value.is_declaration or value.linkage is not llvm.Linkage.external or name in part.internal:
            continue
        stays = name in part.kept or name in part.visible
        value.linkage = llvm.Linkage.weak_odr if stays else llvm.Linkage.linkonce_odr
        if name not in part.visible:
            value.visibility = llvm.Visibility.hidden
