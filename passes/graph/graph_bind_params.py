"""`graph-bind-params`: replace parameters of a graph function by constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from weft.dialects.constant_data import dense_attribute
from weft.dialects.element_types import element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import (
    is_element,
    lone_name,
    shape_of,
    show_extent,
    show_shape,
)
from weft.passes.graph.functions import substitute_extents
from weft.passes.graph.operators import detached_ops
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def bind_params(module: ModuleOp, function_name: str, values: Mapping[str, ArrayLike]) -> None:
    """Replace parameters of @function_name by constants, as `graph-bind-params`.

    `values` maps names (without %) to arrays of the parameters' element types and shapes. Raises `CompileError` also
    for bound and unused parameters.
    """
    import numpy as np

    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    if function_name not in functions:
        raise CompileError(f"the module has no function @{function_name}{did_you_mean(function_name, functions)}")
    function = functions[function_name]
    parameters = {a.name_hint: a for a in function.args if a.name_hint is not None}
    extents: dict[str, int] = {}
    arrays: list[tuple[BlockArgument, NDArray[Any]]] = []
    for name, value in values.items():
        if name not in parameters:
            _check_not_bound(function, name)
            raise CompileError.at(
                function, f"@{function_name} has no parameter '{name}'{did_you_mean(name, parameters)}"
            )
        if parameters[name].first_use is None:
            raise CompileError.at(
                function, f"parameter '{name}' of @{function_name} is never used: bind no array to it"
            )
        array = np.asarray(value)
        _check(function, name, parameters[name], array, extents)
        if is_element(parameters[name].type, 0):
            extents |= {f"{name}.{at}": int(number) for at, number in enumerate(array.flat)}
        arrays.append((parameters[name], array))
    if extents:
        # Retyping makes new arguments, which are found by position.
        positions = [argument.index for argument, _ in arrays]
        substitute_extents(function, extents)
        arrays = [(function.args[p], array) for p, (_, array) in zip(positions, arrays, strict=True)]
    for argument, array in arrays:
        _bind(function, argument, array)
    function.update_function_type()


def _check_not_bound(function: FuncOp, name: str) -> None:
    """A bound parameter is a constant of its name."""
    for op in function.body.block.ops:
        if isinstance(op, ConstantOp) and op.result.name_hint == name:
            raise CompileError.at(
                function, f"parameter '{name}' of @{function.sym_name.data} is bound already, to {op.result.type}"
            )


def _check(function: FuncOp, name: str, argument: BlockArgument, array: NDArray[Any], extents: dict[str, int]) -> None:
    what = f"parameter '{name}' of @{function.sym_name.data}"
    type_ = argument.type
    if not isinstance(type_, TensorType):
        raise CompileError.at(function, f"{what} is no tensor, but {type_}")
    expected = element_name(type_.element_type)
    if expected is None or array.dtype.name != expected:
        raise CompileError.at(
            function, f"{what} holds {expected or type_.element_type} elements, got an array of {array.dtype.name}"
        )
    shape = shape_of(type_)
    if len(shape) != array.ndim:
        raise CompileError.at(function, f"{what} has shape {show_shape(shape)}, got an array of shape {array.shape}")
    for axis, (extent, size) in enumerate(zip(shape, array.shape, strict=True)):
        symbol_name = lone_name(extent)
        if symbol_name is not None:
            if extents.setdefault(symbol_name, size) != size:
                raise CompileError.at(
                    function,
                    f"{what}: dimension {axis} is '{symbol_name}', which other arrays give as {extents[symbol_name]}, "
                    f"but this one has {size}",
                )
        elif isinstance(extent, int) and extent != size:
            raise CompileError.at(
                function,
                f"{what} has shape {show_shape(shape)}, got an array of shape {array.shape}: "
                f"dimension {axis} is {show_extent(extent)}, not {size}",
            )


def _bind(function: FuncOp, argument: BlockArgument, array: NDArray[Any]) -> None:
    declared = argument.type
    constant = ConstantOp(dense_attribute(array, declared.element_type))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType]
    constant.result.name_hint = argument.name_hint
    _replace(function, argument, constant.result)


def _replace(function: FuncOp, argument: BlockArgument, value: SSAValue) -> None:
    first = function.body.block.ops.first
    for op in detached_ops(value):
        op.location = function.location
        function.body.block.insert_op_before(op, first)  # pyright: ignore[reportArgumentType]
    argument.replace_all_uses_with(value)
    function.body.block.erase_arg(argument)


def bind_values(function: FuncOp, values: Mapping[BlockArgument, SSAValue]) -> None:
    """Replace parameters by values that are not inserted yet."""
    for parameter, value in values.items():
        _replace(function, parameter, value)
    function.update_function_type()


@dataclass(frozen=True)
class GraphBindParamsPass(ModulePass):
    """Replace parameters of a graph function by constants, the arrays of an `.npz` file:
    `graph-bind-params{func=main params="weights.npz"}`.

    A symbolic extent of a bound parameter becomes the array's extent in the whole function. Raises `CompileError`
    for an unknown parameter, a wrong element type or shape, different extents for one name, and an unreadable file.

    Requires: a graph function with parameters of static shapes.

    Leaves: the function with constants in place of the bound parameters.
    """

    name = "graph-bind-params"

    func: str
    """Name of the graph function, without @."""
    params: str
    """Path of an .npz file whose arrays have the names of the parameters."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bind_params(op, self.func, load_arrays(self.params))


def load_arrays(path: str) -> dict[str, NDArray[Any]]:
    """Raises `CompileError` if the file cannot be read as .npz."""
    import zipfile
    import zlib

    import numpy as np

    try:
        with np.load(path) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # the value of a member that is not an array
                raise ValueError(f"'{name}' is no array")
        return arrays
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error, AttributeError, EOFError) as error:
        raise CompileError(f"cannot read arrays from '{path}': {error}") from None
