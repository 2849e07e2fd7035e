// RUN: weft-opt --list-passes | filecheck %s --check-prefix=LIST
// RUN: weft-opt --help-pass tir-compute-at | filecheck %s --check-prefix=HELP
// RUN: not weft-opt --help-pass tir-compute_it 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: weft-opt --list-targets | filecheck %s --check-prefix=TARGETS
// RUN: weft-opt --help-target c | filecheck %s --check-prefix=TARGET
// RUN: weft-opt --version | filecheck %s --check-prefix=VERSION

// LIST: convert:
// LIST-NEXT: convert-arith-to-riscv
// LIST: lower-tir-to-low {{ *}}Lower the tir functions of a module
// LIST: tir:
// LIST-NEXT: tir-add-unit-loop {{ *}}Insert a loop of one iteration
// LIST: other passes:
// LIST: cse

// HELP: pass 'tir-compute-at' of weft
// HELP: Requirements:
// HELP: options:
// HELP-NEXT: block: a name or string (required)
// HELP-NEXT: The name of the block.
// HELP: index: an integer (default: none)
// HELP-NEXT: The position in the loop body
// HELP: example:
// HELP-NEXT: weft-opt program.mlir -p 'tir-compute-at{block=B at=C loop=0}'

// UNKNOWN: error: unknown pass 'tir-compute_it', did you mean 'tir-compute-at'

// TARGETS: llvm-ir {{ *}}LLVM IR, as emitted
// TARGETS: opencl {{ *}}The kernels in OpenCL C
// TARGET: header: true or false (default: false)
// TARGET-NEXT: Print the header that declares the functions.
// VERSION: weft
// VERSION-NEXT: xDSL 0.74
// VERSION-NEXT: LLVM
