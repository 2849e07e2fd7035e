"""`weft-opt`: parse IR, verify it, run passes over it, print it or emit it for a target."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from traceback import print_exception
from typing import IO, TYPE_CHECKING, ClassVar, Protocol, cast, runtime_checkable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import PassPipeline
from xdsl.printer import Printer
from xdsl.targets.mlir import MLIRTarget
from xdsl.universe import Universe
from xdsl.utils.exceptions import DiagnosticException, ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from weft.driver.parsing import decode_text, parse_text
from weft.driver.universe import register_dialects
from weft.driver.verify import verify_module
from weft.passes.insertion import PassSequence, run_pass
from weft.passes.pipeline_text import parse_pipeline_text
from weft.support.errors import CompileError, ScheduleError, WeftError, did_you_mean
from weft.support.files import write_output
from weft.support.locations import SourceLocation, remember_text
from weft.support.stopwatch import Stopwatch
from weft.tools.failures import FAILURE, message_of, run_tool

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

    from weft.interp.compare import Validator
    from weft.passes.insertion import PipelineStep

_SEPARATOR = re.compile(r"^// -----.*\n?", re.MULTILINE)
_STDIN = "<stdin>"
_ANNOTATION = re.compile(r"expected-(?P<kind>[a-z]+)\s*(?P<place>@\S+)?\s*\{\{(?P<text>.*?)\}\}")
_ANYWHERE = 0


class ScopedPrinter(Printer):
    """A printer whose names are scoped by regions, as the parser's are: text in is text out.

    xDSL's printer keeps every name of a function taken, so that the second `tir.for %i` prints as `%i_1`.
    """

    def print_op(self, op: Operation) -> None:
        if not op.regions:
            super().print_op(op)
            return
        self.enter_scope()
        super().print_op(op)
        self.exit_scope()
        # The results were named inside the scope that just closed, but are visible outside.
        for result in op.results:
            if result.name_hint:
                self.ssa_names[result.name_hint] = self.ssa_names.get(result.name_hint, 0) + 1
            else:
                self._next_valid_name_id[-1] += 1


def text_of(operation: Operation) -> str:
    """`operation` as text that parses back to an equal operation with the same names."""
    stream = StringIO()
    ScopedPrinter(stream=stream).print_op(operation)
    return stream.getvalue()


@dataclass(frozen=True)
class ScopedMLIRTarget(MLIRTarget):
    """xDSL's target `mlir`, with scoped names."""

    name: ClassVar[str] = "mlir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        printer = self._kind_of_printer()(
            stream=output,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
            print_debuginfo=self.print_debuginfo,
        )
        printer.print_op(module)
        printer.print_metadata(ctx.loaded_dialects)
        print(file=output)

    def _kind_of_printer(self) -> type[ScopedPrinter]:
        if not self.syntax_highlight:
            return ScopedPrinter
        from xdsl.syntax_printer import SyntaxPrinter

        class ScopedSyntaxPrinter(ScopedPrinter, SyntaxPrinter):
            """Coloured names and locations."""

        return ScopedSyntaxPrinter


@dataclass(frozen=True)
class Expectation:
    """An error whose message holds `text` is expected on line `line` (0: in no particular place)."""

    text: str
    line: int
    written_at: SourceLocation


def expectations_in(text: str, file: str, line_offset: int = 0) -> list[Expectation]:
    """The `expected-error` comments of `text`, which begins after line `line_offset` of `file`.

    The place is the comment's own line, or `@+n`, `@-n`, `@above`, `@below`, or `@unknown` for an error without place.
    Raises `CompileError` on a comment that asks for anything else.
    """
    found: list[Expectation] = []
    for number, line in enumerate(text.split("\n"), start=line_offset + 1):
        for match in _ANNOTATION.finditer(line):
            if "//" not in line[: match.start()]:
                continue
            at = SourceLocation(file, number, match.start() + 1, len(match.group()))
            if match["kind"] != "error":
                raise CompileError(f"expected-{match['kind']} is not known: weft reports errors only", location=at)
            found.append(Expectation(match["text"], _line_of(match["place"], number, at), at))
    return found


