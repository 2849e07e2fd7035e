"""The operators of NumPy and of neural networks on tensors: `weft.te.ops`.

Names are those of topi and NumPy; shapes are static or symbolic; dtypes are not converted implicitly; sums of 16-bit
floats are in float32. Arguments that an operator does not accept raise `CompileError`. `name=` names the result's
stage; stages before it are `<name>_...`.

    A, B = te.placeholder((128, 64), name="A"), te.placeholder((64, 32), name="B")
    C = te.ops.relu(te.ops.matmul(A, B), name="C")
"""

from weft.texpr.ops.activations import *
from weft.texpr.ops.bessel import *
from weft.texpr.ops.convolution import *
from weft.texpr.ops.creation import *
from weft.texpr.ops.cumulative import *
from weft.texpr.ops.dequantized_products import *
from weft.texpr.ops.elementwise import *
from weft.texpr.ops.gamma import *
from weft.texpr.ops.indexing import *
from weft.texpr.ops.linear_algebra import *
from weft.texpr.ops.normalization import *
from weft.texpr.ops.orthogonal_polynomials import *
from weft.texpr.ops.packing import *
from weft.texpr.ops.pooling import *
from weft.texpr.ops.products import *
from weft.texpr.ops.quantization import *
from weft.texpr.ops.random import *
from weft.texpr.ops.rearrangements import *
from weft.texpr.ops.recurrent import *
from weft.texpr.ops.reductions import *
from weft.texpr.ops.resizing import *
from weft.texpr.ops.sampling import *
from weft.texpr.ops.scatter import *
from weft.texpr.ops.selection import *
from weft.texpr.ops.sorting import *
from weft.texpr.ops.special import *
from weft.texpr.ops.spectral import *
from weft.texpr.ops.transformers import *
from weft.texpr.ops.transforms import *
from weft.texpr.ops.winograd import *
from weft.texpr.tensor import stating

_OPERATORS = {n: f for n, f in globals().items() if callable(f) and not n.startswith("_") and f is not stating}
globals().update((name, stating(function)) for name, function in _OPERATORS.items())
__all__ = list(_OPERATORS)  # pyright: ignore[reportUnsupportedDunderAll]
