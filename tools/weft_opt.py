"""`weft-opt`: parse IR, verify it, run passes over it, print it or emit it for a target.

`docs/weft-opt.md` documents the flags.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from traceback import print_exception
from typing import IO, TYPE_CHECKING, Final, Protocol, cast, runtime_checkable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import PassPipeline
from xdsl.utils.exceptions import ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from weft.dialects.traversal import copy_of
from weft.driver.parsing import Resources, decode_text, parse_text
from weft.driver.universe import pass_factories, register_dialects
from weft.driver.verify import verify_module
from weft.passes.nested import NestedPasses
from weft.passes.pass_sequence import PassSequence, PipelineStep, epsilon_of, fast_math_of, run_pass
from weft.passes.pipeline_text import parse_passes, parse_pipeline_text, pipeline_text
from weft.support.errors import CompileError, WeftError, did_you_mean
from weft.support.files import write_output
from weft.support.locations import remember_text
from weft.support.packages import installed_universe
from weft.support.statistics import Counts
from weft.support.stopwatch import Stopwatch
from weft.tools.diagnostics import Diagnostic, diagnostics_of, expectations_in, unmet
from weft.tools.failures import (
    FAILURE,
    ArgumentParser,
    is_user_error,
    message_of,
    print_warning,
    run_tool,
    shown_warnings,
    versions,
)
from weft.tools.ir_dumps import IRDumps, add_dump_arguments
from weft.tools.printing import ScopedMLIRTarget, text_of
from weft.tools.reproducer import pipeline_of, reproducer_text

if TYPE_CHECKING:
    from xdsl.dialects.utils.fast_math import FastMathFlag
    from xdsl.passes import ModulePass
    from xdsl.utils.target import Target

    from weft.interp.compare import Validator

_SEPARATOR = re.compile(r"^// -----.*\n?", re.MULTILINE)
_STDIN = "<stdin>"
_LARGE: Final = 16
"""The default of `--elide-large-constants`, in elements."""


@runtime_checkable
class StagedTarget(Protocol):
    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str | bytes: ...


class WeftOptMain(xDSLOptMain):
    """xDSL's driver with locations, messages instead of tracebacks, and validation of passes.

    Construction and `execute` raise `WeftError`, `DiagnosticException` and `OSError` for errors of the user.
    """

    emitter: Target
    """The target that prints the result."""

    def __init__(self, description: str = "weft modular optimizer driver", args: Sequence[str] | None = None) -> None:
        # xDSL's constructor would end the process on an unknown target, and list all.
        self.available_frontends = {}
        self.available_passes = {}
        self.available_targets = {}
        self.ctx = Context()
        self._universe = installed_universe()
        register_dialects(self.ctx, self._universe)
        self.register_all_frontends()
        self.register_all_passes()
        self.register_all_targets()
        self.argument_parser = arg_parser = ArgumentParser(
            prog="weft-opt", description=description, conflict_handler="resolve"
        )
        self.register_all_arguments(arg_parser)
        given = sys.argv[1:] if args is None else args
        # The values of these flags are optional, and the next word is the input.
        bare = {
            "--elide-large-constants": str(_LARGE),
            "--print-ir-after-change": "ir",
            "--mlir-print-ir-after-change": "ir",
        }
        self.args = arg_parser.parse_args([f"{word}={bare[word]}" if word in bare else word for word in given])
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        self.stopwatch = Stopwatch()
        self._lap = self.stopwatch.laps()
        self._line_offset = 0
        self._resources: Resources = {}
        self._running: list[str] = []
        """The running passes, outermost first."""
        self._fast_math: list[FastMathFlag] = []
        """The liberties of passes since the last comparison of the program."""
        self._epsilon = 0.0
        """The coarsest rounding of operands by passes since then."""
        self._diagnostics: list[Diagnostic] = []
        """The diagnostics of the current chunk."""
        self._reproducers: list[str] = []
        self._unchanged: ModuleOp | None = None
        """The program before the running pass, kept for `--bisect`."""
        self._ran: list[str] = []
        """The passes that ran."""
        if self.args.disable_verify:
            Attribute.__post_init__ = lambda self: None  # as in xDSL
        if self.args.syntax_highlight:
            from xdsl.utils.diagnostic import Diagnostic as Diagnostics

            Diagnostics.colored = True
        self._verifies = not self.args.disable_verify
        self._printed = ScopedMLIRTarget(
            self.args.print_op_generic,
            self.args.print_no_properties,
            self.args.print_debuginfo,
            self.args.syntax_highlight,
            elide_above=self.args.elide_large_constants,
        )
        """The printer of the IR."""
        self._dumps = IRDumps(self.args, self.available_passes, self._printed.text)
        self.setup_pipeline()
        self.setup_target()

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        add = arg_parser.add_argument
        add("--disable-verify", action="store_true", help="do not verify the IR before and after passes")
        add("-o", "--output-file", metavar="FILE", help="the file for the result; '-' is standard output")
        add("-f", "--frontend", metavar="NAME", help="read the input in the format of files that end in .NAME (mlir)")
        add(
            "-p",
            "--passes",
            "--pass-pipeline",
            metavar="PASSES",
            action="append",
            default=[],
            help="passes to run in order, as 'cse,tir-split{block=B loop=0 factors=0,4},func.func(canonicalize)', or "
            "'builtin.module(...)' around them; if repeated, the passes run in order of the options. "
            "--list-passes names them",
        )
        add("-t", "--target", metavar="TARGET", default="mlir", help="the output: IR (mlir), or a target of "
            "--list-targets, with options in the syntax of passes")  # fmt: skip
        add("--list-passes", action="store_true", help="list all passes with their summaries, and exit")
        add("--help-pass", metavar="PASS", help="describe a pass, its options and an example, and exit")
        add("--list-targets", action="store_true", help="list all targets of -t, and exit")
        add("--help-target", metavar="TARGET", help="describe a target and its options, and exit")
        add("-v", "-V", "--version", action="store_true", help="print the versions of weft, xDSL and LLVM, and exit")
        add("--timing", "--mlir-timing", "--time-passes", dest="time_passes", action="store_true",
            help="print a table of the milliseconds of each pass, on standard error")  # fmt: skip
        add("--pass-statistics", "--mlir-pass-statistics", action="store_true",
            help="print the statistics of the passes that ran, on standard error")  # fmt: skip
        add("--print-between-passes", action="store_true", help="print the IR between passes, on standard output")
        add_dump_arguments(arg_parser)
        add("--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations")
        add("--print-op-generic", "--mlir-print-op-generic", action="store_true", help="print in the generic form")
        add(
            "--elide-large-constants",
            "--mlir-elide-elementsattrs-if-larger",
            metavar="N",
            type=int,
            help=f"print constants of more than N (={_LARGE}) elements as dense_resource<__elided__>; the number "
            "follows '='",
        )
        add("--crash-reproducer", "--mlir-pass-pipeline-crash-reproducer", metavar="FILE",
            help="if a pass fails, write the input and the passes to FILE")  # fmt: skip
        add("--local-reproducer", "--mlir-pass-pipeline-local-reproducer", action="store_true",
            help="write only the failed pass, with the IR before it")  # fmt: skip
        add("--run-reproducer", action="store_true", help="run the passes stated in the input, a reproducer")
        add("--verify-diagnostics", action="store_true", help="compare errors, warnings, remarks and notes with the "
            "comments '// expected-error@+1 {{text}}', and fail on any difference")  # fmt: skip
        add(
            "--parsing-diagnostics",
            action="store_true",
            help="print errors of the parser on standard output, with exit status 0",
        )
        add(
            "--validate",
            action="store_true",
            help="interpret every function before and after each pass on the same random inputs, and fail on the "
            "first pass that changes a result",
        )
        add(
            "--bisect",
            action="store_true",
            help="as --validate, and report the step and the first rewrite of the pass that change the result",
        )
        add(
            "--debug",
            action="store_true",
            help="show the traceback of an internal error, or of a pass of another package",
        )

    def register_all_frontends(self) -> None:
        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            return parse_text(
                self.ctx,
                stream.read().decode("utf-8"),
                self.get_input_name(),
                line_offset=self._line_offset,
                implicit_module=not self.args.no_implicit_module,
                resources=self._resources,
            )

        self.available_frontends["mlir"] = parse_mlir

    def register_all_passes(self) -> None:
        for name, factory in pass_factories(self._universe).items():
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        self.available_targets.update(self._universe.all_targets)
        self.available_targets["mlir"] = lambda: ScopedMLIRTarget

    def get_input_name(self) -> str:
        return _STDIN if self.args.input_file in (None, "-") else self.args.input_file

    def setup_pipeline(self) -> None:
        if self.args.run_reproducer and self.args.passes:
            raise CompileError("--run-reproducer runs the passes that the input names: leave -p out")
        if self.args.local_reproducer and not self.args.crash_reproducer:
            raise CompileError("--local-reproducer needs a file to write: --crash-reproducer=FILE")
        passes = [p for text in self.args.passes for p in parse_passes(text, self.available_passes)]
        self.pipeline = PassPipeline(tuple(passes))

    def setup_target(self) -> None:
        # The other kind of entry, a function that prints, is deprecated in xDSL and unused.
        available = cast("dict[str, Callable[[], type[Target]]]", self.available_targets)
        targets = parse_pipeline_text(self.args.target, available, "target")
        if len(targets) != 1:
            raise CompileError(f"-t takes one target, got {len(targets)}: '{self.args.target}'")
        self.emitter = self._printed if self.args.target == "mlir" else targets[0]

    def run(self) -> None:
        sys.exit(run_tool(self.execute, debug=self.args.debug))

    def execute(self) -> int:
        """Returns the exit status. A failing chunk does not prevent later ones."""
        if (told := self._information()) is not None:
            print(told)
            return 0
        counts = Counts()
        try:
            with shown_warnings(self._receive_warning):
                status = self._process_chunks()
        except ShrinkException:
            if not self.args.shrink:
                raise
            print("Success, can shrink")
            return 0
        if self.args.pass_statistics:
            print(counts.table(self._ran), file=sys.stderr)
        if self.args.time_passes:
            print(self.stopwatch.table(), file=sys.stderr)
        if self.args.shrink:
            print("Failure, can't shrink")
            return FAILURE
        return status

    def _information(self) -> str | None:
        args = self.args
        if args.version:
            return versions()
        if not (args.list_passes or args.help_pass or args.list_targets or args.help_target):
            return None
        from weft.tools.pass_help import full_help, pass_listing, target_listing  # start-up: 13 ms

        targets = cast("dict[str, Callable[[], type[Target]]]", self.available_targets)
        if args.help_pass:
            return full_help(args.help_pass, self.available_passes, "pass")
        if args.help_target:
            return full_help(args.help_target, targets, "target")
        if args.list_targets:
            return target_listing(targets)
        return pass_listing(self.available_passes, self.ctx.registered_dialect_names)

    def _receive_warning(self, warning: Warning) -> None:
        self._diagnostics.extend(diagnostics_of(warning))
        if not self.args.verify_diagnostics:
            print_warning(warning)

    def _process_chunks(self) -> int:
        chunks, extension = self._read_chunks()
        to_file = self.args.output_file not in (None, "-")
        output: IO[str] = TextIOWrapper(BytesIO(), encoding="utf-8", newline="\n") if to_file else sys.stdout
        status = 0
        try:
            for number, (text, offset) in enumerate(chunks):
                if number:
                    output.write("// -----\n")
                status |= self._process_chunk(text, offset, extension, output)
                output.flush()
        finally:
            self._write_reproducers()
        if isinstance(output, TextIOWrapper) and to_file and status == 0:
            write_output(Path(self.args.output_file), cast("BytesIO", output.buffer).getvalue())
        return status

    def _write_reproducers(self) -> None:
        if self._reproducers:
            path = Path(self.args.crash_reproducer)
            write_output(path, "\n// -----\n\n".join(self._reproducers).encode())
            print(f"note: '{path}' reproduces this: weft-opt {path} --run-reproducer", file=sys.stderr)

    def _read_chunks(self) -> tuple[list[tuple[str, int]], str]:
        """Each chunk has the number of lines before it."""
        name = self.get_input_name()
        if name == _STDIN:
            data, extension = sys.stdin.buffer.read(), "mlir"
        else:
            path = Path(name)
            data, extension = path.read_bytes(), path.suffix.removeprefix(".")
        extension = self.args.frontend or extension
        if extension not in self.available_frontends:
            known = did_you_mean(extension, self.available_frontends)
            if extension == "onnx":
                raise CompileError(f"'{name}': weft-opt reads IR; weft import converts ONNX models to it")
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
        """Returns the exit status."""
        self._diagnostics.clear()
        self._resources.clear()
        module = None
        try:
            with self.stopwatch.measure("(parse)"):
                module = self.parse_chunk(BytesIO(text.encode("utf-8")), extension, offset)
            if self.args.run_reproducer:
                pipeline, verifies = pipeline_of(self._resources, self.get_input_name())
                self.pipeline = PassPipeline(parse_passes(pipeline, self.available_passes))
                self._verifies = verifies and not self.args.disable_verify
            self.apply_passes(module)
            result = self.result(module)
        except ShrinkException:
            raise
        except Exception as error:
            if self.args.debug and not is_user_error(error):
                raise
            status = self._report(error, parsed=module is not None, output=output)
            if not is_user_error(error):  # because comments cannot expect a bug
                return status
        else:
            status = 0
            if isinstance(result, bytes):
                self._write_bytes(result, output)
            else:
                output.write(result)
        return self._compare_expected(text, offset) if self.args.verify_diagnostics else status

    def _report(self, error: Exception, *, parsed: bool, output: IO[str]) -> int:
        """Returns the exit status."""
        self._diagnostics.extend(diagnostics_of(error))
        if self.args.verify_diagnostics and is_user_error(error):
            return FAILURE
        if self.args.parsing_diagnostics and not parsed:
            output.write(f"{message_of(error)}\n")
            return 0
        output.flush()
        if self.args.debug and error.__cause__ is not None:
            print_exception(error.__cause__)
        print(message_of(error), file=sys.stderr, flush=True)
        return FAILURE

    def _compare_expected(self, text: str, offset: int) -> int:
        name = self.get_input_name()
        try:
            differences = unmet(expectations_in(text, name, offset), self._diagnostics, name)
        except CompileError as error:
            differences = [error]
        for difference in differences:
            print(difference, file=sys.stderr, flush=True)
        return FAILURE if differences else 0

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp:
        self._line_offset = start_offset
        return self.available_frontends[file_extension](chunk)

    def apply_passes(self, prog: ModuleOp) -> None:
        """Verify before the first pass and after each."""
        self.verify(prog)
        self._fast_math.clear()
        self._epsilon = 0.0
        self._validator = self._new_validator(prog) if self.args.validate or self.args.bisect else None
        passes = self.pipeline.passes
        begun = self._printed_whole(prog) if self.args.crash_reproducer else ""
        for number, module_pass in enumerate(passes):
            if number and self.args.local_reproducer:
                begun = self._printed_whole(prog)
            try:
                self._run_step(PipelineStep(module_pass, None), self.ctx, prog)
            except ShrinkException:
                raise
            except Exception:
                if self.args.crash_reproducer:
                    shown = pipeline_text((module_pass,) if self.args.local_reproducer else passes)
                    self._reproducers.append(reproducer_text(begun, shown, verify_each=self._verifies))
                raise
            if self.args.print_between_passes and number != len(passes) - 1:
                print(f"IR after {module_pass.name}:\n{text_of(prog)}\n\n\n")

        if self._validator is not None:
            for function, reason in self._validator.skipped.items():
                print(f"note: --validate did not compare @{function}: {reason}", file=sys.stderr)

    def _printed_whole(self, prog: ModuleOp) -> str:
        """Include parts that flags omit."""
        stream = StringIO()
        ScopedMLIRTarget().emit(self.ctx, prog, stream)
        return stream.getvalue().rstrip("\n")

    def _run_step(self, step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
        whole = self._running[-1] if self._running else None
        self._unchanged = copy_of(module) if self.args.bisect and whole is None else self._unchanged
        self._running.append(step.run.name)
        self._ran.append(step.run.name)
        self._dumps.before(step, module)
        try:
            stage = ": ".join(self._running)
            self._lap(None)
            if isinstance(step.run, PassSequence):
                step.run.run_steps(ctx, module, self._run_step)
                self._lap(None if isinstance(step.run, NestedPasses) else f"{stage}: check of the result")
            else:
                run_pass(step.run, ctx, module)
                self._lap(stage)
            self._fast_math.extend(fast_math_of(step.run))
            self._epsilon = max(self._epsilon, epsilon_of(step.run))
            # Steps of weft's own sequences are checked by the result of the sequence.
            if whole is None or step.point is None:
                self.verify(module, after=step.run)
                self._validate(step, module)
        except Exception as error:
            if isinstance(error, WeftError):
                error.add_pass(step.run.name)
            self._dumps.failed(step, module, error)
            raise
        finally:
            self._running.pop()
        self._dumps.after(step, module)
        if whole is not None and self.args.print_between_passes:
            where = f"{step.point} of {whole}" if step.point else f"inserted into {whole}"
            where = where if step.operation is None else f"in {whole}"
            print(f"IR after {step.run.name} ({where}):\n{text_of(module)}\n\n\n")
        self._lap(None)

    def _validate(self, step: PipelineStep, prog: ModuleOp) -> None:
        # Nested passes run on a part; the result of their pipeline is compared.
        if self._validator is not None and step.operation is None:
            with self.stopwatch.measure("(validate)"):
                try:
                    self._validator.check(step.run.name, prog, frozenset(self._fast_math), self._epsilon)
                except CompileError as error:
                    if self._unchanged is None:
                        raise
                    raise self._bisected(step.run, self._unchanged, error) from error
                self._fast_math.clear()
                self._epsilon = 0.0

    def _bisected(self, culprit: ModulePass, before: ModuleOp, error: CompileError) -> CompileError:
        """Name the part of the pass that changed a result. `before` is the module before the pass."""
        from weft.tools.bisection import find_culprit  # start-up: 118 ms

        found = find_culprit(culprit, self.ctx, before)
        if found is None:
            detail = f"'{culprit.name}' alone, run on the program before it, changes nothing that is seen"
            return CompileError(f"{error.message}\n{detail}", location=error.location)
        place = None if found.rewrite is None else found.rewrite.location
        return CompileError(str(found), location=place or error.location)

    def _new_validator(self, prog: ModuleOp) -> Validator:
        with self.stopwatch.measure("(validate)"):
            from weft.interp.compare import Validator  # start-up: 118 ms

            return Validator(prog)

    def verify(self, prog: ModuleOp, after: ModulePass | None = None) -> None:
        """Verify, unless flags disable it; `after` is the last pass. Raises `CompileError`."""
        if not self._verifies:
            return
        with self.stopwatch.measure("(verify)"):
            try:
                verify_module(prog)
            except CompileError as error:
                if after is None:
                    raise
                message = f"pass '{after.name}' left IR that does not verify: {error.message}"
                raise CompileError(message, location=error.location, notes=error.notes) from error

    def result(self, prog: ModuleOp) -> str | bytes:
        """Returns bytes for machine code."""
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
    sys.exit(run_tool(lambda: WeftOptMain().execute(), debug="--debug" in sys.argv))


if __name__ == "__main__":
    main()
