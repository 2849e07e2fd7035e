"""`graph-pack-weights`: pack quantized weights in panels of columns, and choose tiles of recurrent networks."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import TYPES
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_traits import Recurrent
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.operators import dtype_of, made, made_constant, properties_of, type_of, with_trait
from weft.passes.graph.recurrent_products import with_tile
from weft.passes.graph.rewriting import Replacement, Rule, rewrite
from weft.support.cpu_instructions import BYTE, SIGNED_BYTE, Factor, has_dot_product
from weft.support.errors import CompileError
from weft.support.target import Target
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.dequantized_products import BYTES_OF

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

_VECTORS: Final = 4
"""Limit of the number of vectors of columns of a panel: enough sums to hide the latency of multiply-adds."""
ROWS: Final = 4
"""Rows of a tile, which share unpacked weights, if there are many and the sums are dot products of bytes."""
WEIGHTS: Final = {8: BYTE, 4: Factor(8, signed=False, width=4)}
"""Bits of weights -> the factors of dot products."""
_WORD: Final = 4
"""Bytes of an element of packed weights."""


def panel_width(columns: int, target: Target, sums: int = 1) -> int:
    """Returns the most columns, whole vectors, with `sums` sums each in registers; if possible a divisor of
    `columns`."""
    lanes = max(target.vector_bytes // 4, 1)
    most = _VECTORS
    while most > 1 and sums * most > target.vector_registers // 2:
        most //= 2
    widths = (lanes * count for count in (_VECTORS, _VECTORS // 2, 1) if count <= most)
    return next((width for width in widths if columns % width == 0), lanes * min(most, -(-columns // lanes)))


def _sums(op: Operator, data: SSAValue) -> int:
    count = 1 if "compute_dtype" in op.properties else BYTES_OF[dtype_of(data)]
    rows = prod(ROWS if extent < 0 else extent for extent in type_of(data).get_shape()[:-1])
    return count * max(min(rows, ROWS), 1)


def in_panels(rows: Array, width: int) -> Array:
    """Packs (n, m) as (ceil(n / width), m, width), padded with zeros."""
    import numpy as np

    filled = np.pad(rows, ((0, -len(rows) % width), (0, 0)))
    return np.ascontiguousarray(filled.reshape(-1, width, rows.shape[1]).swapaxes(1, 2))


def _check(op: Operator, weight: SSAValue, scale: SSAValue, zero_point: SSAValue | None) -> None:
    """Raises `CompileError` for non-finite scales and zero points, and for zero points wider than weights."""
    import numpy as np

    name, bits = weight.name_hint or op.results[0].name_hint or "w", cast("int", arguments_of(op)["bits"])
    for what, value in (("scale", scale), ("zero point", zero_point)):
        if value is None:
            continue
        array = array_of_constant(cast("ConstantOp", value.owner))
        is_float = array.dtype.kind == "f"
        wrong = ~np.isfinite(array) if is_float else array >> bits != 0
        if wrong.any():
            column, group = (int(at[0]) for at in np.nonzero(wrong))
            limits = "must be finite" if is_float else f"must be below {1 << bits}"
            found = array[column, group]
            raise CompileError.at(
                op, f"weights '{name}': the {what} of column {column}, group {group} {limits}, is {found}"
            )


def _packed(op: Operation, target: Target) -> Replacement:
    import numpy as np

    if not isinstance(op, Operator):
        return None
    data, weight, scale, zero_point, bias = cast("list[SSAValue]", op.grouped(op.operands, op.properties))
    parameters = [value for value in (weight, scale, cast("SSAValue | None", zero_point)) if value is not None]
    if type_of(weight).get_num_dims() != 2 or not all(isinstance(value.owner, ConstantOp) for value in parameters):
        return None
    _check(op, weight, scale, cast("SSAValue | None", zero_point))
    columns, size = type_of(weight).get_shape()
    is_whole = columns % max(target.vector_bytes // 4, 1) == 0
    if size % _WORD or not columns:
        return None
    bits = cast("int", arguments_of(op)["bits"])
    has_bytes = is_whole and has_dot_product(target, WEIGHTS[bits], SIGNED_BYTE)
    width = panel_width(columns, target, _sums(op, data) if has_bytes else 1)

    def packed(value: SSAValue | None) -> SSAValue | None:
        if value is None:
            return None
        array, element = array_of_constant(cast("ConstantOp", value.owner)), type_of(value).element_type
        if value is weight:
            array = in_panels(array.view("<u4"), width)
            if has_bytes:
                array = array.view(np.uint8).reshape(*array.shape, _WORD)
                if bits == 4:  # rows 0 to 3 of a word are in the low halves of its bytes, the others in the high halves
                    rows = np.stack([array & 15, array >> 4], -1).reshape(*array.shape[:-1], 2 * _WORD)
                    array = rows[..., :_WORD] | rows[..., _WORD:] << 4
            else:
                element = cast("Attribute", TYPES["uint32"])
        else:
            array = in_panels(array, width)
        result = made_constant(array, element).result
        result.name_hint = value.name_hint
        return result

    operands = [data, *map(packed, (weight, scale, zero_point)), bias]
    return made("dequantized_matmul", operands, **properties_of(op, "columns"), columns=columns)


@dataclass(frozen=True)
class GraphPackWeightsPass(ModulePass):
    """Pack constant weights of `graph.dequantized_matmul` in panels of columns, several vectors of `target` wide.

    A vector of a panel contains 32 bits of weights of each of its columns. Kernels for any number of rows read the
    same panels. For targets with dot products of such weights and signed bytes, the 32 bits are four bytes of uint8,
    whose low halves contain four consecutive 4-bit weights.

    Recurrent networks get the tile of the weights of their states, which lowering packs: sequences that a thread
    computes together, fewer for more threads, and at most 32 gate elements, whose sums of 4 sequences fill half of
    the registers.

    Requires: graph functions whose types are known (`graph-infer-types`).
    Leaves: the same functions; weights that are not constant, or whose columns are not whole 32-bit words, are
    unchanged.

    ```mlir
    func.func @f(%x: tensor<1x8xf32>) -> tensor<1x16xf32> {
      %w = graph.constant dense<17> : tensor<16x4xui8>
      %s = graph.constant dense<0.5> : tensor<16x1xf32>
      %y = graph.dequantized_matmul %x, %w, %s {group_size = 8}
        : tensor<1x8xf32>, tensor<16x4xui8>, tensor<16x1xf32>
      func.return %y : tensor<1x16xf32>
    }
    // becomes, with target="llvm -mcpu=haswell"
    func.func @f(%x: tensor<1x8xf32>) -> tensor<1x16xf32> {
      %w = graph.constant dense<17> : tensor<1x1x16x4xui8>
      %s = graph.constant dense<0.5> : tensor<1x1x16xf32>
      %y = graph.dequantized_matmul %x, %w, %s {columns = 16, group_size = 8}
        : tensor<1x8xf32>, tensor<1x1x16x4xui8>, tensor<1x1x16xf32>
      func.return %y : tensor<1x16xf32>
    }
    ```
    """

    name = "graph-pack-weights"

    target: str = "llvm"
    """The target, whose vectors and registers determine the width of panels."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        rules = (
            Rule(frozenset(("dequantized_matmul",)), lambda product: _packed(product, target)),
            Rule(with_trait(Recurrent), lambda network: with_tile(network, target)),
        )
        for function in list(graph_functions(op)):
            rewrite(function, rules)
