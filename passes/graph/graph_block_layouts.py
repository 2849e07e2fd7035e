"""`graph-block-layouts`: convolution nets in NCHWc layout."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import gcd
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.low_tile_products import TILE_BYTES
from weft.passes.graph.blocked_operators import (
    BlockedForm,
    blocked_form,
    bytes_of_element,
    elements_of,
    image_of,
    is_convolution,
)
from weft.passes.graph.convolved_planes import planes_rule
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_fold_constants import fold_constants
from weft.passes.graph.graph_simplify import simplify
from weft.passes.graph.operators import detached_ops, made, type_of
from weft.passes.graph.rewriting import rewrite
from weft.plans import fitted
from weft.plans.layouts import conversion, plain_data
from weft.support.cpu_instructions import tile_product_intrinsic
from weft.support.statistics import Statistic
from weft.support.target import Target

_CONVERTED: Final = Statistic("graph-block-layouts", "operators-in-blocks", "operators that work on blocks of channels")


def width_of(channels: int, lanes: int, *, whole: bool = True) -> int | None:
    """Returns the number of channels of a block, which divides `channels`, or None if there is none. It consists of
    `whole` vectors, or the last vector may have fewer of the `lanes`."""
    half = min(lanes, fitted.BLOCK_LANES)
    sizes = [vectors * lanes for vectors in fitted.BLOCK_VECTORS]
    if half < lanes:
        sizes += [vectors * half for vectors in (fitted.BLOCK_VECTORS if whole else fitted.BLOCK_HALF_VECTORS)]
    return next((size for size in sizes if channels % size == 0), None)


@dataclass
class _Group:
    """Images in blocks of one size, connected by elementwise operators, pools and sums."""

    forms: list[BlockedForm] = field(default_factory=list[BlockedForm])
    images: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    width: int = 0


class _Layouts:
    def __init__(self, block: Block, target: Target, winograd: bool, everywhere: bool) -> None:
        self._target = target
        forms = {op: form for op in block.ops if (form := blocked_form(op, target, winograd)) is not None}
        self.forms = {op: form for op, form in forms.items() if everywhere or self._may_pay(form)}
        self._root: dict[SSAValue, SSAValue] = {}
        for form in self.forms.values():
            for value in form.joined:
                self._root[self._find(value)] = self._find(form.result)
        self.groups: dict[SSAValue, _Group] = {}
        for form in self.forms.values():
            group = self.groups.setdefault(self._find(form.result), _Group())
            group.forms.append(form)
            group.images.update(dict.fromkeys((*form.joined, form.result)))
        for root, group in list(self.groups.items()):
            width = self.width_for(group.images, group.forms)
            if width is None:
                self._drop(root)
            else:
                group.width = width

    def choose(self) -> None:
        """Drop groups that cost more than they gain, repeatedly, since this reduces the gain of others."""
        while worse := [root for root, group in self.groups.items() if self._gain(group) <= 0]:
            for root in worse:
                self._drop(root)

    def width_for(self, images: Collection[SSAValue], forms: Iterable[BlockedForm] = ()) -> int | None:
        """Returns the number of channels of a block for some images and the forms that compute them; None if there is
        none. Blocks divide the filters of a group of channels, or are a vector. Blocks whose last vector is shorter
        require floats: dot products have whole vectors."""
        lanes = self._target.vector_bytes // max(map(bytes_of_element, images))
        channels = gcd(*((image_of(value) or (0, 1))[1] for value in images))
        if channels % TILE_BYTES == 0 and any(self.tile_elements(value) == TILE_BYTES for value in images):
            return TILE_BYTES
        filters = min((form.groups.filters for form in forms if form.groups is not None), default=0)
        if filters and filters < 2 * lanes and channels % lanes == 0 < lanes - 1:
            return lanes
        if lanes == 1:
            return None
        whole = any(form.products > 1 for form in forms)
        whole |= any(element_name(type_of(value).element_type) != "float32" for value in images)
        divided = width_of(gcd(channels, filters), lanes, whole=whole) if filters else None
        return divided or width_of(channels, lanes, whole=whole)

    def tile_elements(self, value: SSAValue) -> int:
        """Returns the channels in a tile register, 0 without tile products of such data."""
        element = type_of(value).element_type
        signs = {"bfloat16": (None, None), "uint8": (False, True)}.get(element_name(element) or "")
        has_tiles = signs is not None and tile_product_intrinsic(self._target, *signs)
        return TILE_BYTES // bytes_of(element) if has_tiles else 0

    def group_of(self, value: SSAValue) -> _Group | None:
        return self.groups.get(self._find(value))

    def has_plain_use(self, value: SSAValue) -> bool:
        return any(use.operation not in self.forms for use in value.uses)

    def _find(self, value: SSAValue) -> SSAValue:
        while (parent := self._root.get(value, value)) is not value:
            value = parent
        return value

    def _drop(self, root: SSAValue) -> None:
        for form in self.groups.pop(root).forms:
            del self.forms[form.op]

    def _may_pay(self, form: BlockedForm) -> bool:
        """Returns whether a form is profitable if the images around it are in blocks anyway."""
        images = (*form.joined, form.result)
        width = None if form.groups is None else self.width_for(images, [form])
        return width is None or form.gain_in(width) + sum(map(conversion_of, images)) > 0

    def _gain(self, group: _Group) -> float:
        gain = sum(form.gain_in(group.width) for form in group.forms)
        for value in group.images:
            is_inside = isinstance(value.owner, Operation) and value.owner in self.forms
            if not is_inside or self.has_plain_use(value):
                gain -= conversion_of(value)
        for form in group.forms:
            if form.data is not None and self.group_of(form.data) is None:
                gain -= min(cost_of_reading(form), conversion_of(form.data))
        return gain


def cost_of_reading(form: BlockedForm) -> float:
    """Returns the cost of reading unblocked data, in multiply-adds."""
    image = None if form.data is None else image_of(form.data)
    cost = 0 if image is None else plain_data(form.work, image[1], form.products)
    return cost + form.filtered if cost else 0


def conversion_of(value: SSAValue) -> float:
    """Returns the multiply-adds that a conversion costs: 0 for one pixel, whose blocks are consecutive."""
    _, _, rows, columns = image_of(value) or (1, 1, 1, 1)
    return 0 if rows == columns == 1 else conversion(elements_of(value))


def _convert(layouts: _Layouts) -> None:
    for op, form in layouts.forms.items():
        group = layouts.group_of(form.result)
        width = 0 if group is None else group.width
        found = form.build(width, _data_width(layouts, form)).results[0]
        found.name_hint = form.result.name_hint
        whole = made("unpack", [found], inner_dims_pos=[1], inner_tiles=[width]).results[0]
        block = cast("Block", op.parent)
        for new in detached_ops(whole):
            new.location = op.location
            block.insert_op_before(new, op)
        form.result.replace_all_uses_with(whole)
    for op in reversed(layouts.forms):
        Rewriter.erase_op(op)


def _data_width(layouts: _Layouts, form: BlockedForm) -> int:
    if form.data is None:
        return 1
    if (group := layouts.group_of(form.data)) is not None:
        return group.width
    image = image_of(form.data)
    if (
        form.products > 1
        and image is not None
        and image[1] % form.products == 0
        and layouts.width_for([form.data]) is None
    ):
        # Tiles multiply several pixels of a row if their channels are contiguous.
        width = image[1] if image[1] <= layouts.tile_elements(form.data) else form.products
        return width if conversion_of(form.data) < form.work else 1
    is_converted = conversion_of(form.data) < cost_of_reading(form)
    return (is_converted and layouts.width_for([form.data])) or 1


def block_layouts(function: FuncOp, target: Target, *, everywhere: bool = False, winograd: bool = True) -> int:
    """Convert operators if profitable, or `everywhere`. Returns their number."""
    if winograd:
        rewrite(function, [planes_rule(target)])
    count = 0
    for block in dict.fromkeys(op.parent_block() for op in function.walk() if is_convolution(op)):
        if block is not None:
            layouts = _Layouts(block, target, winograd, everywhere)
            if not everywhere:
                layouts.choose()
            _convert(layouts)
            count += len(layouts.forms)
    if count:
        simplify(function)
        fold_constants(function)
    return count


@dataclass(frozen=True)
class GraphBlockLayoutsPass(ModulePass):
    """Lay out the images of convolution nets in NCHWc, (N, C / b, H, W, b), when profitable.

    A block is one to five vectors of channels, or 64 channels for bytes on CPUs that multiply tiles of them.
    Convolutions with constant weights, packed at compile time, compute in blocks, as do operators around them that read
    whole blocks: activations, sums with images and per-channel terms, pools, means, resizing, concatenation. Other
    producers and consumers get `graph.pack` and `graph.unpack`; data of a few channels are read unblocked. Operators
    that share images are laid out together if the estimated gain exceeds the conversions. Images stay unchanged if
    their channels are not a multiple of a vector, or the target is not `llvm`. 3 x 3 windows of floats with strides and
    dilation 1 use Winograd (`graph.conv2d_winograd`) if the saved multiply-adds exceed the transforms and the loads of
    larger weights. Convolutions of volumes by such windows become convolutions of planes, whose channels are those of
    all planes in a window of depth, if Winograd saves more than the copies of the planes cost. In blocks of floats the
    last vector may be shorter; groups of channels that are not whole blocks are merged by weights of 0.

    Requires: graph functions whose types are known (`graph-infer-types`) and whose weights are constants.
    Leaves: graph functions that compute the same; sums of convolutions may be reassociated, and Winograd rounds
    more.

    ```mlir
    func.func @f(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x1x1xf32> {
      %w = graph.constant dense<0.5> : tensor<16x3x3x3xf32>
      %b = graph.constant dense<1.0> : tensor<16x1x1xf32>
      %c = graph.conv2d %x, %w : tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32> -> tensor<1x16x6x6xf32>
      %y = graph.add %c, %b : tensor<1x16x6x6xf32>, tensor<16x1x1xf32> -> tensor<1x16x6x6xf32>
      %m = graph.mean %y {axis = [2, 3], keepdims = true} : tensor<1x16x6x6xf32> -> tensor<1x16x1x1xf32>
      func.return %m : tensor<1x16x1x1xf32>
    }
    // becomes, with target="llvm -mcpu=haswell"
    func.func @f(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x1x1xf32> {
      %d = graph.pack %x {inner_dims_pos = [1], inner_tiles = [1]} : tensor<1x3x8x8xf32> -> tensor<1x3x8x8x1xf32>
      %w = graph.constant dense<0.5> : tensor<1x3x3x3x1x16xf32>
      %c = graph.conv2d %d, %w {data_layout = "NCHWc", kernel_layout = "OIHWio"}
           : tensor<1x3x8x8x1xf32>, tensor<1x3x3x3x1x16xf32> -> tensor<1x1x6x6x16xf32>
      %b = graph.constant dense<1.0> : tensor<1x1x1x16xf32>
      %y = graph.add %c, %b : tensor<1x1x6x6x16xf32>, tensor<1x1x1x16xf32> -> tensor<1x1x6x6x16xf32>
      %p = graph.mean %y {axis = [2, 3], keepdims = true} : tensor<1x1x6x6x16xf32> -> tensor<1x1x1x1x16xf32>
      %m = graph.unpack %p {inner_dims_pos = [1], inner_tiles = [16]} : tensor<1x1x1x1x16xf32> -> tensor<1x16x1x1xf32>
      func.return %m : tensor<1x16x1x1xf32>
    }
    ```
    """

    name = "graph-block-layouts"
    fast_math = (FastMathFlag.REASSOC,)

    target: str = "llvm"
    """The target, as `weft.build` takes it."""
    everywhere: bool = False
    """Whether images are in blocks wherever possible, even if not profitable."""
    winograd: bool = True
    """Whether convolutions may use Winograd, which rounds more."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        if target.kind != "llvm":
            return
        for function in list(graph_functions(op)):
            _CONVERTED.add(block_layouts(function, target, everywhere=self.everywhere, winograd=self.winograd))
