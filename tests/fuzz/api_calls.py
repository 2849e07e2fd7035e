"""Calls of public functions and methods with junk: wrong types, counts, keywords and sizes, beside what fits."""

from __future__ import annotations

import inspect
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

import weft
from weft import te
from weft.te import ops

SECONDS = 10
ALLOWED = (TypeError, ValueError, weft.ScheduleError, weft.CompileError)
LEFT_OUT = {"Expr.text", "IterVar.text", "Function.make"}
"""Methods for weft itself."""
GLOBAL = ("weft.register_", "weft.set_")
"""What changes the process comes last."""
FILES = {"load", "parse_file", "export", "save", "from_onnx"}
"""Functions of files, which raise `OSError` too."""


class TooLongError(BaseException):
    """The call did not come back."""


def deep_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def junk() -> list[Any]:
    """Values that hardly any parameter takes."""
    itself: list[Any] = []
    itself.append(itself)
    return [
        None, True, 0, 1, 3, -1, 2**31, 2**62, 2**63, 2**70, -(2**70), 10**5000, 1.5, float("nan"), float("inf"), 1j,
        "", "x", "A", "llvm", "float32", "\n", "é", "a'b", "-mcpu", "lambda i: i", b"x", [], [[]], [1, 2], [None, 3.5],
        deep_list(5), deep_list(3000), itself, (), (0, 4), (2**70,), (1,) * 300, {}, {1: 2}, {"k": 3}, {1, 2}, object(),
        int, ..., range(3), lambda: 0, lambda *i: i[0], lambda *, k: k, lambda a, b, c, d, e: a, np.float32(1),
        np.int64(3), np.zeros(3), np.zeros((4, 4), "float32"), slice(1, 2), NotImplemented,
    ]  # fmt: skip


