"""Registration of tensor intrinsics."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from weft.interp.compare import Mismatch, compare_modules
from weft.passes.schedule.intrinsics import add_intrinsic, intrinsic_of
from weft.support.argument_types import checked
from weft.support.errors import CompileError


@checked
def register_tensor_intrinsic(
    name: str, description: ModuleOp, implementation: ModuleOp, *, override: bool = False
) -> None:
    """Register a tensor intrinsic for `Schedule.tensorize`, which replaces nests of `description` by `implementation`.

    Both are modules of one tir function, over the same buffers of static shape and memory space. The implementation
    contains any tir ops, or calls of external functions that its module declares, on pointers into the buffers:

    ```mlir
    func.func private @copy16(!ptr_xdsl.ptr, !ptr_xdsl.ptr)
    func.func @implementation(%A: memref<16xf32>, %C: memref<16xf32>) {
      %c0 = arith.constant 0 : index
      %a = low.access_ptr %A[%c0] sizes [16] read : memref<16xf32>
      %c = low.access_ptr %C[%c0] sizes [16] write : memref<16xf32>
      func.call @copy16(%a, %c) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr) -> ()
      func.return
    }
    ```
    Without such calls, both are run and must agree. Raises `CompileError` if they do not, if their parameters differ,
    or if the name is taken (unless `override`).
    """
    intrinsic = intrinsic_of(name, description.clone(), implementation.clone())
    if not intrinsic.calls:
        difference = compare_modules(_named(intrinsic.description), _named(intrinsic.implementation))
        if isinstance(difference, Mismatch):
            detail = "the implementation does not compute what the description says"
            raise CompileError(f"tensor intrinsic '{name}': {detail}: {difference}")
    add_intrinsic(intrinsic, override=override)


def _named(function: FuncOp) -> ModuleOp:
    copy = function.clone()
    copy.sym_name = StringAttr("intrinsic")
    return ModuleOp([copy])
