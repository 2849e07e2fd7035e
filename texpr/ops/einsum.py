"""einsum: sums of products by subscripts."""

from __future__ import annotations

from weft.support.argument_types import shown
from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import compute, numeric, one_dtype, result_dtype, sum_dtype
from weft.texpr.ops.broadcasting import is_one
from weft.texpr.ops.extents import is_same, shape_text
from weft.texpr.places import error
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor

__all__ = ["einsum"]


def einsum(subscripts: str, *operands: Tensor, out_dtype: object = None, name: str = "einsum") -> Tensor:
    """The sum of products that subscripts describe: "ij,jk->ik" is a product of matrices.

    Each letter is an axis. One that an operand has twice is a diagonal, one that the result has not is summed over;
    extents of 1 broadcast. All operands are multiplied in one stage, in the order given. Sums are formed in
    `out_dtype` (that of the operands), of floats of 16 bits in float32. Raises CompileError for subscripts without
    "->", for a rank that is not the number of letters, and for extents of a letter that differ.

    Dtypes: numbers.
    Equals: `np.einsum(subscripts, *operands)`.
    """
    inputs, output = _parsed(subscripts, len(operands))
    given = [numeric(tensor, f"einsum: operand {position}") for position, tensor in enumerate(operands)]
    dtype = result_dtype(out_dtype, one_dtype("einsum", *given))
    extents = _extents(subscripts, inputs, given)
    for letter in output:
        if letter not in extents or output.count(letter) > 1:
            raise error(f"einsum '{subscripts}': letter {letter} of the result is not once in it and in an operand")
    over = {letter: reduce_axis((0, extents[letter]), letter) for letter in extents if letter not in output}
    sums = sum_dtype(dtype)

    def element(*indices: Expr) -> Expr:
        at: dict[str, Expr] = {**dict(zip(output, indices, strict=True)), **over}
        product: Expr | None = None
        for letters, tensor in zip(inputs, given, strict=True):
            places = [
                0 if is_one(extent) and not is_one(extents[letter]) else at[letter]
                for letter, extent in zip(letters, tensor.shape, strict=True)
            ]
            factor = tensor(*places).astype(sums)
            product = factor if product is None else product * factor
        value = product if product is not None else given[0]()
        return (sum_over(value, axis=list(over.values())) if over else value).astype(dtype)

    return compute([extents[letter] for letter in output], element, name, list(output))


def _parsed(subscripts: object, count: int) -> tuple[list[str], str]:
    """The letters of each operand and of the result."""
    if not isinstance(subscripts, str) or subscripts.count("->") != 1:
        raise error(f"einsum: subscripts are explicit, as in 'ij,jk->ik', got {shown(subscripts)}")
    left, output = subscripts.replace(" ", "").split("->")
    inputs = left.split(",")
    if not all(part == "" or (part.isalpha() and part.isascii()) for part in (*inputs, output)):
        raise error(f"einsum: subscripts are letters, got {shown(subscripts)}")
    if len(inputs) != count:
        raise error(f"einsum '{subscripts}' is of {len(inputs)} operands, got {count}")
    return inputs, output


def _extents(subscripts: str, inputs: list[str], operands: list[Tensor]) -> dict[str, Extent]:
    """The extent of each letter, in the order of first use."""
    extents: dict[str, Extent] = {}
    for letters, tensor in zip(inputs, operands, strict=True):
        if len(letters) != tensor.ndim:
            raise error(
                f"einsum '{subscripts}': '{letters}' has {len(letters)} letters, {tensor.name} of shape "
                f"{shape_text(tensor.shape)} has rank {tensor.ndim}"
            )
        for letter, extent in zip(letters, tensor.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if is_one(known):
                extents[letter] = extent
            elif not is_one(extent) and not is_same(known, extent):
                raise error(f"einsum '{subscripts}': letter {letter} is {known} and {extent}")
    return extents
