"""The operators of NumPy and of neural networks as functions from tensors to tensors: `weft.te.ops`.

Each returns a tensor of `weft.te` (several where it says so), to be scheduled as any other. Names are those of topi and
NumPy; shapes are static or symbolic; nothing converts silently. `name=` calls the stage that computes the result;
stages before it are called `<name>_...`.

    A, B = te.placeholder((128, 64), name="A"), te.placeholder((64, 32), name="B")
    C = te.ops.relu(te.ops.matmul(A, B), name="C")
"""

from weft.frontends.te.ops.activations import relu
from weft.frontends.te.ops.arithmetic import (
    add,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
    trunc_divide,
    trunc_mod,
    where,
)
from weft.frontends.te.ops.convolution import conv1d, conv2d, conv3d, depthwise_conv2d
from weft.frontends.te.ops.normalization import layer_norm
from weft.frontends.te.ops.padding import pad
from weft.frontends.te.ops.products import batch_matmul, dense, matmul
from weft.frontends.te.ops.reductions import sum
from weft.frontends.te.ops.softmax import softmax
from weft.frontends.te.ops.transforms import transpose

__all__ = [
    "add",
    "batch_matmul",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "conv1d",
    "conv2d",
    "conv3d",
    "dense",
    "depthwise_conv2d",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "layer_norm",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "not_equal",
    "pad",
    "power",
    "relu",
    "right_shift",
    "softmax",
    "subtract",
    "sum",
    "transpose",
    "trunc_divide",
    "trunc_mod",
    "where",
]
