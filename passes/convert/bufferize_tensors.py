"""bufferize-tensors: buffers in place of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    MemRefType,
    ModuleOp,
)
from xdsl.passes import ModulePass

from weft.dialects.promises import Promise, parse_promises, state_promises
from weft.passes.convert.bufferization_analysis import BufferizationAnalysis
from weft.passes.convert.function_bufferization import FunctionBufferization, Rule
from weft.passes.convert.tensor_creation import CREATION
from weft.passes.convert.tensor_decompositions import decompose
from weft.passes.convert.upstream_functions import convertible, tensor_functions
from weft.support.errors import remark


@dataclass(frozen=True)
class BufferizeTensorsPass(ModulePass):
    """Give functions over tensors buffers: their operations write into memory instead of making new values.

    ```mlir
    func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>) -> tensor<4x4xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
      %C = linalg.matmul ins(%A, %B : ...) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
      return %C : tensor<4x4xf32>
    // becomes
    func.func @f(%A: memref<4x8xf32>, %B: memref<8x4xf32>, %C: memref<4x4xf32>) {
      linalg.fill ins(%zero : f32) outs(%C : memref<4x4xf32>)
      linalg.matmul ins(%A, %B : ...) outs(%C : memref<4x4xf32>)
      return
    ```
    Tensor arguments become dense buffers, results trailing parameters. Only arguments with `bufferization.writable =
    true` are written; result buffers of callers overlap no other. The output is upstream's: `linalg` on buffers,
    `memref.alloc` for separate memory, `linalg.copy` to save values that are read later (`bufferization_analysis.py`),
    `memref.global` for constants. weft's own lowering places and frees buffers itself, without `deallocation`.

    Raises `CompileError` for operations that have no form on buffers, with the module unchanged.

    Requires: functions over tensors of `linalg`, `tensor`, `scf`, `arith` and calls.

    Leaves: functions over buffers, of upstream dialects only.
    """

    name = "bufferize-tensors"
    promises: tuple[str, ...] = ()
    """Assumptions in addition to those of the program: `noalias`, `contract`, `reassoc` (`dialects/promises.py`)."""
    strict: bool = False
    """Whether a module without functions over tensors is an error instead of a remark."""
    deallocation: bool = False
    """Whether allocations are freed at the end of their block."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        named = parse_promises(self.promises)
        functions = tensor_functions(op)
        if not functions:
            message = f"{self.name}: the module has no function over tensors of upstream operations"
            remark(op, message, strict=self.strict)
        functions = convertible(op, self.name, functions, strict=self.strict)
        decompose(functions)
        bufferize_functions(functions, named, deallocation=self.deallocation)


def bufferize_functions(
    functions: Sequence[func.FuncOp],
    promises: frozenset[Promise] = frozenset(),
    *,
    deallocation: bool = False,
    asserts: bool = False,
) -> None:
    """Replace tensors by buffers in `functions` of one module, in place, in all or (`CompileError`) in none.

    With `asserts`, `cf.assert` states the extents of results and the padding that callers must pass. Result buffers
    must overlap no other; read-only arguments are not written. Ops of linalg have no results, copies are `linalg.copy`,
    and `memref.alloc` has identity layout. `tir.promises` contains `promises` and, if all buffers of the signature were
    tensors, `noalias`.
    """
    known = {function.sym_name.data: function for function in functions}
    placements = [BufferizationAnalysis(function, known).run() for function in functions]
    for function, placement in zip(functions, placements, strict=True):
        is_ours = not any(isinstance(type_, MemRefType) for type_ in function.function_type.inputs)
        FunctionBufferization(function, placement, _RULES, asserts=asserts).run(deallocation=deallocation)
        state_promises(function, promises | {Promise.NOALIAS} if is_ours else promises)


_RULES: Final[Mapping[str, Rule]] = {
    **CREATION,
    "arith.constant": FunctionBufferization.constant,
    "bufferization.clone": FunctionBufferization.clone,
    "bufferization.dealloc_tensor": FunctionBufferization.drop,
    "bufferization.materialize_in_destination": FunctionBufferization.materialize,
    "bufferization.to_buffer": FunctionBufferization.to_buffer,
    "bufferization.to_tensor": FunctionBufferization.to_tensor,
    "func.call": FunctionBufferization.call,
    "func.return": FunctionBufferization.returns,
    "scf.condition": FunctionBufferization.terminator,
    "scf.execute_region": FunctionBufferization.branches,
    "scf.for": FunctionBufferization.loop,
    "scf.forall": FunctionBufferization.forall,
    "scf.if": FunctionBufferization.branches,
    "scf.index_switch": FunctionBufferization.branches,
    "scf.while": FunctionBufferization.while_loop,
    "scf.yield": FunctionBufferization.terminator,
    "tensor.cast": FunctionBufferization.cast_of,
    "tensor.collapse_shape": FunctionBufferization.reshape,
    "tensor.dim": FunctionBufferization.dim_of,
    "tensor.expand_shape": FunctionBufferization.reshape,
    "tensor.extract": FunctionBufferization.extract,
    "tensor.extract_slice": FunctionBufferization.extract_slice,
    "tensor.insert": FunctionBufferization.insert_element,
    "tensor.insert_slice": FunctionBufferization.insert_slice,
    "tensor.parallel_insert_slice": FunctionBufferization.drop,
    "tensor.rank": FunctionBufferization.rank_of,
    "tensor.reshape": FunctionBufferization.reshape,
}
