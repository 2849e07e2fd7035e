"""Variables, calls and constants of `weft.graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects.graph import CallDpsOp, CallTirOp, ConstantOp, DataflowOp, dense_value
from weft.dialects.graph_shapes import lone_name, shape_of, substitute, tensor_type
from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.interp.values import array_of_dense
from weft.support.errors import CompileError
from weft.tvm.ir.op import Op
from weft.tvm.relax.names import operator_of, relax_name, tensor_shape
from weft.tvm.runtime.ndarray import NDArray, array
from weft.tvm.script.graph_printer import GraphPrinter

E = TypeVar("E", bound="Expr")
FREE = "free variable"
"""The function of variables that are not yet parameters; calls may use them already."""


def is_free(value: SSAValue) -> bool:
    parent = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return isinstance(parent, FuncOp) and parent.sym_name.data == FREE


@dataclass(frozen=True)
class UnknownInfo:
    """A tensor of unknown extents or rank, or no tensor, only of bindings; parameters need `ndim`."""

    what: str
    dtype: str = "float32"
    ndim: int = -1


@dataclass(frozen=True)
class TupleInfo:
    fields: tuple[Any, ...]


@dataclass(frozen=True, repr=False)
class TensorStructInfo:
    """Extents are numbers, or text with expressions over names."""

    shape: Sequence[Any]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(e if isinstance(e, int) else str(e) for e in self.shape))

    def __repr__(self) -> str:
        return f'R.Tensor({tensor_shape(self.shape)}, dtype="{self.dtype}")'


class Expr(Value):
    """Equality is identity of SSA values."""

    @classmethod
    def at(cls: type[E], ssa: SSAValue) -> E:
        made = cls.__new__(cls)
        made.ssa = ssa
        return made

    @property
    def struct_info(self) -> TensorStructInfo:
        return TensorStructInfo(self.shape, self.dtype)

    ty = struct_info
    """`struct_info` in newer versions of TVM."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.ssa is self.ssa

    def __hash__(self) -> int:
        return hash(self.ssa)

    def __repr__(self) -> str:
        return self.ssa.name_hint or "lv"


class Var(Expr):
    """A parameter, or a call's name."""

    def __init__(self, name_hint: str, struct_info: TensorStructInfo) -> None:
        super().__init__(graph_builder.var(name_hint, struct_info.shape, struct_info.dtype).ssa)
        block = cast("Block", self.ssa.owner)
        FuncOp(FREE, (list(block.arg_types), []), Region(block))

    @property
    def name_hint(self) -> str:
        return self.ssa.name_hint or ""


class DataflowVar(Var):
    pass


class Constant(Expr):
    @property
    def data(self) -> NDArray:
        return array(array_of_dense(dense_value(cast("ConstantOp", self.ssa.owner))))

    def __repr__(self) -> str:
        return f"R.const(..., {self.struct_info!r})" if self.shape else f'R.const({self.data}, "{self.dtype}")'


@dataclass(frozen=True)
class GlobalVar:
    """A function's name, and types if available."""

    name_hint: str
    result_types: Sequence[Attribute] = field(default=(), compare=False)
    parameter_types: Sequence[Attribute] = field(default=(), compare=False)

    @classmethod
    def of(cls, function: FuncOp) -> GlobalVar:
        type_ = function.function_type
        return cls(function.sym_name.data, type_.outputs.data, type_.inputs.data)

    def __call__(self, *args: Any) -> Any:
        """Several results are a tuple."""
        if not self.result_types:
            return Call(self, args)
        names: dict[str, Any] = {}
        for parameter, arg in zip(cast("Sequence[TensorType]", self.parameter_types), args, strict=False):
            for extent, given in zip(shape_of(parameter), arg.shape, strict=False):
                if (name := lone_name(extent)) is not None:
                    names.setdefault(name, given)
        types = [
            tensor_type([substitute(extent, names) for extent in shape_of(type_)], type_.element_type)
            for type_ in cast("Sequence[TensorType]", self.result_types)
        ]
        calls = tuple(Call.at(result) for result in CallTirOp(self.name_hint, [a.ssa for a in args], types).results)
        return calls[0] if len(calls) == 1 else calls

    def __repr__(self) -> str:
        return f'I.GlobalVar("{self.name_hint}")'


class Call(Expr):
    """A call of an operator (`Call(Op.get("relax.add"), [x, y])`) or a function of the module."""

    def __init__(
        self,
        op: Op | GlobalVar,
        args: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        sinfo_args: Sequence[TensorStructInfo] | None = None,
    ) -> None:
        if isinstance(op, GlobalVar):
            types = [Var("t", info).type for info in sinfo_args or ()] or list(op.result_types)
            if not types:
                what = "the function is not known here; one that calls itself is a loop, BlockBuilder.emit_loop"
                raise CompileError(f"a call of @{op.name_hint} needs sinfo_args: {what}")
            super().__init__(CallTirOp(op.name_hint, [arg.ssa for arg in args], types).results[0])
        else:
            value = operator_of(op.name.removeprefix("relax."))(*args, **(attrs or {}))
            super().__init__((value if isinstance(value, Value) else value[0]).ssa)

    @property
    def _owner(self) -> Operation:
        return cast("Operation", self.ssa.owner)

    @property
    def op(self) -> Op | GlobalVar:
        owner = self._owner
        if isinstance(owner, CallTirOp):
            return GlobalVar(owner.callee.string_value())
        name = relax_name(owner.name.removeprefix("graph."))
        return Op.get("relax.call_dps_packed" if isinstance(owner, CallDpsOp) else f"relax.{name}")

    @property
    def args(self) -> list[Expr]:
        return [expr_of(operand) for operand in self._owner.operands]

    def __repr__(self) -> str:
        return GraphPrinter().call_text(self._owner)


def expr_of(ssa: SSAValue) -> Expr:
    """A variable, a constant, or a detached call."""
    owner = ssa.owner
    if isinstance(owner, Block):
        return Var.at(ssa)
    if isinstance(owner, ConstantOp):
        return Constant.at(ssa)
    if owner.parent is None:
        return Call.at(ssa)
    return DataflowVar.at(ssa) if isinstance(owner.parent_op(), DataflowOp) else Var.at(ssa)


def const(value: Any, dtype: str | TensorStructInfo | None = None) -> Constant:
    given = dtype.dtype if isinstance(dtype, TensorStructInfo) else dtype
    return Constant.at(graph_builder.const(np.asarray(value, given) if given else value, given).ssa)


def _arithmetic(name: str, operator: str = "") -> Any:
    def apply(self: Expr, *others: Any) -> Call:
        found = operator_of(operator)(self, *others) if operator else getattr(Value, name)(self, *others)
        return Call.at(cast("Value", found).ssa)

    return apply


for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "matmul", "neg", "getitem"]:
    setattr(Expr, f"__{_name}__", _arithmetic(f"__{_name}__"))
_COMPARED = {"mod": "floor_mod", "floordiv": "floor_divide", "lt": "less", "le": "less_equal", "gt": "greater"}
for _sign, _name in (_COMPARED | {"ge": "greater_equal"}).items():
    setattr(Expr, f"__{_sign}__", _arithmetic("", _name))