@dataclass
class World:
    """Objects to call methods of, and to give as arguments."""

    subjects: dict[str, Any] = field(default_factory=dict[str, Any])
    fitting: list[Any] = field(default_factory=list[Any])
    watched: list[weft.Schedule] = field(default_factory=list[weft.Schedule])

    @staticmethod
    def fresh() -> World:
        a = te.placeholder((16, 8), name="A")
        k = te.reduce_axis((0, 8), name="k")
        b = te.compute((16, 8), lambda i, j: a[i, j] + 1.0, name="B")
        c = te.compute((16,), lambda i: te.sum(b[i, k], axis=k), name="C")
        module = te.create_func([a, c], name="f")
        schedule = weft.Schedule(module)
        block, loops = schedule.get_block("C"), schedule.get_loops("C")
        number = schedule.sample_categorical([2, 4], [0.5, 0.5])
        stages = te.create_schedule(c.op)
        library = weft.build(module)
        target = weft.Target()
        expression = b.op.body[0]
        fitting = [a, b, c, k, *c.op.axis, expression, module, schedule, block, *loops, number, stages, stages[c]]
        fitting += [library, target, schedule.trace, te.var("n"), te.thread_axis("threadIdx.x"), "C", "B", [4, 4]]
        fitting += [(lambda i, j: (j, i)), ("read", 0), "local", [None, 4], 0, 1, 4, True, 0.5]
        subjects = {
            "Schedule": schedule, "StageSchedule": stages, "Stage": stages[c], "Library": library,
            "Function": library["f"], "Target": target, "Tensor": a, "Expr": expression, "IterVar": k,
        }  # fmt: skip
        return World(subjects, fitting, [schedule])

    def callables(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        for room, names in (("weft", weft), ("te", te), ("ops", ops)):
            for name in names.__all__:
                value = getattr(names, name)
                if callable(value) and f"{room}.{name}" not in LEFT_OUT and not is_error(value):
                    yield f"{room}.{name}", value
        for kind, subject in self.subjects.items():
            if kind == "Function":
                yield "Function.__call__", subject
            for name in dir(type(subject)):
                method = inspect.getattr_static(type(subject), name)
                if name.startswith("_") and name != "__getitem__":
                    continue
                is_method = inspect.isfunction(method) or isinstance(method, staticmethod | classmethod)
                if is_method and f"{kind}.{name}" not in LEFT_OUT:
                    yield f"{kind}.{name}", getattr(subject, name)


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def is_accident(error: BaseException) -> bool:
    """Whether an error was not raised on purpose, but by Python in a line that did not expect such a value."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = frame.line or ""
    is_call = frame.filename.endswith("api_calls.py") or line.endswith("(*args, **options)")  # or that of a wrapper
    return not line.startswith("raise") and not is_call


@dataclass(frozen=True)
class Finding:
    """What a call should not have done."""

    call: str
    what: str
    place: str
    trace: str = field(compare=False, hash=False)


class Caller:
    """Makes calls, and remembers what is wrong with them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World.fresh()
        self.calls = 0
        self.accepted = 0
        self.findings: dict[tuple[str, str], Finding] = {}

    def run(self, calls: int) -> None:
        for at in range(calls):
            if at % 500 == 0:
                self.world = World.fresh()
                callables = list(self.world.callables())
                local = [(name, function) for name, function in callables if not name.startswith(GLOBAL)]
            self.call(*self.random.choice(local))
        for name, function in callables:
            for _ in range(calls // 50 if name.startswith(GLOBAL) else 0):
                self.call(name, function)

    def arguments(self, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            parameters = {}
        names, strange = list(parameters), junk()
        strangeness = self.random.choice((0.0, 0.1, 0.5, 1.0))

        def draw(name: str = "") -> Any:
            if self.random.random() < strangeness:
                return self.random.choice(strange)
            wanted = str(parameters[name].annotation) if name in parameters else ""
            kinds = [kind for kind in (type(value).__name__ for value in self.world.fitting) if kind in wanted]
            fitting = [value for value in self.world.fitting if type(value).__name__ in kinds]
            if wanted == "object":
                fitting = [value for value in self.world.fitting if isinstance(value, te.Tensor | int | str | list)]
            return self.random.choice(fitting or self.world.fitting)

        needed = sum(parameter.default is parameter.empty for parameter in parameters.values())
        count = self.random.choice([needed, needed, needed, len(names), len(names) + 1, max(0, needed - 1)])
        split = self.random.randint(0, count) if self.random.random() < 0.3 else count
        keywords = {name: draw(name) for name in names[split:count]}
        if self.random.random() < 0.05:
            keywords["unknown"] = draw()
        return [draw(*names[at : at + 1]) for at in range(min(split, 8))], keywords

    def call(self, name: str, function: Callable[..., Any]) -> None:
        args, keywords = self.arguments(function)
        self.calls += 1
        before = [(str(schedule.mod), str(schedule.trace)) for schedule in self.world.watched]
        try:
            with_limit(function, args, keywords)
            self.accepted += 1
            return
        except ALLOWED as error:
            if isinstance(error, UnicodeError) or is_accident(error):
                self.found(name, error, "accidental ")
            refused: BaseException = error
        except OSError as error:
            if name.rpartition(".")[2] not in FILES:
                self.found(name, error)
            refused = error
        except (Exception, TooLongError) as error:  # noqa: BLE001 - whatever comes out is the finding
            self.found(name, error)
            return
        after = [(str(schedule.mod), str(schedule.trace)) for schedule in self.world.watched]
        if before != after and not name.endswith((".replay", ".run_trace")):
            self.found(name, refused, "state changed by a call that raised ")

    def found(self, name: str, error: BaseException, prefix: str = "") -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].name}"
        what = f"{prefix}{type(error).__name__}"
        text = "".join(traceback.format_exception(error, limit=-6))
        self.findings.setdefault((what, place), Finding(name, what, place, text[-3000:]))


def with_limit(function: Callable[..., Any], args: list[Any], keywords: dict[str, Any]) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        function(*args, **keywords)
    finally:
        signal.alarm(0)
