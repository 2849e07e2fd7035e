"""Functions of te IR from tensors, with assumptions on variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.arith import ConstantOp as ArithConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FunctionType,
    IndexType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.tensor import DimOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft.dialects.element_types import stated_elements, value_elements
from weft.dialects.integer_arith import constant_integer
from weft.dialects.te import PARAMETER_ORDER, AssumeShapeOp, YieldOp
from weft.dialects.te import ComputeOp as TeComputeOp
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.traversal import post_order
from weft.support.argument_types import shown
from weft.texpr.emit import ElementEmitter
from weft.texpr.expr import Compare, Expr, Predicate, Var, caller, error, is_extent, type_of, value_type_of
from weft.texpr.extern import ExternOp
from weft.texpr.shapes import ExtentVariables, items, value_name
from weft.texpr.tensor import ComputeOp, ConstantOp, InlinedOp, PlaceholderOp, Tensor
from weft.texpr.tensor import Operation as TensorOperation

Assumptions: TypeAlias = "Sequence[Expr | bool] | Expr | bool"
"""Comparisons of extents by `==`, `<=`, `<`, `>=`, `>`."""

_RELATIONS = {
    Predicate.EQ: Relation.EQUAL,
    Predicate.LE: Relation.AT_MOST,
    Predicate.LT: Relation.LESS,
    Predicate.GE: Relation.AT_MOST,
    Predicate.GT: Relation.LESS,
}


def relation_of(assumption: Compare) -> tuple[Expr, Relation, Expr] | None:
    """A relation of `tir.assume`, sides swapped for `>=` and `>`; None for `!=`."""
    relation = _RELATIONS.get(assumption.predicate)
    if relation is None:
        return None
    if assumption.predicate in (Predicate.GE, Predicate.GT):
        return assumption.right, relation, assumption.left
    return assumption.left, relation, assumption.right


def checked_assumptions(assume: object) -> tuple[Compare, ...]:
    return tuple(map(_checked, items(assume)))


def _checked(given: object) -> Compare:
    if not isinstance(given, Compare):
        raise error(f"assume takes comparisons of extents such as n % 32 == 0, got {shown(given)}")
    if relation_of(given) is None:
        raise error(f"assume compares by ==, <=, <, >= or >, got {given}")
    for side in (given.left, given.right):
        if not is_extent(side):
            raise error(f"assume compares extents, made of integers and integer variables, got {side} in {given}")
    return given


_INDEX = IndexType()


def create_te_func(args: Sequence[Tensor | Var], name: str = "main", *, assume: Assumptions = ()) -> ModuleOp:
    """A module with one te function, from its inputs and outputs.

    ```mlir
    func.func @mm_relu(%A: tensor<128x128xf32>, %B: tensor<128x128xf32>) -> tensor<128x128xf32> { ... te.compute ... }
    ```
    """
    function = te_function(args, name, assume)
    for tensor in items(args):
        if isinstance(tensor, Tensor) and tensor.strides is not None:
            raise error(f"{tensor.name} has strides, but values of tensor type have none: use te.create_func")
    module = ModuleOp([function])
    declare_intrinsics(module)
    return module


def declare_intrinsics(module: ModuleOp) -> None:
    known = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)}
    for call in [op for op in module.walk() if isinstance(op, CallOp)]:
        name = call.callee.string_value()
        if name not in known:
            known.add(name)
            types = [operand.type for operand in call.arguments], [result.type for result in call.res]
            module.body.block.add_op(FuncOp.external(name, *types))


def te_function(args: object, name: object, assume: object) -> FuncOp:
    if isinstance(args, Tensor | Var) and isinstance(name, Tensor | Var):
        raise error("the tensors of a function are given as one list: te.create_func([A, B, C])")
    if not isinstance(name, str) or not name:
        raise error(f"the name of a function is a word, got {shown(name)}")
    parameters = _checked_parameters(items(args))
    try:
        return _Function(parameters, name, checked_assumptions(assume)).finish()
    except RecursionError:
        raise error("an expression is nested too deeply: compute parts of it as separate tensors") from None


def _checked_parameters(args: tuple[object, ...]) -> list[Tensor | Var]:
    parameters: list[Tensor | Var] = []
    names: dict[str, Tensor | Var] = {}
    for arg in args:
        if not isinstance(arg, Tensor | Var):
            raise error(f"parameters are tensors and variables, got {shown(arg)} of type {type(arg).__name__}")
        name = value_name(arg.name)
        if name in names:
            if names[name] is arg:
                raise error(f"{arg.name} is listed twice")
            both = " and ".join(repr(p) if isinstance(p, Tensor) else f"variable {p.name}" for p in (names[name], arg))
            raise error(f"two parameters are called {shown(name)}: {both}; give one another name")
        names[name] = arg
        parameters.append(arg)
    if not any(isinstance(p, Tensor) and isinstance(p.op, ComputeOp | InlinedOp) for p in parameters):
        listed = ", ".join(names) or "nothing"
        raise error(f"a function computes at least one of its parameters: list a computed tensor, got {listed}")
    return parameters


class _Function:
    def __init__(self, parameters: list[Tensor | Var], name: str, assumptions: Sequence[Compare]) -> None:
        self._name = name
        self._assumptions = assumptions
        self._parameters = parameters
        self._inputs = [p for p in parameters if isinstance(p, Var) or isinstance(p.op, PlaceholderOp)]
        self._outputs = [p for p in parameters if isinstance(p, Tensor) and isinstance(p.op, ComputeOp | InlinedOp)]
        self._entry = Block(arg_types=[_argument_type(p) for p in self._inputs])
        self._values: dict[Tensor, SSAValue] = {}
        self._variables: dict[Var, SSAValue] = {}
        self._emitter = ElementEmitter(self._entry, self._values, self._variables)
        for parameter, argument in zip(self._inputs, self._entry.args, strict=True):
            argument.name_hint = value_name(parameter.name)
            if isinstance(parameter, Var):
                self._variables[parameter] = argument
            else:
                self._values[parameter] = argument

    def finish(self) -> FuncOp:
        self._bind_extents()
        for left, relation, right in filter(None, map(relation_of, self._assumptions)):
            (first, second), operands = self._emitter.affine_forms([left, right])
            self._emitter.finish(AssumeOp(first, relation, second, operands))
        computations = computations_behind([tensor.op for tensor in self._outputs])
        self._assume_extents([p.op for p in self._inputs if isinstance(p, Tensor)] + computations)
        for op in computations:
            if isinstance(op, ComputeOp):
                self._compute(op)
            else:
                self._inline(op)
        self._emitter.place = None
        results = [self._values[tensor] for tensor in self._outputs]
        self._emitter.finish(ReturnOp(*results))
        type = FunctionType.from_lists([a.type for a in self._entry.args], [r.type for r in results])
        function = FuncOp(self._name, type, Region(self._entry))
        function.arg_attrs = stated_elements(type_of(p.dtype) for p in self._inputs)
        function.res_attrs = stated_elements(type_of(p.dtype) for p in self._outputs)
        place = caller()
        if place is not None:
            function.location = place.attribute()
        self._note_order(function)
        return function

    def _assume_extents(self, ops: Sequence[TensorOperation]) -> None:
        stated: set[tuple[Relation, str]] = set()
        for op in ops:
            for left, relation, right in filter(None, map(relation_of, op.assumed)):
                names = ExtentVariables()
                difference = str(names.polynomial(left) - names.polynomial(right))
                if (relation, difference) not in stated:
                    stated.add((relation, difference))
                    self._emitter.place = op.place
                    sides, operands = self._emitter.affine_forms([left, right])
                    reason = f'block "{op.name}" requires it'
                    self._emitter.finish(AssumeOp(sides[0], relation, sides[1], operands, reason))

    def _bind_extents(self) -> None:
        own: dict[Tensor, set[int]] = {}
        placeholders = [p for p in self._inputs if isinstance(p, Tensor)]
        for tensor in placeholders:
            own[tensor] = set()
            for dimension, extent in enumerate(tensor.shape):
                if isinstance(extent, Var) and extent not in self._variables:
                    self._emitter.place = tensor.op.place
                    position = self._emitter.constant(dimension, _INDEX)
                    self._variables[extent] = self._emitter.append(
                        DimOp(self._values[tensor], position), value_name(extent.name)
                    )
                    own[tensor].add(dimension)
        for tensor in placeholders:
            dynamic = [d for d, extent in enumerate(tensor.shape) if not isinstance(extent, int)]
            if own[tensor].issuperset(dynamic):
                continue
            self._emitter.place = tensor.op.place
            extents = [self._emitter.extent(tensor.shape[dimension]) for dimension in dynamic]
            stated = [extent for extent in extents if isinstance(extent, SSAValue)]
            self._emitter.finish(AssumeShapeOp(self._values[tensor], stated))

    def _compute(self, op: ComputeOp) -> None:
        emitter = self._emitter
        for tensor in op.input_tensors:
            if isinstance(tensor.op, ConstantOp) and tensor not in self._values:
                emitter.place = tensor.op.place
                constant = ArithConstantOp(value_elements(tensor.op.elements))
                self._values[tensor] = emitter.append(constant, value_name(tensor.name))
        emitter.place = op.place
        if isinstance(op, ExternOp):
            made = op.emit(emitter)
            emitter.finish(made)
            self._define(op, made)
            return
        shape = op.outputs[0].shape
        extents = [emitter.extent(extent) for extent in shape]
        types = [value_type_of(element.dtype) for element in op.body]
        compute = TeComputeOp.over(op.name, extents, types, [value_name(index.name) for index in op.axis])
        with emitter.inside(compute.body.block, dict(zip(op.axis, compute.indices, strict=True))):
            emitter.finish(YieldOp(*(emitter.value(element) for element in op.body)))
        emitter.finish(compute)
        self._define(op, compute)

    def _define(self, op: ComputeOp, made: Operation) -> None:
        for tensor, result in zip(op.outputs, made.results, strict=True):
            self._values[tensor] = result
            result.name_hint = value_name(tensor.name)

    def _inline(self, op: InlinedOp) -> None:
        emitter, tensors = self._emitter, dict(zip(op.function.args, op.arguments, strict=True))
        emitter.place = op.place
        values: dict[SSAValue, SSAValue] = {argument: self._values[tensor] for argument, tensor in tensors.items()}
        for inner in op.function.body.block.ops:
            if isinstance(inner, ReturnOp):
                results = [values[value] for value in inner.arguments]
                self._values.update(zip(op.outputs, results, strict=True))
            elif isinstance(inner, DimOp) and (at := constant_integer(inner.index)) is not None:
                source = tensors.get(cast("BlockArgument", inner.source))
                extent = None if source is None else emitter.extent(source.shape[at])
                if isinstance(extent, int):
                    extent = emitter.constant(extent, _INDEX)
                values[inner.result] = (
                    emitter.append(DimOp(values[inner.source], values[inner.index])) if extent is None else extent
                )
            elif not isinstance(inner, AssumeShapeOp):
                copy = inner.clone(values)
                self._entry.add_op(copy)
                values.update(zip(inner.results, copy.results, strict=True))

    def _note_order(self, function: FuncOp) -> None:
        natural: list[Tensor | Var] = [*self._inputs, *self._outputs]
        order = [next(i for i, p in enumerate(natural) if p is parameter) for parameter in self._parameters]
        if order != sorted(order):
            function.attributes[PARAMETER_ORDER] = DenseArrayBase.from_list(i64, order)


def _argument_type(parameter: Tensor | Var) -> Attribute:
    if isinstance(parameter, Var):
        return _INDEX if parameter.is_index else value_type_of(parameter.dtype)
    shape = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in parameter.shape]
    return TensorType(value_type_of(parameter.dtype), shape)


def computations_behind(ops: Sequence[object]) -> list[ComputeOp | InlinedOp]:
    """Computations among `ops` and their dependences, in topological order."""

    def computations(found: Iterable[object]) -> Iterator[ComputeOp | InlinedOp]:
        return (op for op in found if isinstance(op, ComputeOp | InlinedOp))

    return post_order(computations(ops), lambda op: computations(tensor.op for tensor in op.input_tensors))
