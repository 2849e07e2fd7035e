"""What `convert-low-to-upstream` refuses and no text says."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Region

import weft
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.support.errors import CompileError

CALLS = """
func.func @kernel(%A: memref<12xf32>) attributes {low.params = [#low.param<"A", memref<3x4xf32>, readwrite, []>],
    low.symbols = []} {
  func.return
}
func.func @calls(%A: memref<12xf32>) attributes {low.params = [#low.param<"A", memref<3x4xf32>, readwrite, []>],
    low.symbols = []} {
  func.call @kernel(%A) : (memref<12xf32>) -> ()
  func.return
}
"""


def test_function_from_elsewhere_with_buffers_of_several_axes() -> None:
    module = weft.parse(CALLS)
    kernel = module.body.block.first_op
    assert isinstance(kernel, FuncOp)
    kernel.detach_region(kernel.body)
    kernel.add_region(Region())
    kernel.sym_visibility = StringAttr("private")
    with pytest.raises(CompileError, match="@kernel is called, and is declared alone: it takes buffers of"):
        ConvertLowToUpstreamPass().apply(Context(), module)
