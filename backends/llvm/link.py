"""Modules of LLVM IR that come from elsewhere, linked into the one that is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.backends.llvm.compile import IMPORTED, located, parse_ir, target_machine
from weft.backends.llvm.pass_selection import without_pass_selection
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import llvmlite.binding as llvm

    from weft.support.target import Target


def link_ir(text: str, imports: Sequence[str]) -> str:
    """`text` together with modules of LLVM IR from elsewhere, whose functions become private to it.

    Raises `CompileError` for imported text that is no LLVM IR, or that defines what is defined already.
    """
    import llvmlite.binding as llvm

    context = llvm.create_context()
    try:
        module = parse_ir(f"{text}\n{IMPORTED} = !{{}}\n", context)
        try:
            own = set(_defined(module))
            for source in imports:
                own |= _link_import(module, source, own, context)
            return str(module)
        finally:
            module.close()
    finally:
        context.close()


def _link_import(module: llvm.ModuleRef, text: str, own: set[str], context: llvm.ContextRef) -> set[str]:
    """Link imported LLVM IR into `module`, which defines the functions `own`; returns what it defines."""
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
    """The functions that a module defines."""
    functions = [f for f in module.functions if not f.is_declaration]
    return [str(f.name) for f in functions]  # pyright: ignore[reportUnknownArgumentType]


@dataclass(frozen=True)
class LinkedText:
    """Text to link in. What it defines is hidden and weak, so that several objects which have it share one.

    `internal` becomes private to the module, `kept` stays even where nothing calls it yet, and `visible` stays and
    can be called from outside."""

    text: str
    internal: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()


def link_parts(text: str, parts: Sequence[LinkedText], target: Target) -> str:
    """`text` together with parts of weft's own. Raises `InternalError` when one is not LLVM IR."""
    import llvmlite.binding as llvm

    layout = str(target_machine(target).target_data)
    context = llvm.create_context()
    try:
        module = parse_ir(without_pass_selection(text), context)
        try:
            for part in parts:
                linked = parse_ir(part.text, context)
                for one in (module, linked):
                    one.triple, one.data_layout = target.triple, layout
                _weaken(linked, part)
                module.link_in(linked)
                for name in part.internal:
                    module.get_function(name).linkage = llvm.Linkage.internal
            return str(module)
        finally:
            module.close()
    finally:
        context.close()


def _weaken(module: llvm.ModuleRef, part: LinkedText) -> None:
    """Set how what `part` defines is seen from outside. Functions that become internal are still found by linking."""
    import llvmlite.binding as llvm

    for value in (*module.functions, *module.global_variables):
        name = str(value.name)  # pyright: ignore[reportUnknownArgumentType]
        if value.is_declaration or value.linkage is not llvm.Linkage.external or name in part.internal:
            continue
        stays = name in part.kept or name in part.visible
        value.linkage = llvm.Linkage.weak_odr if stays else llvm.Linkage.linkonce_odr
        if name not in part.visible:
            value.visibility = llvm.Visibility.hidden
