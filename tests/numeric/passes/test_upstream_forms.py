"""Operations of upstream dialects that are written as others: interpreted and compiled they are what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.convert.bufferize_tensors import BufferizeTensorsPass
from weft.passes.convert.convert_from_upstream import ConvertFromUpstreamPass
from weft.support.errors import CompileError


@dataclass(frozen=True)
class Form:
    """A function `@f` that gives a tensor (`gives` is its shape) or writes its last buffers, and what it computes."""

    text: str
    arguments: Callable[[np.random.Generator], list[Any]]
    expected: Callable[..., Any]
    gives: tuple[int, ...] | None = None


def _normal(*shape: int) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [rng.standard_normal(shape).astype(np.float32)]


def _softmax(x: Any, axis: int) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _packed(x: Any) -> Any:
    """10 x 15 in tiles of 4 x 8, columns of tiles first."""
    return np.pad(x, ((0, 2), (0, 1))).reshape(3, 4, 2, 8).transpose(2, 0, 3, 1)


def _into(x: Any, indices: Any, parts: Any) -> Any:
    result = x.copy()
    result[indices[:, 0]] = parts
    return result


FORMS = {
    "softmax": Form(
        """func.func @f(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %o = tensor.empty() : tensor<4x8xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32> }""",
        _normal(4, 8),
        lambda x: _softmax(x, 1),
        (4, 8),
    ),
    "softmax of columns in place": Form(
        """func.func @f(%a: memref<?x?xf32>) {
  linalg.softmax dimension(0) ins(%a : memref<?x?xf32>) outs(%a : memref<?x?xf32>)
  return }""",
        _normal(5, 3),
        lambda x: _softmax(x, 0),
    ),
    "pack with padding": Form(
        """func.func @f(%a: tensor<10x15xf32>) -> tensor<2x3x8x4xf32> {
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<2x3x8x4xf32>
  %r = linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4]
    into %o : tensor<10x15xf32> -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32> }""",
        _normal(10, 15),
        _packed,
        (2, 3, 8, 4),
    ),
    "pack of a dynamic extent": Form(
        """func.func @f(%a: tensor<?x15xf32>) -> tensor<2x?x8x4xf32> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %a, %c0 : tensor<?x15xf32>
  %m = arith.ceildivsi %n, %c4 : index
  %o = tensor.empty(%m) : tensor<2x?x8x4xf32>
  %r = linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4]
    into %o : tensor<?x15xf32> -> tensor<2x?x8x4xf32>
  return %r : tensor<2x?x8x4xf32> }""",
        _normal(10, 15),
        _packed,
        (2, 3, 8, 4),
    ),
    "unpack": Form(
        """func.func @f(%a: tensor<2x3x8x4xf32>) -> tensor<10x15xf32> {
  %o = tensor.empty() : tensor<10x15xf32>
  %r = linalg.unpack %a outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %o
    : tensor<2x3x8x4xf32> -> tensor<10x15xf32>
  return %r : tensor<10x15xf32> }""",
        _normal(2, 3, 8, 4),
        lambda x: x.transpose(1, 3, 0, 2).reshape(12, 16)[:10, :15],
        (10, 15),
    ),
    "pack of a buffer": Form(
        """func.func @f(%a: memref<10x15xf32>, %o: memref<2x3x8x4xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4]
    into %o : memref<10x15xf32> -> memref<2x3x8x4xf32>
  return }""",
        lambda rng: [*_normal(10, 15)(rng), np.zeros((2, 3, 8, 4), np.float32)],
        lambda x, _: _packed(x),
    ),
    "unpack of a buffer": Form(
        """func.func @f(%a: memref<2x3x8x4xf32>, %o: memref<10x15xf32>) {
  linalg.unpack %a outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %o
    : memref<2x3x8x4xf32> -> memref<10x15xf32>
  return }""",
        lambda rng: [*_normal(2, 3, 8, 4)(rng), np.zeros((10, 15), np.float32)],
        lambda x, _: x.transpose(1, 3, 0, 2).reshape(12, 16)[:10, :15],
    ),
    "pack in tiles of dynamic extent": Form(
        """func.func @f(%a: tensor<10x15xf32>, %t: index, %o: tensor<2x?x8x?xf32>) -> tensor<2x?x8x?xf32> {
  %z = arith.constant 0.0 : f32
  %r = linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, %t]
    into %o : tensor<10x15xf32> -> tensor<2x?x8x?xf32>
  return %r : tensor<2x?x8x?xf32> }""",
        lambda rng: [*_normal(10, 15)(rng), 4, np.zeros((2, 3, 8, 4), np.float32)],
        lambda x, *_: _packed(x),
        (2, 3, 8, 4),
    ),
    "unpack of tiles of dynamic extent": Form(
        """func.func @f(%a: tensor<2x?x8x?xf32>, %t: index, %o: tensor<10x15xf32>) -> tensor<10x15xf32> {
  %r = linalg.unpack %a outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, %t] into %o
    : tensor<2x?x8x?xf32> -> tensor<10x15xf32>
  return %r : tensor<10x15xf32> }""",
        lambda rng: [*_normal(2, 3, 8, 4)(rng), 4, np.zeros((10, 15), np.float32)],
        lambda x, *_: x.transpose(1, 3, 0, 2).reshape(12, 16)[:10, :15],
        (10, 15),
    ),
    "scatter": Form(
        """func.func @f(%s: tensor<3x1x5xf32>, %a: tensor<4x5xf32>, %i: tensor<3x1xi64>) -> tensor<4x5xf32> {
  %r = tensor.scatter %s into %a[%i] scatter_dims([0]) unique
    : (tensor<3x1x5xf32>, tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32> }""",
        lambda rng: [
            rng.standard_normal((3, 1, 5)).astype(np.float32),
            rng.standard_normal((4, 5)).astype(np.float32),
            np.array([[2], [0], [3]]),
        ],
        lambda s, a, i: _into(a, i, s[:, 0]),
        (4, 5),
    ),
    "scatter of reduced parts": Form(
        """func.func @f(%s: tensor<3x5xf32>, %a: tensor<4x5xf32>, %i: tensor<3x1xindex>) -> tensor<4x5xf32> {
  %r = tensor.scatter %s into %a[%i] scatter_dims([0]) unique
    : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<3x1xindex>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32> }""",
        lambda rng: [
            rng.standard_normal((3, 5)).astype(np.float32),
            rng.standard_normal((4, 5)).astype(np.float32),
            np.array([[2], [0], [3]]),
        ],
        lambda s, a, i: _into(a, i, s),
        (4, 5),
    ),
    "index_switch": Form(
        """func.func @f(%a: tensor<4xf32>, %k: tensor<1xindex>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %at = tensor.extract %k[%c0] : tensor<1xindex>
  %r = scf.index_switch %at -> tensor<4xf32>
  case 2 { %z = arith.addf %a, %a : tensor<4xf32>
    scf.yield %z : tensor<4xf32> }
  case 5 { %z = arith.mulf %a, %a : tensor<4xf32>
    scf.yield %z : tensor<4xf32> }
  default { scf.yield %a : tensor<4xf32> }
  return %r : tensor<4xf32> }""",
        lambda rng: [rng.standard_normal(4).astype(np.float32), np.array([5])],
        lambda x, k: x * x,
        (4,),
    ),
    "execute_region": Form(
        """func.func @f(%a: memref<4xf32>) {
  scf.execute_region {
    affine.for %i = 0 to 4 {
      %x = affine.load %a[%i] : memref<4xf32>
      %y = scf.execute_region -> f32 { %z = arith.addf %x, %x : f32
        scf.yield %z : f32 }
      affine.store %y, %a[%i] : memref<4xf32>
    }
    scf.yield
  }
  return }""",
        _normal(4),
        lambda x: x + x,
    ),
    "vectors in affine loops": Form(
        """func.func @f(%a: memref<8x16xf32>, %b: memref<8x16xf32>) {
  affine.parallel (%i) = (0) to (8) {
    affine.for %j = 0 to min affine_map<(d0) -> (4, d0 + 1)>(%i) {
      affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
        %v = affine.vector_load %a[%i, %j * 4] : memref<8x16xf32>, vector<4xf32>
        %w = arith.addf %v, %v : vector<4xf32>
        affine.vector_store %w, %b[%i, %j * 4] : memref<8x16xf32>, vector<4xf32>
      }
    }
  }
  return }""",
        lambda rng: [rng.standard_normal((8, 16)).astype(np.float32), np.zeros((8, 16), np.float32)],
        lambda a, b: np.where(np.arange(16) // 4 <= np.arange(8)[:, None], 2 * a, 0),
    ),
    "reductions beside vectors": Form(
        """func.func @f(%a: memref<8x16xf32>, %b: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  affine.for %i = 0 to 8 {
    %v = vector.load %a[%i, %c0] : memref<8x16xf32>, vector<16xf32>
    %m = vector.reduction <maximumf>, %v : vector<16xf32> into f32
    %s = affine.parallel (%j) = (0) to (16) reduce ("maximumf") -> (f32) {
      %x = affine.load %a[%i, %j] : memref<8x16xf32>
      affine.yield %x : f32
    }
    %t = arith.addf %m, %s : f32
    affine.store %t, %b[%i] : memref<8xf32>
  }
  return }""",
        lambda rng: [rng.standard_normal((8, 16)).astype(np.float32), np.zeros(8, np.float32)],
        lambda a, b: 2 * a.max(1),
    ),
    "dynamic strides": Form(
        """func.func @f(%a: memref<40xf32>) {
  %v = memref.reinterpret_cast %a to offset: [3], sizes: [2, 4], strides: [8, 2]
    : memref<40xf32> to memref<2x4xf32, strided<[8, 2], offset: 3>>
  linalg.exp ins(%v : memref<2x4xf32, strided<[8, 2], offset: 3>>)
    outs(%v : memref<2x4xf32, strided<[8, 2], offset: 3>>)
  return }""",
        _normal(40),
        lambda x: np.where(np.isin(np.arange(40), [3, 5, 7, 9, 11, 13, 15, 17]), np.exp(x), x),
    ),
}


@pytest.mark.parametrize("way", ["interpreted", "bufferized", "converted", "compiled"])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, way: str) -> None:
    form = FORMS[name]
    module = weft.parse(form.text)
    arrays = form.arguments(np.random.default_rng(0))
    expected = form.expected(*(copy(array) for array in arrays))
    outputs = [] if form.gives is None else [np.zeros(form.gives, np.float32)]
    if way == "bufferized":
        if form.gives is None:
            pytest.skip("it has no tensors")
        BufferizeTensorsPass(strict=True).apply(Context(), module)
        module.verify()
    elif way == "converted":
        ConvertFromUpstreamPass(strict=True).apply(Context(), module)
        module.verify()
    if way == "compiled":
        weft.build(module)["f"](*arrays, *outputs)
    else:
        results = Interpreter(module).call("f", *arrays, *(outputs if way != "interpreted" else []))
        if way == "interpreted" and outputs:
            outputs = [results]
    np.testing.assert_allclose((outputs or arrays)[-1], expected, rtol=1e-5, atol=1e-6)


def test_strides_that_calls_give() -> None:
    text = """func.func @f(%a: memref<?xf32>, %o: index, %n: index, %m: index, %s: index, %t: index) {
  %v = memref.reinterpret_cast %a to offset: [%o], sizes: [%n, %m], strides: [%s, %t]
    : memref<?xf32> to memref<?x?xf32, strided<[?, ?], offset: ?>>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%v : memref<?x?xf32, strided<[?, ?], offset: ?>>)
  return }"""
    array = np.ones(40, np.float32)
    weft.build(weft.parse(text))["f"](array, 3, 2, 4, 8, 2)
    assert sorted(np.flatnonzero(array == 0)) == [3, 5, 7, 9, 11, 13, 15, 17]


REFUSED = {
    "softmax of integers": (
        """func.func @f(%a: tensor<4x8xi32>) -> tensor<4x8xi32> {
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x8xi32>) outs(%a : tensor<4x8xi32>) -> tensor<4x8xi32>
  return %r : tensor<4x8xi32> }""",
        r"linalg\.softmax of tensor<4x8xi32> into tensor<4x8xi32>: elements are floats of one type",
    ),
    "softmax of a dimension that is not there": (
        """func.func @f(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.softmax dimension(2) ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32> }""",
        r"linalg\.softmax along dimension 2 of tensor<4x8xf32>",
    ),
    "pack of the wrong rank": (
        """func.func @f(%a: tensor<16xf32>, %o: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %r = linalg.pack %a inner_dims_pos = [0] inner_tiles = [8] into %o : tensor<16xf32> -> tensor<2x4x4xf32>
  return %r : tensor<2x4x4xf32> }""",
        r"linalg\.pack: tensor<2x4x4xf32> has no 1 dimensions and 1 tiles",
    ),
    "pack into too few tiles": (
        """func.func @f(%a: tensor<10x15xf32>, %o: tensor<10x1x8xf32>) -> tensor<10x1x8xf32> {
  %r = linalg.pack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x15xf32> -> tensor<10x1x8xf32>
  return %r : tensor<10x1x8xf32> }""",
        r"linalg\.pack: 1 tiles of 8 do not hold dimension 1 of 15 in tensor<10x15xf32>",
    ),
    "pack of a part of a tile": (
        """func.func @f(%a: tensor<10x15xf32>, %o: tensor<10x2x8xf32>) -> tensor<10x2x8xf32> {
  %r = linalg.pack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x15xf32> -> tensor<10x2x8xf32>
  return %r : tensor<10x2x8xf32> }""",
        r"linalg\.pack: tiles of 8 do not divide dimension 1 of tensor<10x15xf32>, which needs a padding_value",
    ),
    "pack with an integer in floats": (
        """func.func @f(%a: tensor<15xf32>, %z: i32, %o: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %r = linalg.pack %a padding_value(%z : i32) inner_dims_pos = [0] inner_tiles = [8] into %o
    : tensor<15xf32> -> tensor<2x8xf32>
  return %r : tensor<2x8xf32> }""",
        r"linalg\.pack: the padding_value is a i32, the elements are f32",
    ),
    "pack into other elements": (
        """func.func @f(%a: tensor<10x16xf32>, %o: tensor<10x2x8xi32>) -> tensor<10x2x8xi32> {
  %r = linalg.pack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x16xf32> -> tensor<10x2x8xi32>
  return %r : tensor<10x2x8xi32> }""",
        r"linalg\.pack: elements are f32 in the plain array, i32 in tiles",
    ),
    "tiles of no elements": (
        """func.func @f(%a: tensor<16xf32>, %o: tensor<2x0xf32>) -> tensor<2x0xf32> {
  %r = linalg.pack %a inner_dims_pos = [0] inner_tiles = [0] into %o : tensor<16xf32> -> tensor<2x0xf32>
  return %r : tensor<2x0xf32> }""",
        r"linalg\.pack: tile 0 is of 0 elements",
    ),
    "unpack of too few tiles": (
        """func.func @f(%a: tensor<2x8xf32>, %o: tensor<30xf32>) -> tensor<30xf32> {
  %r = linalg.unpack %a inner_dims_pos = [0] inner_tiles = [8] into %o : tensor<2x8xf32> -> tensor<30xf32>
  return %r : tensor<30xf32> }""",
        r"linalg\.unpack: 2 tiles of 8 do not hold dimension 0 of 30 in tensor<30xf32>",
    ),
    "Winograd transform of an unknown size": (
        """func.func @f(%a: tensor<2x6x6x5xf32>, %o: tensor<6x6x1x1x2x5xf32>) -> tensor<6x6x1x1x2x5xf32> {
  %r = "linalg.winograd_input_transform"(%a, %o) <{fmr = 3 : i32}>
    : (tensor<2x6x6x5xf32>, tensor<6x6x1x1x2x5xf32>) -> tensor<6x6x1x1x2x5xf32>
  return %r : tensor<6x6x1x1x2x5xf32> }""",
        r"linalg\.winograd_input_transform: fmr is from 0 to 2, got 3",
    ),
    "scatter without unique": (
        """func.func @f(%s: tensor<3x5xf32>, %a: tensor<4x5xf32>, %i: tensor<3x1xindex>) -> tensor<4x5xf32> {
  %r = tensor.scatter %s into %a[%i] scatter_dims([0])
    : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<3x1xindex>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32> }""",
        r"tensor\.scatter needs `unique`",
    ),
    "scatter of other parts": (
        """func.func @f(%s: tensor<3x4xf32>, %a: tensor<4x5xf32>, %i: tensor<3x1xindex>) -> tensor<4x5xf32> {
  %r = tensor.scatter %s into %a[%i] scatter_dims([0]) unique
    : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x1xindex>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32> }""",
        r"tensor\.scatter of tensor<3x4xf32>: parts .* have the shape \[3, 1, 5\] or \[3, 5\]",
    ),
    **{
        f"Winograd transform of a {which}": (
            f"""func.func @f(%a: tensor<2x6x6x5xf32>, %o: tensor<6x6x1x1x2x5xf32>) -> tensor<6x6x1x1x2x5xf32> {{
  %r = linalg.winograd_{which}_transform fmr(F_4_3) ins(%a : tensor<2x6x6x5xf32>) outs(%o : tensor<6x6x1x1x2x5xf32>)
    -> tensor<6x6x1x1x2x5xf32>
  return %r : tensor<6x6x1x1x2x5xf32> }}""",
            rf"linalg\.winograd_{which}_transform has no form in tir: write the convolution",
        )
        for which in ("filter", "input", "output")
    },
    "branches in a region": (
        """func.func @f(%a: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  scf.execute_region {
    cf.br ^bb1
  ^bb1:
    scf.yield
  }
  %x = memref.load %a[%c0] : memref<4xf32>
  memref.store %x, %a[%c0] : memref<4xf32>
  return }""",
        r"scf\.execute_region",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_forms(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(CompileError, match=message):
        ConvertFromUpstreamPass(strict=True).apply(Context(), weft.parse(text))
