"""Classes of errors, each with a code that its messages end with; `weft explain tir.out-of-bounds` describes one.
Requirements of schedule primitives have the codes `vectorize.2`: the primitive and the number in its docstring."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True)
class ErrorClass:
    """`example` is a Python program that raises one; a test runs it."""

    code: str
    pattern: str
    """A regular expression that matches the start of its messages."""
    meaning: str
    fix: str
    example: str


CLASSES: Final = (
    ErrorClass(
        "ir.unknown-operation",
        r"unknown operation '",
        "The text names an operation that no dialect has. Dialects are those of weft, xDSL and installed packages.",
        "Correct the name; install the package of the dialect; `weft-opt --allow-unregistered-dialect` accepts "
        "the generic form.",
        "weft.parse('''func.func @f() {\n  arith.ad\n}''')",
    ),
    ErrorClass(
        "ir.undefined-value",
        r"value %[^ ]+ is used but not defined|value %[^ ]+ is used outside its scope|'[^']+' uses (%[^ ]+|a "
        r"value without a name),? ",
        "An operand names a value that is not visible there: it is defined nowhere, later, or in a region that "
        "does not hold the use.",
        "Define the value before the use, in the same region or one around it.",
        "weft.parse('''func.func @f() {\n  %b = arith.addf %a, %a : f32\n  func.return\n}''')",
    ),
    ErrorClass(
        "ir.redefined-value",
        r"value %[^ ]+ is already defined",
        "A name of a value is defined twice in one scope.",
        "Rename one of them.",
        "weft.parse('''func.func @f() {\n  %a = arith.constant 1 : i32\n  %a = arith.constant 2 : i32\n  "
        "func.return\n}''')",
    ),
    ErrorClass(
        "ir.not-text",
        r"'[^']*' is not a text file",
        "The file holds bytes that are not UTF-8: it is a binary file, or bytecode of MLIR.",
        "Print it as text first: `mlir-opt FILE -o FILE.mlir`.",
        "import pathlib, tempfile\np = pathlib.Path(tempfile.mkdtemp(), "
        "'f.mlir')\np.write_bytes(b'\\xff\\xfe')\nweft.parse_file(p)",
    ),
    ErrorClass(
        "tir.out-of-bounds",
        r"(reads|writes|loads|stores|accesses)[^\n]* out of bounds: ",
        "An access leaves its buffer for every size of 1 and more. The message has the iteration, the index and "
        "the extents.",
        "Correct the index or the extent of the loop, or guard the access by a condition.",
        "weft.parse('''func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 9 {\n    tir.block \"B\" iters(%v: "
        "spatial<9>) = [%i] {\n"
        "      %z = arith.constant 0.0 : f32\n      memref.store %z, %A[%v] : memref<8xf32>\n    }\n  }\n  "
        "func.return\n}''')",
    ),
    ErrorClass(
        "tir.domain-not-covered",
        r"block \"[^\"]*\": [^\n]*the loops do not cover (the domain|it)",
        "The loops around a block do not run every instance of its domain. The message has an instance that "
        "never runs.",
        "Loop over the whole domain, and put a condition into the body of the block, or make the domain smaller.",
        "weft.parse('''func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 4 {\n    tir.block \"B\" iters(%v: "
        "spatial<8>) = [%i] {\n"
        "      %z = arith.constant 0.0 : f32\n      memref.store %z, %A[%v] : memref<8xf32>\n    }\n  }\n  "
        "func.return\n}''')",
    ),
    ErrorClass(
        "tir.instance-repeated",
        r"block \"[^\"]*\": the loops run an instance twice",
        "Two iterations run the same instance of a block that reads what it writes, so that the result would change.",
        "Bind the iterators so that each iteration has a separate instance, such as `[%i * 4 + %j]`.",
        "weft.parse('''func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 8 {\n    tir.for %j in 2 {\n"
        '      tir.block "B" iters(%v: spatial<8>) = [%i] {\n        %a = memref.load %A[%v] : memref<8xf32>\n'
        "        %b = arith.addf %a, %a : f32\n        memref.store %b, %A[%v] : memref<8xf32>\n      }\n    }\n "
        " }\n  func.return\n}''')",
    ),
    ErrorClass(
        "tir.reduce-iterator-in-output",
        r"block \"[^\"]*\": reduce iterator %[^ ]+ is in index ",
        "An iterator of a reduction picks the element that is written. Its instances combine into one element.",
        "Declare the iterator as spatial.",
        "weft.parse('''func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 8 {\n    tir.block \"B\" iters(%v: "
        "reduce<8>) = [%i] {\n"
        "      %z = arith.constant 0.0 : f32\n      memref.store %z, %A[%v] : memref<8xf32>\n    }\n  }\n  "
        "func.return\n}''')",
    ),
    ErrorClass(
        "tir.parallel-conflict",
        r"the loop is (parallel|vectorized|unrolled|threads?), but ",
        "Two iterations of a loop that runs in parallel access the same element, and one of them writes. The "
        "message has both.",
        "Run the loop serially, or give each iteration separate elements (`rfactor` does for reductions).",
        "weft.parse('''func.func @f(%A: memref<8xf32>, %B: memref<9xf32>) {\n  tir.for %i in 8 parallel {\n"
        '    tir.block "B" iters(%v: spatial<8>) = [%i] {\n      %c = arith.constant 0 : index\n'
        "      %a = memref.load %A[%v] : memref<8xf32>\n"
        "      memref.store %a, %B[%c] : memref<9xf32>\n    }\n  }\n  func.return\n}''')",
    ),
    ErrorClass(
        "pass.unknown",
        r"unknown pass '",
        "No installed package has a pass of this name.",
        "`weft-opt --list-passes` names them.",
        "from weft.tools.weft_opt import WeftOptMain\nWeftOptMain(args=['-p', 'csee', '-'])",
    ),
    ErrorClass(
        "pass.unknown-option",
        r"(pass|target) '[^']+' has no option '",
        "A pass, or a target of `weft-opt -t`, does not have this option.",
        "`weft-opt --help-pass PASS` lists the options with types and defaults.",
        "from weft.tools.weft_opt import WeftOptMain\nWeftOptMain(args=['-p', 'tir-split{blok=B}', '-'])",
    ),
    ErrorClass(
        "pass.missing-option",
        r"(pass|target) '[^']+' needs option '",
        "A pass has an option without default, and it was not given.",
        "`weft-opt --help-pass PASS` lists the options and an example.",
        "from weft.tools.weft_opt import WeftOptMain\nWeftOptMain(args=['-p', 'tir-split', '-'])",
    ),
    ErrorClass(
        "pass.wrong-option",
        r"(pass|target) '[^']+': option '[^']+' expects ",
        "The value of an option has another type.",
        "Write the value as the message says; text with other characters than letters, digits, `_` and `-` is quoted.",
        "from weft.tools.weft_opt import WeftOptMain\nWeftOptMain(args=['-p', 'tir-split{block=B loop=x "
        "factors=0,4}', '-'])",
    ),
    ErrorClass(
        "pass.changed-meaning",
        r"pass '[^']+' changed the meaning of the program|pass .* changes the result of ",
        "The interpreter computes other results after a pass than before it, on the same arguments.",
        "`weft-opt --bisect` names the rewrite; `weft-reduce --validate` makes the program small.",
        "from weft.interp.compare import Validator\na = 'func.func @f(%x: i32) -> i32 {{ %y = arith.{} %x, %x : "
        "i32 func.return %y : i32 }}'\n"
        "Validator(weft.parse(a.format('addi'))).check('p', weft.parse(a.format('muli')))",
    ),
    ErrorClass(
        "pass.invalid-result",
        r"pass '[^']+' left IR that does not verify",
        "A pass made IR that a verifier refuses: a bug of the pass.",
        "`--print-ir-after-failure` shows the IR; `weft-reduce --message 'does not verify'` makes the program small.",
        "raise weft.CompileError(\"pass 'my-pass' left IR that does not verify: 'arith.addi' ...\")",
    ),
    ErrorClass(
        "level.misplaced-operation",
        r"[a-z_]+\.[\w.]+ is not allowed at level '",
        "An operation is left at a level that does not have it: no lowering handles it.",
        "Lower the operation before, or register it with `weft.register_operation(..., levels=...)`.",
        "from xdsl.context import Context\nfrom weft.passes.verify_level import VerifyLevelPass\n"
        "VerifyLevelPass(level='low').apply(Context(), weft.parse('''func.func @f() {\n  tir.for %i in 4 {\n  "
        "}\n  func.return\n}'''))",
    ),
    ErrorClass(
        "schedule.unknown-block",
        r"unknown block '",
        "No function of the module has a block of this name.",
        "`print(sch.loop_trees())` shows the names of all blocks.",
        "weft.Schedule(weft.parse('''func.func @f() {\n  func.return\n}''')).get_block('B')",
    ),
    ErrorClass(
        "schedule.expired-handle",
        r"expired handle ",
        "A handle refers to a loop or block that an earlier step consumed, as `split` consumes its loop.",
        "Use the handles that the step returned, or get them again with `get_loops` or `get_block`.",
        "s = weft.Schedule(weft.parse('''func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 8 {\n    tir.block "
        '"B" iters(%v: spatial<8>) = [%i] {\n'
        "      %z = arith.constant 0.0 : f32\n      memref.store %z, %A[%v] : memref<8xf32>\n    }\n  }\n  "
        "func.return\n}'''))\n"
        "(i,) = s.get_loops(s.get_block('B'))\ns.split(i, [None, 4])\ns.vectorize(i)",
    ),
    ErrorClass(
        "target.unknown-kind",
        r"unknown target kind '",
        "Neither weft nor an installed package has this kind of target.",
        "`weft.target_kinds()` lists them; [adding a target](adding-a-target.md) says how to register one.",
        "weft.Target('lvm')",
    ),
    ErrorClass(
        "target.unknown-option",
        r"unknown target option '",
        "A target has no such option.",
        "Options are those of `weft.Target`, with dashes: `llvm -mcpu=znver4 -num-threads=4`.",
        "weft.Target('llvm -mcpuu=znver4')",
    ),
    ErrorClass(
        "target.unknown-cpu",
        r"unknown (CPU|feature) '",
        "LLVM does not know this processor or feature for the triple.",
        "Name one that LLVM knows; `native` is the processor of this machine.",
        "weft.Target('llvm -mcpu=znver44')",
    ),
    ErrorClass(
        "onnx.cannot-import",
        r"[^\n]*: \d+ nodes? cannot be imported:",
        "The model has operators, versions or attributes that no converter takes. The message lists each with "
        "its nodes.",
        "`fallback=True` runs them by the reference implementation; `weft.onnx.register` adds a converter; "
        "`weft import --list-operators` lists what is supported.",
        "raise weft.CompileError('''model.onnx: 1 node cannot be imported:\n  NoSuchOp: no converter (node n)''')",
    ),
    ErrorClass(
        "onnx.no-model",
        r"[^\n]* is no ONNX model: ",
        "The file cannot be read as a model of ONNX.",
        "Check the file with `onnx.checker.check_model`.",
        "weft.from_onnx(b'not a model')",
    ),
    ErrorClass(
        "torch.unsupported-operator",
        r"from_torch: \d+ operators? (is|are) not supported:",
        "The exported program has operators that no converter takes.",
        "`fallback=True` runs them by PyTorch; `weft.torch.register` adds a converter.",
        "raise weft.CompileError('''from_torch: 1 operator is not supported:\n  aten.foo.default''')",
    ),
    ErrorClass(
        "package.missing",
        r"[^\n]*need(s)? the package \w+: pip install 'weft\[",
        "A feature needs a package that is not installed.",
        "Run the command in the message.",
        "raise weft.CompileError(\"models of PyTorch need the package torch: pip install 'weft[torch]' (no module)\")",
    ),
    ErrorClass(
        "call.no-function",
        r"(the module has no function @|unknown function ')",
        "The module does not have the function that is named.",
        "The names are those of the `func.func`s; `print(module)` shows them.",
        "weft.Interpreter(weft.parse('''func.func @f() {\n  func.return\n}''')).call('g')",
    ),
    ErrorClass(
        "interpreter.no-meaning",
        r"the interpreter has no meaning for ",
        "An operation of another package has no meaning in the interpreter.",
        "Give it one: `weft.register_operation(..., meaning=...)`.",
        "weft.Interpreter(weft.parse('''func.func @f() {\n  \"test.op\"() : () -> ()\n  func.return\n}''')).call('f')",
    ),
    ErrorClass(
        "interpreter.unwritten",
        r"reads [^\n]*, which nothing writes",
        "A program reads elements of a temporary that were never written.",
        "Write them first: a reduction needs its `tir.init`.",
        "weft.parse('''func.func @f(%B: memref<8xf32>) {\n  %A = memref.alloc() : memref<8xf32>\n  tir.for %i in "
        '8 {\n    tir.block "B" iters(%v: spatial<8>) = [%i] {\n'
        "      %a = memref.load %A[%v] : memref<8xf32>\n      memref.store %a, %B[%v] : memref<8xf32>\n    }\n  "
        "}\n  func.return\n}''')",
    ),
    ErrorClass(
        "file.cannot-write",
        r"'[^']*': there is no folder '|'[^']*' is a folder, expected a file|'[^']*' cannot be written",
        "A file cannot be written at this place. Nothing was written.",
        "Make the folder, or name another file.",
        "from pathlib import Path\nfrom weft.support.files import "
        "write_output\nwrite_output(Path('/no/such/folder/file'), b'')",
    ),
    ErrorClass(
        "command.wrong-flags",
        r"[^\n]*--help' lists the flags\)",
        "A command was given flags or words that it does not take.",
        "`weft COMMAND --help` lists the flags.",
        "from weft.tools.weft_cli import execute\nexecute(['run', '--tiem', 'x.mlir'])",
    ),
)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<c{number}>{kind.pattern})" for number, kind in enumerate(CLASSES)))


def class_of(message: str) -> ErrorClass | None:
    match = _pattern().match(message)
    return None if match is None else CLASSES[next(n for n in range(len(CLASSES)) if match[f"c{n}"] is not None)]


def with_code(message: str) -> str:
    found = class_of(message)
    return message if found is None else f"{message} [{found.code}]"
