"""`tvm.tir.PrimFunc`: a one-function module of block loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from weft.schedule.tensor_intrinsics import register_tensor_intrinsic
from weft.tvm.ir.scripted import Scripted, with_attributes


class PrimFunc(Scripted):
    """A module, too, for `tir.Schedule` and `tvm.build`."""

    @property
    def func_op(self) -> FuncOp:
        return next(op for op in self.body.block.ops if isinstance(op, FuncOp) and not op.is_declaration)

    @property
    def attrs(self) -> dict[str, Any]:
        function = self.func_op
        return {"global_symbol": function.sym_name.data, **function.attributes}

    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> PrimFunc:
        """Returns a copy; `global_symbol` is the name."""
        copy = self.clone()
        with_attributes(copy, attr_key_or_dict, attr_value)
        return copy


class TensorIntrin:
    """`TensorIntrin.register("tmm16", desc, impl)`"""

    @staticmethod
    def register(name: str, desc: ModuleOp, impl: ModuleOp, override: bool = False) -> None:
        register_tensor_intrinsic(name, desc, impl, override=override)


class IndexMap:
    """`IndexMap.from_func(lambda i, j: (j, i))`; schedules accept functions."""

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any], ndim: int | None = None, inverse_index_map: object = None
    ) -> Callable[..., Any]:
        return mapping_function