def _line_of(place: str | None, own: int, at: SourceLocation) -> int:
    if place is None:
        return own
    named = {"@above": own - 1, "@below": own + 1, "@unknown": _ANYWHERE}
    if place in named:
        return named[place]
    if re.fullmatch(r"@[+-]\d+", place):
        return own + int(place[1:])
    raise CompileError(f"expected-error{place}: the place is @+n, @-n, @above, @below or @unknown", location=at)


def unmet(expectations: list[Expectation], errors: list[Exception]) -> list[CompileError]:
    """The differences between the expected errors and those that happened; empty when all match."""
    missing = list(expectations)
    wrong: list[CompileError] = []
    for error in errors:
        message = error.message if isinstance(error, CompileError) else str(error)
        location = error.location if isinstance(error, CompileError | ScheduleError) else None
        line = location.line if location is not None else _ANYWHERE
        match = next((e for e in missing if e.line == line and e.text in message), None)
        if match is not None:
            missing.remove(match)
        else:
            wrong.append(CompileError(f"unexpected error: {message}", location=location))
    wrong.extend(CompileError(f"expected error {e.text!r} was not produced", location=e.written_at) for e in missing)
    return wrong


@runtime_checkable
class StagedTarget(Protocol):
    """A target that compiles in stages, to text or to machine code."""

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str | bytes: ...


