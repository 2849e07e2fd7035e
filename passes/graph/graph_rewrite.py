"""`graph-rewrite`: recognise operators, fold scales into products, cancel transposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.passes import ModulePass

from weft.passes.graph.dequantized_products import DEQUANTIZED
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_simplify import IDENTITIES, identity
from weft.passes.graph.lookup_tables import TABLES
from weft.passes.graph.quantized_products import QUANTIZED, centre_quantized, make_unsigned, multiply_bytes
from weft.passes.graph.recognition import ACTIVATIONS, ATTENTION, NORMALIZATIONS
from weft.passes.graph.recurrent_products import RECURRENT
from weft.passes.graph.rewriting import Rule, rewrite
from weft.passes.graph.separable_pools import POOLS
from weft.passes.graph.transposed_convolution import TRANSPOSED_CONVOLUTIONS
from weft.passes.graph.view_motion import CASTS, RESHAPES, TRANSPOSES
from weft.passes.graph.weight_folding import FOLD_SCALES, MERGE_CONSTANTS, merge_products
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from weft.texpr.graph_operators import Operator

RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "tables": TABLES,
    "quantized": QUANTIZED,
    "dequantized": DEQUANTIZED,
    "activations": ACTIVATIONS,
    "norms": NORMALIZATIONS,
    "attention": ATTENTION,
    "recurrent": RECURRENT,
    "pools": POOLS,
    "casts": CASTS,
    "reshapes": RESHAPES,
    "transposes": TRANSPOSES,
    "scales": FOLD_SCALES,
    "constants": MERGE_CONSTANTS,
    "products": (),
    "bytes": (),
    "transposed_convolutions": TRANSPOSED_CONVOLUTIONS,
}
"""Rules by name, in the order in which they are tried on an op."""

DEFAULT_RULES: Final = tuple(name for name in RULES if name not in ("constants", "products", "bytes", "tables"))
"""Rules that are profitable wherever they apply. Merged constants round differently without gain if operators are
fused; merged products gain if parts of their result are not copied; byte products and tables gain if CPUs have
instructions for them."""

_LAST: Final = ("transposed_convolutions",)
"""Rules applied last, since others fold into the weights of transposed convolutions."""

_IDENTITIES: Final = Rule(frozenset(IDENTITIES), lambda op: identity(cast("Operator", op)))


def rewrite_graph(function: FuncOp, names: Sequence[str] = DEFAULT_RULES) -> int:
    """Apply the named rules. Returns the number of replacements."""
    rules = [_IDENTITIES, *(rule for name in RULES if name in names and name not in _LAST for rule in RULES[name])]
    count = make_unsigned(function) if "quantized" in names else 0
    count += rewrite(function, rules) + (merge_products(function) if "products" in names else 0)
    last = [rule for name in _LAST if name in names for rule in RULES[name]]
    if last and (replaced := rewrite(function, last)):
        count += replaced + rewrite(function, rules)
    count += centre_quantized(function) if "quantized" in names else 0
    return count + (multiply_bytes(function) if "bytes" in names else 0)


@dataclass(frozen=True)
class GraphRewritePass(ModulePass):
    """Replace operators by equivalent ones with less work.

    | rules | effect |
    |---|---|
    | `tables` | elementwise functions from bytes to bytes read a table of 256 bytes; not by default |
    | `quantized` | products of dequantized integers are products of integers, whose sums are scaled and quantized |
    | `dequantized` | products with dequantized constants, and gathers of their rows, read the stored integers |
    | `activations` | recognise gelu (by erf and by tanh), silu, softplus, mish, hardswish, softsign, relu and others |
    | `norms` | recognise layer norm, rms norm, softmax, log softmax, logsumexp; fold scale and shift into a norm |
    | `attention` | recognise softmax(q k^T * scale + mask) v; a constant mask may be the causal one |
    | `recurrent` | data of recurrent networks are multiplied by their weights as one matrix |
    | `pools` | maxima of boxes, and of dense rectangles, are computed one axis after the other |
    | `casts` | drop casts to float32 around an operator that computes in float32 by itself |
    | `reshapes`, `transposes` | move them after elementwise operators, where they cancel; products read transposed |
    | `scales` | fold scales and batch norms of a product into its constant weights and one term |
    | `constants` | `x * a * b` is `x * (a * b)`, `(x * a + b) * c` is `x * (a * c) + b * c`; not by default |
    | `products` | products of one operand with constant matrices become one, which is split; not by default |
    | `bytes` | convolutions and products of bytes less a zero point take the bytes, and add a term; not by default |
    | `transposed_convolutions` | those with strides become convolutions without zeros between the elements |

    `quantized` computes exact integer sums instead of rounded float sums: results may differ by one quantization
    step. `relu`, `casts`, `reshapes`, `transposes` and `products` compute the same numbers, except that `transposes`
    reorders the sums of convolutions with a window of one element; the others round differently: a recognised
    pattern is one operator, a weight is scaled in float64 and rounded once, sums are reassociated. `log(1 + exp(x))`
    and `exp(x) / sum(exp(x))` no longer overflow. A match whose inner values have users outside is not replaced.

    Requires: graph functions whose types are known (`graph-infer-types`), equal operators merged (`graph-simplify`)
    and constants folded (`graph-fold-constants`), except for `quantized` and `dequantized`: folding makes
    dequantized weights floats, so `lower-graph` applies these first.
    Leaves: graph functions.

    ```mlir
    func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
      %scale = graph.constant dense<[2.0, 0.5]> : tensor<2xf32>
      %p = graph.matmul %x, %w : tensor<3x2xf32>, tensor<2x2xf32> -> tensor<3x2xf32>
      %s = graph.multiply %p, %scale : tensor<3x2xf32>, tensor<2xf32> -> tensor<3x2xf32>
      %g = graph.sigmoid %s : tensor<3x2xf32> -> tensor<3x2xf32>
      %y = graph.multiply %s, %g : tensor<3x2xf32>, tensor<3x2xf32> -> tensor<3x2xf32>
      func.return %y : tensor<3x2xf32>
    }
    // becomes
    func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %w = graph.constant dense<[[2.0, 1.0], [6.0, 2.0]]> : tensor<2x2xf32>
      %p = graph.matmul %x, %w : tensor<3x2xf32>, tensor<2x2xf32> -> tensor<3x2xf32>
      %y = graph.silu %p : tensor<3x2xf32> -> tensor<3x2xf32>
      func.return %y : tensor<3x2xf32>
    }
    ```
    """

    name = "graph-rewrite"
    fast_math = (FastMathFlag.REASSOC,)

    rules: tuple[str, ...] = DEFAULT_RULES
    """The names of the rules to apply."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for name in self.rules:
            if name not in RULES:
                raise CompileError(f"there is no rule '{name}'{did_you_mean(name, RULES)}")
        for function in list(graph_functions(op)):
            rewrite_graph(function, self.rules)
