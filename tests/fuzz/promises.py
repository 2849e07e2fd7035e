"""Random programs that promise less than weft's own functions, under random schedules, on arguments that overlap: each
stage leaves memory as the interpreted program does.

Where fused multiply-adds and other orders of sums are not promised either, memory holds fractions, of which each step
rounds: results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from cases import FAMILIES, MAKERS, MEMORY, RANDOM, Draw, Program
from overlapping_arguments import Call, Form, Layout, interpreted, layouts
from schedules import MAX_STEPS, Fuzzer
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.analysis.block_scopes import why_not_plain
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.dialects.aliasing import set_noalias
from weft.dialects.promises import Promise, state_promises
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.lower_tir_to_low import LowerTirToLowPass, lower_tir_to_low
from weft.passes.verify_level import verify_level
from weft.runtime.low_module import load_low_module
from weft.support.errors import CompileError

ROUNDING = (Promise.CONTRACT, Promise.REASSOC)
FREE = (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)


class PromiseCase:
    """The program and the schedule of a seed, and the promises that it makes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = Draw(seed)
        self.program = self._program()
        self.promises = {p for p in Promise if self.draw.chance(0.15 if p is Promise.NOALIAS else 0.3)}
        rounds = any(a.dtype.kind == "f" for a in self.program.expected)
        if rounds and not self.promises.isdisjoint(ROUNDING):
            self.promises.add(Promise.NOALIAS)  # else sums grow through each other, beyond what is exact
        self.function = next(op for op in self.program.module.ops if isinstance(op, FuncOp))
        state_promises(self.function, self.promises)
        run = self.program.runs()[-1]
        self.forms = [Form(a.shape, a.dtype) for a in (*run.inputs, *run.expected)]
        self.given = dict(enumerate(run.inputs))
        """The values of arguments that hold indices."""
        below = () if self.program.text is None else dict(self.program.text.below)
        names = [] if self.program.text is None else [buffer.name for buffer in self.program.text.inputs]
        self.apart = {at for at, name in enumerate(names) if name in below}
        self.apart |= {at for at, form in enumerate(self.forms) if form.dtype != self.forms[-1].dtype}
        if self.apart or self.draw.chance(0.3):
            self.apart.add(self.draw.number(0, len(self.forms) - 1))
            set_noalias(self.function, self.apart)
        if Promise.NOALIAS in self.promises:
            self.apart = set(range(len(self.forms)))
        self.exact = self.promises.isdisjoint(ROUNDING)
        self.fuzzer = Fuzzer(self.program, seed)

    def _program(self) -> Program:
        family = self.draw.choose((MEMORY, MEMORY, RANDOM, self.draw.choose(list(FAMILIES))))
        program = MAKERS[family](self.draw)
        while not program.exact:
            program = MAKERS[family](self.draw)
        return replace(program, module=program.module.clone())

    def problem(self) -> str | None:
        """What is wrong, if anything is; raises whatever a step or a stage raises that is no refusal."""
        self.fuzzer.run(self.fuzzer.number(1, MAX_STEPS))
        found = list(layouts(self.forms, seed=self.seed, count=4, whole=not self.exact, apart=self.apart))
        for layout in found:
            self._fill(layout)
        wanted = [layout.after(interpreted(self.program.module, "main")) for layout in found]
        for stage, call in self._stages(self.fuzzer.sch.mod):
            for layout, memory in zip(found, wanted, strict=True):
                if not layout.agree(layout.after(call), memory):
                    return self._report(f"{stage} differs, arguments at {layout.places}")
        return None

    def _fill(self, layout: Layout) -> None:
        for at in self.apart & set(self.given):
            array = self.given[at]
            if at in self.apart and array.dtype.kind == "i":
                start = layout.places[at]
                layout.content.view(np.uint8)[start : start + array.nbytes] = array.ravel().view(np.uint8)

    def _stages(self, scheduled: ModuleOp) -> Iterator[tuple[str, Call]]:
        kinds = {op.kind.data for op in scheduled.walk() if isinstance(op, ForOp)}
        orders: Sequence[str] = ("forward", "reversed", "shuffled", "privatised") if kinds & set(FREE) else ("forward",)
        for order in orders:
            yield f"interpreter {order}", interpreted(scheduled, "main", order, self.seed)
        low = scheduled.clone()
        LowerTirToLowPass("llvm").apply(Context(), low)
        verify_level(low, "low")
        yield "low", interpreted(low, "main")
        for level in (2, 0, *((3,) if self.seed % 4 == 0 else ())):
            yield f"llvm -opt-level={level}", load_low_module(low, weft.Target(opt_level=level))["main"]
        if self.seed % 4 == 1:
            yield "default schedule", weft.build(self.program.module)["main"]
        if self.seed % 4 == 3 and why_not_plain(self.function) is None:
            kernels = self.program.module.clone()
            apply_default_schedule(kernels, weft.Target("cuda"))
            try:
                lower_tir_to_low(Context(), kernels, "cuda")
            except CompileError as error:
                if "is bound to no thread axis" in error.message:  # no default schedule takes it
                    return
                raise
            for order in ("forward", "interleaved"):
                yield f"kernels {order}", interpreted(kernels, "main", order, self.seed)
        if self.seed % 4 == 2:
            yield "c", weft.build(scheduled, "c")["main"]

    def _report(self, problem: str) -> str:
        return f"seed {self.seed}, {problem}\n{self.program.module}\n{self.fuzzer.sch.trace}"


def main() -> int:
    import argparse
    import traceback

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = accepted = 0
    for seed in range(options.seed, options.seed + options.cases):
        try:
            case = PromiseCase(seed)
            problem = case.problem()
            accepted += case.fuzzer.statistics.accepted.total()
        except Exception:  # noqa: BLE001 - whatever is raised is the finding
            problem = f"seed {seed}\n{traceback.format_exc()}"
        if problem is not None:
            found += 1
            print(problem, flush=True)
    print(f"{options.cases} cases, {accepted} accepted steps, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