class WeftOptMain(xDSLOptMain):
    """xDSL's driver with places, messages instead of tracebacks, and validation of passes.

    weft's dialects, passes and targets come in through the universe. Construction and `execute` raise `WeftError`,
    `DiagnosticException` and `OSError` for what the user gave; `main` prints them.
    """

    emitter: Target
    """The target that prints the result."""

    def __init__(self, description: str = "weft modular optimizer driver", args: Sequence[str] | None = None) -> None:
        # Not xDSL's constructor, only its steps: that one ends the process on an unknown target, listing all.
        self.available_frontends = {}
        self.available_passes = {}
        self.available_targets = {}
        self.ctx = Context()
        register_dialects(self.ctx, Universe.get_multiverse())
        self.register_all_frontends()
        self.register_all_passes()
        self.register_all_targets()
        arg_parser = argparse.ArgumentParser(prog="weft-opt", description=description)
        self.register_all_arguments(arg_parser)
        self.args = arg_parser.parse_args(args)
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        self.stopwatch = Stopwatch()
        self._line_offset = 0
        if self.args.disable_verify:
            Attribute.__post_init__ = lambda self: None  # as xDSL does
        if self.args.syntax_highlight:
            from xdsl.utils.diagnostic import Diagnostic

            Diagnostic.colored = True
        self.setup_pipeline()
        self.setup_target()

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            "--timing",
            dest="time_passes",
            action="store_true",
            help="the same as --time-passes: a table of milliseconds on standard error",
        )
        arg_parser.add_argument(
            "--validate",
            action="store_true",
            help="interpret every function before and after each pass on the same random inputs, and fail on the "
            "first pass that changes a result",
        )
        arg_parser.add_argument("--debug", action="store_true", help="show the traceback of an internal error")

    def register_all_frontends(self) -> None:
        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            return parse_text(
                self.ctx,
                stream.read().decode("utf-8"),
                self.get_input_name(),
                line_offset=self._line_offset,
                implicit_module=not self.args.no_implicit_module,
            )

        self.available_frontends["mlir"] = parse_mlir

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets["mlir"] = lambda: ScopedMLIRTarget

    def get_input_name(self) -> str:
        return _STDIN if self.args.input_file in (None, "-") else self.args.input_file

    def setup_pipeline(self) -> None:
        passes = parse_pipeline_text(self.args.passes, self.available_passes, "pass")
        self.pipeline = PassPipeline(passes)

    def setup_target(self) -> None:
        """Find the target to emit, with its options."""
        # The other kind of entry, a function that prints, is deprecated in xDSL and unused.
        available = cast("dict[str, Callable[[], type[Target]]]", self.available_targets)
        targets = parse_pipeline_text(self.args.target, available, "target")
        if len(targets) != 1:
            raise CompileError(f"-t takes one target, got {len(targets)}: '{self.args.target}'")
        (self.emitter,) = targets
        if self.emitter.name == "mlir":
            self.emitter = dataclasses.replace(
                self.emitter,
                **{
                    "print_generic_format": self.args.print_op_generic,
                    "print_properties_as_attributes": self.args.print_no_properties,
                    "print_debuginfo": self.args.print_debuginfo,
                    "syntax_highlight": self.args.syntax_highlight,
                },
            )

    def run(self) -> None:
        sys.exit(run_tool(self.execute, debug=self.args.debug))

    def execute(self) -> int:
        """Process the whole input and return the exit status. A failing chunk does not keep later ones from running."""
        try:
            status = self._process_chunks()
        except ShrinkException:
            if not self.args.shrink:
                raise
            print("Success, can shrink")
            return 0
        if self.args.time_passes:
            print(self.stopwatch.table(), file=sys.stderr)
        if self.args.shrink:
            print("Failure, can't shrink")
            return FAILURE
        return status

    def _process_chunks(self) -> int:
        chunks, extension = self._read_chunks()
        to_file = self.args.output_file is not None
        output: IO[str] = TextIOWrapper(BytesIO(), encoding="utf-8", newline="\n") if to_file else sys.stdout
        status = 0
        for number, (text, offset) in enumerate(chunks):
            if number:
                output.write("// -----\n")
            status |= self._process_chunk(text, offset, extension, output)
            output.flush()
        if isinstance(output, TextIOWrapper) and to_file and status == 0:
            write_output(Path(self.args.output_file), cast("BytesIO", output.buffer).getvalue())
        return status

    def _read_chunks(self) -> tuple[list[tuple[str, int]], str]:
        """The texts to process, each with the number of lines before it, and the frontend that reads them."""
        name = self.get_input_name()
        if name == _STDIN:
            data, extension = sys.stdin.buffer.read(), "mlir"
        else:
            path = Path(name)
            data, extension = path.read_bytes(), path.suffix.removeprefix(".")
        extension = self.args.frontend or extension
        if extension not in self.available_frontends:
            known = did_you_mean(extension, self.available_frontends)
            raise CompileError(f"'{name}': no frontend reads files that end in '.{extension}'{known}; -f names one")
        text = decode_text(data, name)
        remember_text(name, text)
        if not self.args.split_input_file:
            return [(text, 0)], extension
        chunks: list[tuple[str, int]] = []
        start = 0
        for separator in _SEPARATOR.finditer(text):
            chunks.append((text[start : separator.start()], text.count("\n", 0, start)))
            start = separator.end()
        chunks.append((text[start:], text.count("\n", 0, start)))
        return chunks, extension

    def _process_chunk(self, text: str, offset: int, extension: str, output: IO[str]) -> int:
        """Compile one chunk, or report why it does not compile. Returns the exit status."""
        module = None
        try:
            with self.stopwatch.measure("(parse)"):
                module = self.parse_chunk(BytesIO(text.encode("utf-8")), extension, offset)
            self.apply_passes(module)
            result = self._result(module)
        except (WeftError, DiagnosticException) as error:
            tolerated = self.args.parsing_diagnostics if module is None else self.args.verify_diagnostics
            return self._report(error, tolerated, text, offset, output)
        if isinstance(result, bytes):
            self._write_bytes(result, output)
        else:
            output.write(result)
        return self._compare_expected([], text, offset) if self.args.verify_diagnostics else 0

    def _report(self, error: Exception, tolerated: bool, text: str, offset: int, output: IO[str]) -> int:
        if self.args.verify_diagnostics and "expected-" in text:
            return self._compare_expected([error], text, offset)
        if tolerated:
            output.write(f"{message_of(error)}\n")
            return 0
        output.flush()
        if self.args.debug and error.__cause__ is not None:
            print_exception(error.__cause__)
        print(message_of(error), file=sys.stderr, flush=True)
        return FAILURE

    def _compare_expected(self, errors: list[Exception], text: str, offset: int) -> int:
        differences = unmet(expectations_in(text, self.get_input_name(), offset), errors)
        for difference in differences:
            print(difference, file=sys.stderr, flush=True)
        return FAILURE if differences else 0

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp:
        self._line_offset = start_offset
        return self.available_frontends[file_extension](chunk)

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the passes in order; verify before the first and after each."""
        self._verify(prog)
        validator = self._validator(prog) if self.args.validate else None
        last = len(self.pipeline.passes) - 1
        for number, module_pass in enumerate(self.pipeline.passes):
            self._apply_pass(module_pass, prog, validator)
            self._verify(prog, after=module_pass)
            self._validate(validator, module_pass.name, prog)
            if self.args.print_between_passes and number != last:
                print(f"IR after {module_pass.name}:\n{text_of(prog)}\n\n\n")

        if validator is not None:
            for function, reason in validator.skipped.items():
                print(f"note: --validate did not compare @{function}: {reason}", file=sys.stderr)

    def _validate(self, validator: Validator | None, name: str, prog: ModuleOp) -> None:
        if validator is not None:
            with self.stopwatch.measure("(validate)"):
                validator.check(name, prog)

    def _after_step(self, whole: ModulePass, step: PipelineStep, prog: ModuleOp, validator: Validator | None) -> None:
        """Between the steps of a pass: prints the IR if requested, and checks the result of inserted passes."""
        inserted = step.point is None
        if inserted:
            self._verify(prog, after=step.run)
            self._validate(validator, step.run.name, prog)
        if self.args.print_between_passes:
            where = f"inserted into {whole.name}" if inserted else f"{step.point} of {whole.name}"
            print(f"IR after {step.run.name} ({where}):\n{text_of(prog)}\n\n\n")

    def _validator(self, prog: ModuleOp) -> Validator:
        with self.stopwatch.measure("(validate)"):
            from weft.interp.compare import Validator

            return Validator(prog)

    def _apply_pass(self, module_pass: ModulePass, prog: ModuleOp, validator: Validator | None) -> None:
        name = module_pass.name
        lap = self.stopwatch.laps()

        def after(step: PipelineStep) -> None:
            lap(f"{name}: {step.run.name}")
            self._after_step(module_pass, step, prog, validator)
            lap(None)

        if isinstance(module_pass, PassSequence):
            module_pass.run_steps(self.ctx, prog, after)
            lap(f"{name}: check of the result")
        else:
            run_pass(module_pass, self.ctx, prog)
            lap(name)

    def _verify(self, prog: ModuleOp, after: ModulePass | None = None) -> None:
        if self.args.disable_verify:
            return
        with self.stopwatch.measure("(verify)"):
            try:
                verify_module(prog)
            except CompileError as error:
                if after is None:
                    raise
                raise CompileError(
                    f"pass '{after.name}' left IR that does not verify: {error.message}", location=error.location
                ) from error

    def _result(self, prog: ModuleOp) -> str | bytes:
        """The output: text, or bytes where the target makes machine code."""
        if isinstance(self.emitter, StagedTarget):
            return self.emitter.produce(prog, self.stopwatch)
        with self.stopwatch.measure("(output)"):
            return self.output_resulting_program(prog)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        output = StringIO()
        self.emitter.emit(self.ctx, prog, output)
        return output.getvalue()

    def _write_bytes(self, data: bytes, output: IO[str]) -> None:
        if len(self._read_chunks()[0]) > 1:
            raise CompileError(f"-t {self.emitter.name} writes one file: leave --split-input-file out")
        if output is sys.stdout and sys.stdout.isatty():
            raise CompileError(f"-t {self.emitter.name} writes machine code: name a file with -o")
        cast("TextIOWrapper", output).buffer.write(data)


def main() -> None:
    """The `weft-opt` command."""
    sys.exit(run_tool(lambda: WeftOptMain().execute(), debug="--debug" in sys.argv))


if __name__ == "__main__":
    main()
