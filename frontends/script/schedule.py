"""`weft.Schedule`, with its module as script."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from xdsl.dialects.builtin import ModuleOp

from weft.schedule.recording import step_methods
from weft.schedule.schedule import Schedule as Recorded
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from weft.frontends.script.show import Script
    from weft.support.trees import Tree


_METHODS_OF_TVM = {
    "show": "weft.script.show(mod)",
    "script": "weft.script.script(mod)",
    "astext": "str(mod), or weft.script.script(mod)",
    "functions": "weft.lookup(mod, name)",
    "get_global_var": "weft.lookup(mod, name)",
    "update_func": "weft.update_function(mod, name, function)",
    "with_attr": "weft.set_function_attribute(mod, name, key, value)",
}


class ScheduledModule(ModuleOp):
    """Errors name weft's counterparts of TVM's methods."""

    def __getattr__(self, name: str) -> NoReturn:
        way = f": {_METHODS_OF_TVM[name]}; modules of weft.tvm have it" if name in _METHODS_OF_TVM else ""
        raise AttributeError(f"a module has no attribute '{name}'{way}", name=name, obj=self)


@step_methods
class Schedule(Recorded):
    __doc__ = Recorded.__doc__

    def _copied(self, mod: ModuleOp) -> ModuleOp:
        copy = super()._copied(mod)
        if type(copy) is not ModuleOp:
            return copy
        return ScheduledModule(copy.detach_region(copy.body), dict(copy.attributes), copy.sym_name)

    source: ModuleOp | None = None
    """The module that `weft.schedule_of` received."""
    promises: Sequence[str] = ()

    def transform_script(self) -> str:
        """The steps as a transform script of MLIR, for the linalg functions that `weft.schedule_of` received.

        Raises `CompileError` for a schedule of another program, and for steps without an equivalent, which it lists.
        """
        from weft.schedule.transform.convert_sched_to_transform import transform_script  # start-up: 60 ms

        if self.source is None:
            raise CompileError("a transform script needs linalg to run on: make the schedule by weft.schedule_of")
        return transform_script(self.source, self.trace, self.promises)

    def script(self) -> Script:
        """The scheduled module as Python script, which notebooks show with colours."""
        from weft.frontends.script.printer import print_script  # start-up: 193 ms
        from weft.frontends.script.show import Script  # start-up: 204 ms

        return Script(print_script(self.mod))

    def show(self, *, color: bool | None = None, file: TextIO | None = None) -> None:
        """Show the script, in colours if supported. See `weft.script.show`."""
        from weft.frontends.script.show import show  # start-up: 204 ms

        show(self.mod, color=color, file=file)

    def loop_trees(self) -> list[Tree]:
        from weft.analysis.loop_tree import loop_trees  # start-up: 85 ms

        return loop_trees(self.mod)

    def __str__(self) -> str:
        """`display print(sch)` of a debugger shows the loops at each line."""
        return "\n".join([repr(self), *map(str, self.loop_trees())])

    def _repr_html_(self) -> str:
        from html import escape

        from weft.support.trees import html_of  # start-up: 9 ms

        steps = f"<details><summary>steps</summary><pre>{escape(str(self.trace))}</pre></details>"
        return f"{html_of(self.loop_trees())}{steps}"
