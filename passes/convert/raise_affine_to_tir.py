"""`raise-affine-to-tir`: loops of `affine` and `scf` over buffers become block loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.dialects.promises import parse_promises, set_promises
from weft.dialects.tir_kinds import TIR_FUNCTION, LoopKind, LoopKindAttr
from weft.passes.convert.loop_distribution import distribute_loops
from weft.passes.convert.loop_normalization import LoopNormalization
from weft.passes.convert.reduction_inits import merge_inits
from weft.passes.convert.statement_blocks import StatementBlocks
from weft.passes.tir.nest import buffer_functions
from weft.support.errors import CompileError, remark

_RAISED = ("affine.", "scf.")
_ACCESSES = (memref.LoadOp, memref.StoreOp, memref.CopyOp)


@dataclass(frozen=True)
class RaiseAffineToTirPass(ModulePass):
    """Raise the functions over buffers that hold loops, conditions, loads or stores of `affine`, `scf` and `memref`:
    `raise-affine-to-tir{promises=noalias,contract,reassoc}`.

    ```mlir
    affine.for %i = 0 to 128 { affine.for %j = 0 to 128 { affine.for %k = 0 to 64 {
      %a = affine.load %A[%i, %k] ...  affine.store %s, %C[%i, %j]
    // becomes
    tir.for %i in 128 { tir.for %j in 128 { tir.for %k in 64 {
      tir.block "C" iters(%vi: spatial<128>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] { ... }
    ```
    Each store becomes a block, called as the buffer; see `loop_normalization.py`, `statement_blocks.py`,
    `loop_distribution.py` and `reduction_inits.py` for the steps. `promises` are what the functions promise
    (`dialects/promises.py`): upstream promises nothing by itself. A function that cannot be raised stays as it is, with
    a remark; with `strict`, that is an error.
    """

    name = "raise-affine-to-tir"

    promises: tuple[str, ...] = ()
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        promises = parse_promises(self.promises)
        found = False
        for function in list(buffer_functions(op)):
            if not _is_to_raise(function):
                continue
            found = True
            problem = why_not_raised(function)
            if problem is not None:
                self._tell(*problem)
                continue
            set_promises(function, promises)
            raise_function(function)
        if not found:
            self._tell(op, f"{self.name} finds no function of affine or scf loops over buffers")

    def _tell(self, op: Operation, message: str) -> None:
        if self.strict:
            raise CompileError.at(op, message)
        remark(op, message)


def _is_to_raise(function: FuncOp) -> bool:
    return any(op.name.startswith(_RAISED) or isinstance(op, _ACCESSES) for op in function.body.walk())


def why_not_raised(function: FuncOp) -> tuple[Operation, str] | None:
    """The op because of which a function cannot be raised, and why; None where it can be."""
    name = function.sym_name.data
    if len(function.body.blocks) != 1:
        return (
            function,
            f"@{name} has {len(function.body.blocks)} blocks: branches are not raised, structured loops are",
        )
    if any(isinstance(type_, MemRefType) for type_ in function.function_type.outputs):
        return function, f"@{name} returns a buffer: results are in buffers that callers pass"
    return None


def raise_function(function: FuncOp) -> bool:
    """Give a function block loops in the place of what it has of `affine` and `scf`; nests of tir in it stay. Returns
    whether it changed. Raises `CompileError` for what `why_not_raised` tells, and where an op cannot be raised."""
    if not _is_to_raise(function):
        return False
    problem = why_not_raised(function)
    if problem is not None:
        raise CompileError.at(*problem)
    loops = LoopNormalization(function)
    loops.run()
    StatementBlocks(function, loops).run()
    for loop in loops.parallel:
        loop.kind = LoopKindAttr(LoopKind.PARALLEL)
    distribute_loops(function)
    merge_inits(function)
    function.attributes[TIR_FUNCTION] = UnitAttr()
    return True
