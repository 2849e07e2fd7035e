"""te.ops: what is refused, with the place and the values; shapes and stages of what is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft import te
from weft.support.errors import CompileError
from weft.te import ops

OP: Any = ops
N, M = te.size_var("n"), te.size_var("m")


def T(*shape: Any, dtype: str = "float32", name: str = "A") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


IMAGE, KERNEL, INTEGERS, BOOLS = (
    T(1, 4, 5, 6),
    T(6, 4, 3, 3, name="W"),
    T(3, dtype="int32", name="I"),
    T(3, dtype="bool", name="P"),
)

REFUSED: list[tuple[Callable[[], object], str]] = [
    # Shapes
    (
        lambda: ops.rnn(T(3, 2, 4), T(1, 5, 4), T(1, 5, 5), direction="bidirectional"),
        r"rnn: weight must have the shape \(2, 5, 4\), got A of shape \(1, 5, 4\)",
    ),
    (lambda: ops.rnn(T(3, 2, 4), T(1, 5, 4), T(1, 5, 5), tile=[0, 8]), r"rnn: tile must be at least 1, got \[0, 8\]"),
    (lambda: ops.rnn(T(3, 2, 4), T(1, 5, 4), T(1, 5, 5), direction="back"), "the direction is one of forward, reverse"),
    (
        lambda: ops.gru(T(3, 2, 4), T(1, 6, 4), T(1, 6, 2), activations=["tanh"]),
        "gru takes 2 activations of relu, sigmoid, tanh",
    ),
    (
        lambda: ops.lstm(T(3, 2, 4), T(1, 8, 4), T(1, 8, 2), peepholes=T(1, 8)),
        r"peepholes must have the shape \(1, 6\)",
    ),
    (
        lambda: ops.rnn(T(3, 2, 4), T(1, 5, 4), T(1, 5, 5), weight_scale=T(1, 5), recurrence_scale=T(1, 5)),
        "rnn: with scales the data must hold int8, uint8, int16, got float32",
    ),
    (
        lambda: ops.rnn(*[T(1, 1, 1, dtype="int8")] * 3, weight_scale=T(1, 1)),
        "rnn takes weight_scale and recurrence_scale together",
    ),
    (
        lambda: ops.lstm(T(3, 2, 12), None, T(1, 8, 2)),
        r"lstm: data must have the shape \(3, 2, 8\), got A of shape \(3, 2, 12\)",
    ),
    (
        lambda: ops.rnn(T(3, 2, 5), None, T(1, 5, 5, dtype="int8"), weight_scale=T(1, 5), recurrence_scale=T(1, 5)),
        "rnn takes weight_scale with a weight",
    ),
    (
        lambda: ops.rnn(T(3, 2, 5), None, T(1, 5, 5), recurrence_zero_point=T(1, 5, dtype="int8")),
        "rnn takes recurrence_zero_point with recurrence_scale",
    ),
    (
        lambda: ops.rnn(*[T(1, 1, 1, dtype="int8")] * 3, weight_scale=T(1, 1), recurrence_scale=T(1)),
        r"recurrence_scale must have the shape \(1, 1\)",
    ),
    (
        lambda: ops.rnn(T(3, 2, 4), T(1, 5, 4), T(1, 5, 5), state_scale=-1.0),
        "rnn: state_scale must be a number from 0 on, got -1.0",
    ),
    (
        lambda: ops.gru(T(3, 2, 4), T(1, 15, 4), T(1, 15, 5), clip=-0.5),
        "gru: clip must be a number from 0 on, got -0.5",
    ),
    (lambda: ops.random_uniform((3,), 1 << 63), "random_uniform: the seed has 64 bits, got 9223372036854775808"),
    (lambda: ops.random_uniform((3,), T(2)), "the seed is an integer or a tensor of one, got A of float32, rank 1"),
    (lambda: ops.random_normal((3,), dtype="int32"), "random_normal makes floats, got int32"),
    (lambda: ops.bernoulli(INTEGERS), "bernoulli: data must hold floats, got I of int32"),
    (lambda: ops.dropout(T(3), ratio=1.0), "dropout: the ratio is from 0 to 1 \\(exclusive\\), got 1.0"),
    (lambda: ops.dft(T(3, 3)), r"real parts, or real and imaginary ones: A has the shape \(3, 3\)"),
    (lambda: ops.dft(T(3, 2), 1), "dft: axis 1 of A is that of real and imaginary parts"),
    (lambda: ops.dft(T(N, 2), 0, 0), "dft: length must be at least 1, got 0"),
    (lambda: ops.stft(T(1, 3, 1), 1, frame_length=4), "stft: a frame of 4 elements does not fit into A of 3"),
    (lambda: ops.stft(T(1, 3, 1), 1), "stft needs window= or frame_length="),
    (
        lambda: ops.attention(T(5, 3, 8), T(2, 3, 8), T(2, 3, 8), enable_gqa=True),
        "attention: 5 heads of queries cannot share 2 heads of keys evenly",
    ),
    (
        lambda: ops.attention(T(4, 3, 8), T(2, 3, 8), T(1, 3, 8), enable_gqa=True),
        r"got \(4, 3, 8\), \(2, 3, 8\) and \(1, 3, 8\)",
    ),
    (lambda: ops.cached_attention(T(8), T(8), T(8), T(8), T(8)), "cached_attention: query has at least 2 axes, got A"),
    (lambda: ops.rotary_embedding(T(3, 5), T(3, 2), T(3, 2)), "an even number of up to 5 elements is turned, got 5"),
    (lambda: ops.rotary_embedding(T(3, 4), T(2, 2), T(2, 2)), r"the shapes \(3, 2\) and \(2, 2\) do not broadcast"),
    (lambda: ops.rotary_embedding(T(3, 4), T(9, 3), T(9, 3), INTEGERS), r"cos must have the shape \(9, 2\), got A"),
    (
        lambda: ops.qlinear_matmul(T(3, 4), 1.0, 0, T(4, 5), 1.0, 0, 1.0, 0),
        "qlinear_matmul: a must hold integers, got A",
    ),
    (
        lambda: ops.qlinear_matmul(INTEGERS, 1.0, 0, T(4, 5, dtype="int8"), 1.0, 0, 1.0, 0),
        "qlinear_matmul: a must hold int8 or uint8, got I of int32",
    ),
    (
        lambda: ops.qlinear_conv(T(1, 2, 5, dtype="int8"), 1.0, 0, T(3, 2, 3, dtype="int8"), 1.0, 0, 1.0, 0, T(3)),
        "qlinear_conv: the bias must hold int32, got A of float32",
    ),
    (lambda: ops.grid_sample(IMAGE, T(2, 3, 3, 2)), r"takes a grid \(N, ..., 2\), got A of shape \(2, 3, 3, 2\)"),
    (lambda: ops.grid_sample(IMAGE, T(1, 3, 3, 2), "cube"), "the method is one of nearest, linear, cubic, got 'cube'"),
    (lambda: ops.grid_sample(IMAGE, T(1, 3, 3, 2), padding_mode="wrap"), "the padding mode is one of zeros, border"),
    (
        lambda: ops.deform_conv2d(T(1, 2, 5, 5), T(1, 9, 3, 3), T(2, 2, 3, 3)),
        r"deform_conv2d: offset must have the shape \(1, 18, 3, 3\), got A",
    ),
    (
        lambda: ops.deform_conv2d(T(1, 2, 5, 5), T(1, 18, 3, 3), T(2, 2, 3, 3), T(1, 3, 3, 3)),
        r"deform_conv2d: mask must have the shape \(1, 9, 3, 3\), got A",
    ),
    (
        lambda: ops.deform_conv2d(T(1, 3, 5, 5), T(1, 18, 3, 3), T(2, 2, 3, 3)),
        r"A of shape \(1, 3, 5, 5\) and A of shape \(2, 2, 3, 3\) do not consist of 1 groups",
    ),
    (
        lambda: ops.deform_conv2d(T(1, 4, 5, 5), T(1, 18, 3, 3), T(2, 4, 3, 3), offset_groups=3),
        "deform_conv2d: 4 channels cannot be split into 3 groups of offsets",
    ),
    (
        lambda: ops.deform_conv2d(T(1, 1, 0, 5), T(1, 18, 3, 3), T(2, 1, 3, 3)),
        r"deform_conv2d: axis 2 of A of shape \(1, 1, 0, 5\) has no elements",
    ),
    (lambda: ops.roi_align(IMAGE, T(3, 5), INTEGERS, 2), r"roi_align: rois must have the shape \(3, 4\), got A"),
    (
        lambda: ops.roi_align(IMAGE, T(3, 4), INTEGERS, 2, mode="min"),
        "roi_align: the mode is 'avg' or 'max', got 'min'",
    ),
    (
        lambda: ops.roi_align(T(1, 5, 4, 4), T(3, 4), INTEGERS, 2, position_sensitive=True),
        "roi_align: 5 channels are no multiple of 2 x 2 bins",
    ),
    (
        lambda: ops.roi_pool(IMAGE, T(3, 4), INTEGERS, 2, mode="avg"),
        "roi_pool: the mode is 'max' or 'position_sensitive_avg', got 'avg'",
    ),
    (lambda: ops.topk(T(3), 4), "topk: k is 4, but axis 0 of A has 3 elements"),
    (lambda: ops.sort(BOOLS), "sort: data must hold numbers, got P of bool"),
    (lambda: ops.searchsorted(T(3, 3), T(2)), r"searchsorted: data must have rank 1, got A of shape \(3, 3\)"),
    (lambda: ops.searchsorted(T(3), T(2), "middle"), "searchsorted: the side is 'left' or 'right', got 'middle'"),
    (lambda: ops.searchsorted(T(3), INTEGERS), "searchsorted takes tensors of one dtype: A is float32, I is int32"),
    (
        lambda: ops.scatter_elements(T(3), INTEGERS, T(2)),
        r"scatter_elements: updates must have the shape \(3,\), got A of shape \(2,\)",
    ),
    (
        lambda: ops.scatter_elements(T(2, 2), T(1, 3, dtype="int32", name="I"), T(1, 3)),
        r"at most the extents of the data apart from axis 0: I has \(1, 3\), A has \(2, 2\)",
    ),
    (lambda: ops.scatter_elements(T(3), INTEGERS, T(3), reduction="sub"), "the reduction is 'none' or one of add, mul"),
    (lambda: ops.scatter_elements(BOOLS, INTEGERS, BOOLS, reduction="max"), "bools are not combined by max"),
    (
        lambda: ops.scatter_elements(T(0), INTEGERS, T(3)),
        r"scatter_elements: axis 0 of A of shape \(0,\) has no elements",
    ),
    (lambda: ops.nonzero(T()), r"nonzero: data must have an axis, got A of shape \(\)"),
    (lambda: ops.nonzero(T(3), size=-1), "nonzero: the size must be at least 0, got -1"),
    (lambda: ops.nonzero(T(3), size=2.5), "nonzero: the size must be an integer, got 2.5"),
    (lambda: ops.compress(T(3), T(3)), "compress: the condition must hold bools, got A of float32"),
    (
        lambda: ops.compress(T(4, dtype="bool", name="C"), T(3, 2), axis=0),
        r"compress: the condition has at most the 3 elements of axis 0 of A, got C of shape \(4,\)",
    ),
    (lambda: ops.prefix(T(3, 4), (4, 4)), r"prefix: A of shape \(3, 4\) has no part of shape \(4, 4\)"),
    (lambda: ops.prefix(T(3, 4), (3,)), r"prefix: A of shape \(3, 4\) has no part of shape \(3,\)"),
    (lambda: ops.unique(BOOLS), "unique: data must hold numbers, got .* of bool: use te.ops.cast"),
    (
        lambda: ops.nms(T(3, 5, name="B"), T(3)),
        r"nms: boxes have the shape of the scores and 4 numbers each: B has \(3, 5\), A has \(3,\)",
    ),
    (lambda: ops.scatter_elements(T(3), INTEGERS, T(3), mode="raise"), "the mode is 'clip' or 'wrap', got 'raise'"),
    (
        lambda: ops.scatter_nd(T(3), T(2, 5, dtype="int32", name="I"), T(5)),
        "the first extent of the indices is a number",
    ),
    (lambda: ops.put_along_axis(T(3), INTEGERS, T(2, 3)), r"values of shape \(2, 3\) are larger than the indices"),
    (lambda: ops.take_along_axis(T(3, 3), INTEGERS), "take_along_axis: A has rank 2, the indices I have rank 1"),
    (lambda: ops.max_unpool(IMAGE, INTEGERS, 3), r"max_unpool: indices must have the shape \(1, 4, 5, 6\), got I"),
    (lambda: ops.lp_pool(IMAGE, 2, p=0), "lp_pool: p must not be 0"),
    (lambda: ops.max_pool_with_indices(IMAGE, 7), "max_pool_with_indices: a window over 7 elements does not fit"),
    (lambda: ops.lrn(IMAGE, 0), "lrn: size must be at least 1, got 0"),
    (lambda: ops.cross(T(4, 3), T(2)), "cross: the shapes"),
    (lambda: ops.cross(T(4, 4), T(4)), r"cross: axis -1 of A of shape \(4, 4\) must have 3 elements"),
    (lambda: ops.outer(T(3), T(2, 2)), r"outer: b must have rank 1, got A of shape \(2, 2\)"),
    (lambda: ops.moveaxis(T(2, 3), (0, 1), 0), "moveaxis: 2 axes to 1 places"),
    (lambda: ops.swapaxes(T(2, 3), 0, 2), "swapaxes: there is no axis 2 in rank 2"),
    (lambda: ops.roll(T(2, 3), (1, 2), 0), r"roll: shift takes one integer or 1, got \(1, 2\)"),
    (lambda: ops.unstack(T(N)), "unstack: axis 0 of A has the symbolic extent n"),
    (lambda: ops.diagonal(T(3)), "diagonal: there is no axis 1 in rank 1"),
    (lambda: ops.meshgrid(T(3), indexing="yx"), "meshgrid: indexing is 'xy' or 'ij', got 'yx'"),
    (lambda: ops.depth_to_space(T(1, 6, 2, 2), 2), r"depth_to_space: 4 does not divide 6 of A of shape \(1, 6, 2, 2\)"),
    (lambda: ops.depth_to_space(IMAGE, 2, "RDC"), "depth_to_space: the mode is 'DCR' or 'CRD', got 'RDC'"),
    (lambda: ops.space_to_depth(IMAGE, 2), r"space_to_depth: 2 does not divide 5 of A"),
    (lambda: ops.channel_shuffle(IMAGE, 3), "channel_shuffle: 3 does not divide 4 of A"),
    (lambda: ops.pack(T(6), 1, 2), "pack: inner_dims_pos: there is no axis 1 in rank 1"),
    (lambda: ops.pack(T(6, 4), (0, -2), (2, 2)), r"pack: inner_dims_pos: axis 0 comes twice in \(0, -2\)"),
    (lambda: ops.pack(T(6, 4), (0, 1), 2), r"pack: inner_tiles takes one integer or 2, got \(2,\)"),
    (lambda: ops.pack(T(6), 0, 0), r"pack: inner_tiles must be at least 1, got \(0,\)"),
    (lambda: ops.pack(T(6, 4), 0, 2, [0]), r"pack: outer_dims_perm \[0\] is no order of 2 dimensions"),
    (lambda: ops.pack(T(6, 4), 0, 2, [1, 1]), r"pack: outer_dims_perm: axis 1 comes twice in \[1, 1\]"),
    (lambda: ops.pack(T(6), 0, 4), r"pack: tiles of 4 are not known to divide extent 6 of A of shape \(6,\): give a"),
    (lambda: ops.pack(T(N * 4 + 2), 0, 4), "pack: tiles of 4 are not known to divide extent .* give a padding_value"),
    (lambda: ops.pack(T(6, dtype="int8"), 0, 4, padding_value=0.5), "0.5"),
    (lambda: ops.unpack(T(2, 3), 0, 2), r"unpack: A of shape \(2, 3\) has tiles of \(3,\), got inner_tiles \(2,\)"),
    (lambda: ops.unpack(T(2, 3), (0, 1), (2, 3)), "unpack: inner_dims_pos: there is no axis 0 in rank 0"),
    (
        lambda: ops.unpack(T(2, 3), 0, 3, shape=(3,)),
        r"unpack: A of shape \(2, 3\) does not have the tiles of a tensor of shape \(3,\)",
    ),
    (lambda: ops.unpack(T(2, 3), 0, 3, shape=(5, 1)), r"have the tiles of a tensor of shape \(5, 1\)"),
    (lambda: ops.linspace(0, 1, -1), "linspace: num must be at least 0, got -1"),
    (lambda: ops.linspace(0, 1, dtype="int32"), "linspace makes floats, got int32"),
    (lambda: ops.celu(T(3), 0), "celu: alpha must not be 0"),
    (lambda: ops.prelu(T(3), T(3, dtype="float64")), "prelu takes tensors of one dtype: A is float32, A is float64"),
    (
        lambda: ops.vector_norm(T(0, 3), 0, ord=float("inf")),
        r"vector_norm: axis 0 of A of shape \(0, 3\) has no elements",
    ),
    (lambda: ops.logsumexp(INTEGERS), "logsumexp: data must hold floats, got I of int32"),
    (
        lambda: ops.matmul(T(3, 4), T(5, 6, name="B")),
        r"matmul: A of shape \(3, 4\) has 4 elements in axis 1, B of shape \(5, 6\) has 5 in axis 0",
    ),
    (lambda: ops.matmul(T(3, N), T(N + 1, 6)), r"has n elements in axis 1, A of shape .* has \(n \+ 1\) in axis 0"),
    (lambda: ops.matmul(T(), T(3)), "matmul takes vectors and matrices, A has rank 0"),
    (
        lambda: ops.grouped_matmul(T(3, 4), T(2, 5, 6), te.placeholder((2,), "int64")),
        r"grouped_matmul: A of shape \(3, 4\) has 4 elements in axis 1, A of shape \(2, 5, 6\) has 5 in axis 1",
    ),
    (
        lambda: ops.grouped_matmul(T(3, 4), T(2, 4, 6), te.placeholder((3,), "int64", name="E")),
        r"grouped_matmul: ends must have the shape \(2,\), got E of shape \(3,\)",
    ),
    (
        lambda: ops.grouped_matmul(T(3, 4), T(0, 4, 6), te.placeholder((0,), "int64")),
        r"grouped_matmul: A of shape \(0, 4, 6\) has no group",
    ),
    (
        lambda: ops.batch_matmul(T(3, 4), T(1, 4, 5)),
        r"batch_matmul: tensor_a must have rank 3, got A of shape \(3, 4\)",
    ),
    (
        lambda: ops.dense(T(3, 4), T(5, 4), T(4, name="b")),
        r"dense: bias must have the shape \(5,\), got b of shape \(4,\)",
    ),
    (
        lambda: ops.add(T(3, 4), T(4, 3)),
        r"add: the shapes \(3, 4\) and \(4, 3\) do not broadcast: extents 3 and 4 in dimension -2",
    ),
    (lambda: ops.add(T(N), T(N + 2)), r"extents n and \(n \+ 2\) in dimension -1"),
    (lambda: ops.broadcast_to(T(3, 4), (4,)), r"broadcast_to: A of shape \(3, 4\) is larger than"),
    (
        lambda: ops.reshape(T(3, 4), (5, 2)),
        r"reshape: A of shape \(3, 4\) has 12 elements, the shape \(5, 2\) holds 10",
    ),
    (lambda: ops.reshape(T(3, 4), (5, -1)), "has 12 elements, which 5 does not divide for certain"),
    (lambda: ops.reshape(T(N, 4), (0, -1)), r"\(n \* 4\) elements, which 0 does not divide"),
    (lambda: ops.reshape(T(4), (-1, -1)), "one extent may be -1"),
    (lambda: ops.concatenate([T(2, 3), T(2, 4)]), "shapes must be the same apart from axis 0"),
    (lambda: ops.stack([T(2), T(3)]), "stack: shapes must be the same: A has"),
    (lambda: ops.concatenate([]), "concatenate needs at least one tensor"),
    (lambda: ops.split(T(5), 2), "split: axis 0 of extent 5 cannot be split into 2 equal parts"),
    (lambda: ops.split(T(5), [3, 2]), r"split: the indices \[3, 2\] do not increase"),
    (lambda: ops.squeeze(T(2, 1), 0), "squeeze: axis 0 of A has the extent 2, not 1"),
    (lambda: ops.layer_norm(T(2, 3), T(2, name="g")), r"layer_norm: gamma must have the shape \(3,\), got g"),
    (lambda: ops.group_norm(T(2, 6, 3), 4), "group_norm: 6 channels cannot be split into 4 groups"),
    (lambda: ops.instance_norm(T(2, 6)), "instance_norm takes .* with an axis at least after the channels"),
    (
        lambda: ops.attention(T(2, 4), T(3, 4), T(5, 4)),
        r"attention takes as many keys as values.*\(3, 4\) and \(5, 4\)",
    ),
    (lambda: ops.attention(T(2, 0), T(3, 0), T(3, 4)), "attention needs scale="),
    (
        lambda: ops.attention(T(2, 4), T(3, 4), T(3, 4), T(5, 2, 3)),
        r"mask of shape \(5, 2, 3\) is larger than \(2, 3\)",
    ),
    (
        lambda: ops.gather(T(3, 4), 0, T(2, 5, dtype="int32")),
        "gather: the indices have at most the extents of the data apart from axis 0",
    ),
    (
        lambda: ops.gather_nd(T(3), T(2, 5, dtype="int32")),
        "gather_nd: the first extent of the indices is a number up to the rank",
    ),
    (lambda: ops.take(T(0, 3), T(2, dtype="int32"), 0), r"take: axis 0 of A of shape \(0, 3\) has no elements"),
    (lambda: ops.max(T(0, 3), 0), r"max: axis 0 of A of shape \(0, 3\) has no elements"),
    (lambda: ops.argmin(T(3, 0)), "argmin: axis 1 of A of shape"),
    (lambda: ops.tril(T(3)), "tril takes matrices, A has rank 1"),
    # Windows
    (
        lambda: ops.conv2d(IMAGE, T(6, 3, 3, 3)),
        r"conv2d: A of shape \(1, 4, 5, 6\) has 4 channels, but A of shape \(6, 3, 3, 3\) takes 3",
    ),
    (lambda: ops.conv2d(IMAGE, T(5, 2, 3, 3), groups=2), "conv2d: 5 output channels cannot be split into 2 groups"),
    (lambda: ops.conv2d(IMAGE, KERNEL, groups=0), "conv2d: groups must be at least 1, got 0"),
    (lambda: ops.conv2d(IMAGE, T(6, 4, 7, 1)), "conv2d: a window over 7 elements does not fit into 5"),
    (lambda: ops.conv2d(IMAGE, KERNEL, 0), "conv2d: strides must be at least 1, got 0"),
    (lambda: ops.conv2d(IMAGE, KERNEL, padding=-1), "conv2d: padding must be at least 0, got -1"),
    (lambda: ops.conv2d(IMAGE, KERNEL, padding=(1, 2, 3)), r"conv2d: padding takes one integer or 2, got \(1, 2, 3\)"),
    (lambda: ops.conv2d(IMAGE, KERNEL, padding="half"), "conv2d: padding is 'SAME', 'VALID' or integers, got 'half'"),
    (lambda: ops.conv2d(IMAGE, KERNEL, 1.5), "conv2d: strides must be an integer, got 1.5"),
    (
        lambda: ops.conv2d(IMAGE, KERNEL, data_layout="NCHD"),
        "conv2d: data_layout must be a permutation of the letters NCHW, which c may follow, got 'NCHD'",
    ),
    (lambda: ops.conv1d(IMAGE, KERNEL), "conv1d: data must have rank 3"),
    (
        lambda: ops.conv2d(T(1, 2, 5, 6, 4), T(3, 2, 3, 3, 2, 8), data_layout="NCHWc"),
        r"conv2d: A of shape \(1, 2, 5, 6, 4\) has tiles of 4 channels, but A of .* takes tiles of 2",
    ),
    (
        lambda: ops.conv2d(T(1, 2, 5, 6, 4), T(3, 2, 3, 3, 4, 8, 2), data_layout="NCHWc", kernel_layout="OIHWioi"),
        "takes tiles of 8",
    ),
    (
        lambda: ops.conv2d(T(1, 2, 5, 6, 4), T(3, 3, 3, 3, 4, 8), data_layout="NCHWc"),
        r"conv2d: A of shape \(1, 2, 5, 6, 4\) has 2 channels, but A of .* takes 3 in each of 1 groups",
    ),
    (
        lambda: ops.conv2d(T(1, 2, 5, 6, 4), T(3, 2, 7, 3, 4, 8), data_layout="NCHWc"),
        "a window over 7 elements does not fit into 5",
    ),
    (lambda: ops.conv2d(IMAGE, T(3, 2, 7, 3, 4, 8), data_layout="NCHWc"), "conv2d: data must have rank 5"),
    (
        lambda: ops.conv2d(T(1, 2, 5, 6, 4), KERNEL, data_layout="NCHWc", kernel_layout="OIHW"),
        "conv2d: kernels of packed data end in io or ioi, got kernel_layout OIHW",
    ),
    (
        lambda: ops.conv2d(IMAGE, KERNEL, kernel_layout="OIHWio"),
        "conv2d: kernel_layout must be a permutation of the letters OIHW, got 'OIHWio'",
    ),
    (
        lambda: ops.conv2d_transpose(IMAGE, KERNEL, data_layout="NCHWc"),
        "conv2d_transpose: data_layout must be a permutation of the letters NCHW, got 'NCHWc'",
    ),
    (
        lambda: ops.depthwise_conv2d(T(1, 2, 5, 6, 4), T(2, 1, 3, 3, 3), data_layout="NCHWc"),
        "the data has 2 tiles of 4 channels, the kernels are for 2 tiles of 3",
    ),
    (
        lambda: ops.depthwise_conv2d(T(1, 2, 5, 6, 4), T(2, 2, 3, 3, 4), data_layout="NCHWc"),
        "depthwise_conv2d: kernels of packed data have one filter for each channel, got 2",
    ),
    (
        lambda: ops.conv2d_winograd(T(1, 2, 5, 6, 4), T(3, 4, 4, 2, 2, 8)),
        r"conv2d_winograd: A of shape \(1, 2, 5, 6, 4\) has 2 blocks of 4 channels, but A of .* takes 2 blocks of 2",
    ),
    (
        lambda: ops.conv2d_winograd(T(1, 2, 5, 6, 4), T(3, 5, 5, 2, 4, 8)),
        r"kernels have 4 x 4 or 6 x 6 elements, got A of shape \(3, 5, 5, 2, 4, 8\)",
    ),
    (lambda: ops.conv2d_winograd(T(1, 2, 5, 6, 4), T(3, 4, 6, 2, 4, 8)), "kernels have 4 x 4 or 6 x 6 elements"),
    (lambda: ops.conv2d_winograd(T(1, 2, 2, 6, 4), T(3, 4, 4, 2, 4, 8)), "a window over 3 elements does not fit"),
    (lambda: ops.conv2d_winograd(IMAGE, T(3, 4, 4, 2, 4, 8)), "conv2d_winograd: data must have rank 5"),
    (
        lambda: ops.conv2d_winograd(T(1, 2, 5, 6, 4, dtype="int32"), T(3, 4, 4, 2, 4, 8)),
        "conv2d_winograd: data must hold floats",
    ),
    (
        lambda: ops.depthwise_conv2d(IMAGE, T(3, 1, 3, 3)),
        "depthwise_conv2d: the data has 4 channels, the kernels are for 3",
    ),
    (
        lambda: ops.conv2d_transpose(IMAGE, T(3, 6, 3, 3)),
        "conv2d_transpose: the data has 4 channels, the kernels take 3",
    ),
    (lambda: ops.conv2d_transpose(IMAGE, KERNEL), "conv2d_transpose: the data has 4 channels, the kernels take 6"),
    (lambda: ops.conv2d_transpose(IMAGE, T(4, 6, 3, 3), 1, 0, 1), "output_padding 1 must be below stride 1 or 1"),
    (
        lambda: ops.conv2d_transpose(IMAGE, T(4, 6, 1, 1), 1, 3),
        r"padding \(3, 3\) leaves nothing of an axis of 5 elements",
    ),
    (lambda: ops.conv2d_transpose(IMAGE, T(4, 6, 1, 1), groups=3), "4 channels cannot be split into 3 groups"),
    (lambda: ops.max_pool2d(IMAGE, 0), "max_pool2d: kernel must be at least 1, got 0"),
    (lambda: ops.adaptive_pool(T(1, 1, 0), 1), "adaptive_pool: axis 2 of A of shape"),
    (lambda: ops.global_pool(IMAGE, "mean"), "pool_type is one of avg, max, sum, got 'mean'"),
    (lambda: ops.pad(T(3), -1), "pad: pad_width must be at least 0, got -1"),
    (lambda: ops.pad(T(3), ((1, 1), (1, 1))), "pad: pad_width has 2 pairs, but the tensor has rank 1"),
    (lambda: ops.pad(T(0), 1, "edge"), r"pad: edge needs elements for a border of \(1, 1\), but axis 0 has none"),
    (
        lambda: ops.pad(T(3), 1, "mean"),
        "pad: the mode is 'constant' or one of edge, reflect, symmetric, wrap, got 'mean'",
    ),
    (lambda: ops.resize2d(IMAGE, 3, method="sinc"), "the method is one of nearest, linear, cubic, got 'sinc'"),
    (lambda: ops.resize2d(IMAGE), "resize2d needs size= or scales="),
    (lambda: ops.resize2d(IMAGE, scales=(2.0, 0.0)), r"scales takes one number above 0 or 2, got \(2.0, 0.0\)"),
    (lambda: ops.resize2d(IMAGE, scales=0.1), "resize2d: an axis of 5 elements times 0.1 has none"),
    (lambda: ops.resize2d(IMAGE, 3, roi=[0.0, 1.0]), "resize2d: roi takes 4 numbers"),
    (lambda: ops.resize2d(IMAGE, 3, rounding_method="up"), "the rounding method is one of floor, ceil"),
    (lambda: ops.resize2d(IMAGE, 3, coordinate_transformation_mode="half"), "the mode is one of half_pixel"),
    (lambda: ops.resize2d(T(1, 1, 0, 3), 3), "resize2d: axis 2 of A of shape"),
    # Axes
    (lambda: ops.sum(T(2, 3), 2), "sum: there is no axis 2 in rank 2"),
    (lambda: ops.sum(T(2, 3), -3), "sum: there is no axis -3 in rank 2"),
    (lambda: ops.mean(T(2, 3), (0, -2)), r"mean: axis 0 comes twice in \(0, -2\)"),
    (lambda: ops.softmax(T(), 0), "softmax: there is no axis 0 in rank 0"),
    (lambda: ops.sum(T(2), True), "sum: the axis must be an integer, got True"),
    (lambda: ops.transpose(T(2, 3), (0,)), r"transpose: axes \(0,\) are not an order of the 2 axes of A"),
    (lambda: ops.flatten(T(2, 3), 1, 0), "flatten: axis 0 comes before axis 1"),
    (lambda: ops.layer_norm(T(2), axis=()), "layer_norm needs an axis"),
    (lambda: ops.rms_norm(T(2), axis=()), "rms_norm needs an axis"),
    (lambda: ops.strided_slice(T(3), 0, 2, 0), "strided_slice: a stride is 0"),
    (lambda: ops.strided_slice(T(3), (0, 1), (2,)), "strided_slice: 2 bounds begin and 1 end"),
    (lambda: ops.strided_slice(T(3), (0, 1), (2, 2)), "strided_slice: 2 bounds for 1 axes"),
    # Subscripts
    (lambda: ops.einsum("ij,jk", T(2, 3), T(3, 4)), "subscripts are explicit, as in 'ij,jk->ik', got 'ij,jk'"),
    (lambda: ops.einsum("ij->i", T(2, 3), T(3, 4)), "einsum 'ij->i' is of 1 operands, got 2"),
    (lambda: ops.einsum("ij->k", T(2, 3)), "letter k of the result is not once in it and in an operand"),
    (lambda: ops.einsum("ijk->i", T(2, 3)), r"'ijk' has 3 letters, A of shape \(2, 3\) has rank 2"),
    (lambda: ops.einsum("ij,jk->ik", T(2, 3), T(4, 5)), "letter j is 3 and 4"),
    (lambda: ops.einsum("i..->i", T(2, 3)), "subscripts are letters"),
    # Dtypes and numbers
    (
        lambda: ops.matmul(T(2, 2), T(2, 2, dtype="int32", name="B")),
        "matmul takes tensors of one dtype: A is float32, B is int32",
    ),
    (lambda: ops.add(T(2), T(2, dtype="int32", name="B")), "mixes element types"),
    (lambda: ops.add(1, 2), "add takes at least one tensor, got 1, 2"),
    (lambda: ops.add(T(2), "x"), "add: operand 1 must be a tensor, got 'x' of type str"),
    (lambda: ops.add(BOOLS, BOOLS), "takes numbers, got bool"),
    (lambda: ops.divide(INTEGERS, 2), "takes floats, got int32"),
    (lambda: ops.logical_and(INTEGERS, BOOLS), "logical_and takes bools, I is int32"),
    (lambda: ops.where(T(3), T(3), 0.0), "where: the condition must hold bools, A is float32"),
    (lambda: ops.exp(INTEGERS), "exp: data must hold floats, got I of int32: use te.ops.cast"),
    (lambda: ops.relu(BOOLS), "relu: data must hold numbers, got P of bool"),
    (lambda: ops.sum(BOOLS), "sum: data without dtype= must hold numbers, got P of bool"),
    (lambda: ops.softmax(INTEGERS), "softmax: data must hold floats"),
    (lambda: ops.avg_pool2d(T(1, 1, 4, 4, dtype="int8"), 2), "avg_pool2d: means are of floats, A is int8"),
    (lambda: ops.resize2d(T(1, 1, 4, 4, dtype="int8"), 2), "linear is for floats, A is int8"),
    (lambda: ops.resize2d(IMAGE, 4, method=np.zeros(3)), "resize2d: the method is one of .*, got array"),
    (lambda: ops.gelu(T(2), np.zeros(3)), "gelu: approximate is 'none' or 'tanh', got array"),
    (lambda: ops.gelu(T(2), "fast"), "gelu: approximate is 'none' or 'tanh', got 'fast'"),
    (lambda: ops.clip(T(2)), "clip needs a_min or a_max"),
    (lambda: ops.clip(T(2, dtype="int8"), 0, 300), "300 .*does not fit int8"),
    (lambda: ops.take(T(3), T(2), 0), "take: indices must hold integers, got A of float32"),
    (lambda: ops.take(T(3), INTEGERS, 0, "raise"), "take: the mode is 'clip' or 'wrap', got 'raise'"),
    (lambda: ops.one_hot(T(3), 4), "one_hot: indices must hold integers"),
    (lambda: ops.arange(1, 5, 0), "arange: the step is 0"),
    (lambda: ops.arange(5, dtype="bool"), "arange makes numbers, not bools"),
    (lambda: ops.full((2,), 1.5, "int32"), "1.5 is no int32"),
    (lambda: ops.quantize(T(3), 0.0), "quantize: scale must be a number above 0"),
    (lambda: ops.quantize(T(3), 10**400), "quantize: scale must be a number above 0"),
    (lambda: ops.quantize(T(3), T(3)), "quantize: scale is a tensor.*give axis="),
    (lambda: ops.quantize(T(3), INTEGERS, axis=0), "quantize: scale must hold floats, I is int32"),
    (lambda: ops.quantize(T(3), 1.0, dtype="int32"), "quantize makes int8, int16, uint8 or uint16, got int32"),
    (lambda: ops.dequantize(T(3), 1.0), "dequantize: data must hold integers"),
    (lambda: ops.dequantize(INTEGERS, 1.0, dtype="int32"), "dequantize makes floats, got int32"),
    (lambda: ops.cast(T(3), "float33"), "there is no element type 'float33'"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    build, message = REFUSED[number]
    with pytest.raises(CompileError, match=message) as caught:
        build()
    location = caught.value.location
    assert location is not None
    assert Path(location.file) == Path(__file__)


@pytest.mark.parametrize("name", sorted(ops.__all__))
def test_arrays_are_no_tensors(name: str) -> None:
    if name in ("arange", "extents", "eye", "full", "iota", "linspace", "random_normal", "random_uniform", "tri"):
        return
    several = {"concatenate": ([1.0],), "stack": ([1.0],), "einsum": ("i,i->", [1.0], [1.0])}
    arguments = several.get(name, ([1.0],) * 9)
    for count in range(3 if name == "einsum" else 1, 10):
        try:
            getattr(OP, name)(*arguments[:count])
        except TypeError:  # another number of arguments
            continue
        except CompileError as refused:
            assert "must be a tensor, got" in str(refused) or "is a tensor" in str(refused), refused
            return
    pytest.fail(f"{name} took a list")


# Shapes and stages


def test_symbolic_shapes_are_compared_as_polynomials() -> None:
    x = T(N, 3, M, M)
    assert str(ops.conv2d(x, T(3, 3, 3, 3), 1, 1).shape) == "(n, 3, m, m)"
    assert str(ops.max_pool2d(x, 2).shape[2]) == "(m // 2)"
    assert str(ops.concatenate([x, x]).shape[0]) == "(n * 2)"
    assert ops.reshape(x, (-1, M)).shape[1] is M
    both = ops.add(ops.flatten(ops.transpose(x, (2, 0, 1, 3))), ops.flatten(x))
    assert len(both.shape) == 1


def stages(*outputs: te.Tensor) -> list[str]:
    """The names of the stages before outputs and of themselves, in order."""
    found: dict[str, None] = {}

    def visit(tensor: te.Tensor) -> None:
        operation: Any = tensor.op
        for source in operation.input_tensors:
            visit(source)
        if operation.input_tensors:
            found[operation.name] = None

    for output in outputs:
        visit(output)
    return list(found)


def test_stages_that_schedules_see() -> None:
    assert stages(ops.conv2d(IMAGE, KERNEL, 1, 1, name="Y")) == ["Y_pad", "Y"]
    assert stages(ops.conv2d(IMAGE, KERNEL)) == ["conv2d"]
    assert stages(ops.softmax(T(4, 5))) == ["softmax_max", "softmax_exp", "softmax_sum", "softmax"]
    assert stages(ops.layer_norm(T(4, 5))) == ["layer_norm_mean", "layer_norm_rstd", "layer_norm"]
    assert stages(ops.dense(T(4, 5), T(3, 5), T(3), name="Y")) == ["Y_matmul", "Y"]
    assert stages(ops.cumsum(T(9), 0)) == ["cumsum_by1", "cumsum_by2", "cumsum_by4", "cumsum"]


def test_names_of_results() -> None:
    A = T(4)
    assert "%best: memref<i64>" in str(te.create_func([A, ops.argmax(A, name="best")]))
