"""low-lower-intrinsics: lower intrinsics by rules of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.element_types import element_name
from weft.dialects.low import INTRINSIC, PURE
from weft.passes.index_builders import insert_at_start
from weft.passes.low.op_rewriter import OpRewriter, element_of
from weft.support.errors import CompileError
from weft.support.user_functions import IntrinsicCall, intrinsics, lowered_name, names_with_rules

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class LowerIntrinsicsPass(ModulePass):
    """Replace intrinsics by registered rules: `low-lower-intrinsics{target=opencl}`.

    ```mlir
    %b = func.call @mylog(%a) : (f32) -> f32     ->     %b = func.call @log(%a) : (f32) -> f32
    %e = math.exp %a : f32                       ->     %e = func.call @my_exp(%a) : (f32) -> f32, by a rule for "exp"
    ```
    Intrinsics are called per lane of a vector. Raises `CompileError` for an intrinsic without a rule for the target and
    its types.

    Requires: low functions.

    Leaves: low functions that call functions of the target's language.
    """

    name = "low-lower-intrinsics"

    target: str
    """As in `weft.build`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = self.target.partition(" ")[0]
        ruled = names_with_rules()
        known = intrinsics()
        if not ruled and not known:
            return
        functions = {f.sym_name.data: f for f in op.ops if isinstance(f, FuncOp)}
        for function in list(functions.values()):
            for inner in list(function.walk()):
                if isinstance(inner, CallOp) and inner.callee.string_value() in known:
                    callee = functions.get(inner.callee.string_value())
                    if callee is None or callee.is_declaration:
                        _lower(op, functions, inner, inner.callee.string_value(), kind, required=True)
                elif inner.name.startswith("math.") and inner.name[5:] in ruled:
                    _lower(op, functions, inner, inner.name[5:], kind, required=False)
        _drop_unused(op, functions)


def _drop_unused(module: ModuleOp, functions: dict[str, FuncOp]) -> None:
    called = {call.callee.string_value() for call in module.walk() if isinstance(call, CallOp)}
    for name, function in functions.items():
        if function.is_declaration and name in intrinsics() and name not in called:
            Rewriter.erase_op(function)


def _lower(
    module: ModuleOp, functions: dict[str, FuncOp], op: Operation, name: str, target: str, *, required: bool
) -> None:
    results = [element_of(result.type) for result in op.results]
    elements = [element_of(operand.type) for operand in op.operands]
    if len(results) > 1:
        raise CompileError.at(op, f"an intrinsic gives one result or none, '{name}' gives {len(results)}")
    dtype = _dtype(results[0], op) if results else "void"
    call = IntrinsicCall(name, dtype, tuple(_dtype(e, op) for e in elements))
    found = lowered_name(call, target)
    if found is None:
        if not required:
            return
        types = ", ".join(call.arguments)
        raise CompileError.at(
            op,
            f"intrinsic '{name}' of ({types}) has no lowering for target {target}: register one with "
            f'weft.register_lowering("{name}", target="{target}")',
        )
    known = intrinsics().get(name)
    _declare(module, functions, found, elements, results, name, pure=known is None or known.pure)
    rewriter = OpRewriter(op)

    def call_on(operands: list[SSAValue]) -> SSAValue:
        return rewriter.insert(CallOp(SymbolRefAttr(found), operands, results))

    if results:
        rewriter.replace(rewriter.lane_by_lane(call_on))
    else:
        rewriter.become(CallOp(SymbolRefAttr(found), list(op.operands), []))


def _declare(
    module: ModuleOp,
    functions: dict[str, FuncOp],
    name: str,
    inputs: Sequence[Attribute],
    outputs: Sequence[Attribute],
    intrinsic: str,
    *,
    pure: bool,
) -> None:
    found = functions.get(name)
    if found is None:
        found = FuncOp.external(name, list(inputs), list(outputs))
        found.attributes[INTRINSIC] = StringAttr(intrinsic)
        if pure:
            found.attributes[PURE] = UnitAttr()
        insert_at_start(module.body.block, found)
        functions[name] = found
    elif list(found.function_type.inputs) != list(inputs) or list(found.function_type.outputs) != list(outputs):
        raise CompileError.at(
            found, f"@{name} is {found.function_type}, and an intrinsic is lowered to one with other types"
        )


def _dtype(type_: Attribute, op: Operation) -> str:
    name = "index" if isinstance(type_, IndexType) else element_name(type_)
    if name is None:
        raise CompileError.at(op, f"an intrinsic takes and gives numbers, got {type_}")
    return name
