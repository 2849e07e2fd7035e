// RUN: weft run %s --func scale --check --time --repeat 2 --shape A=3x5 --input factor=2.5 | filecheck %s
// RUN: weft run %s --func scale --shape A=3x5 --input factor=2.5 --no-schedule --check | filecheck %s --check-prefix=PLAIN
// RUN: weft run %s --func scale --shape A=300x5 --input factor=2.5 --check --check-limit 0 | filecheck %s --check-prefix=LIMIT
// RUN: weft run %s --func sum --check --threads 1 | filecheck %s --check-prefix=TENSOR
// RUN: not weft run %s 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: not weft run %s --func scle 2>&1 | filecheck %s --check-prefix=FUNC
// RUN: weft run %s --func scale --input factor=2.5 | filecheck %s --check-prefix=EXTENT
// RUN: not weft run %s --func scale --input alpha=2.5 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not weft run %s --func scale --output A=a.npy --shape A=3x5 --input factor=1 2>&1 | filecheck %s --check-prefix=OUTPUT
// RUN: not weft run %s --func scale --input A=%t.none.npy 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not weft run %s --func scale --input A=%s 2>&1 | filecheck %s --check-prefix=NPY
// RUN: not weft run %s --func scale --target "llvm -mcpu=znver44" 2>&1 | filecheck %s --check-prefix=CPU
// RUN: not weft run %s --func scale --target gpu 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not weft run %t.none.mlir 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not weft rum %s 2>&1 | filecheck %s --check-prefix=COMMAND
// RUN: weft --help | filecheck %s --check-prefix=HELP

// CHECK:      scale(A: float32[3, 5], factor: float32, out B: float32[3, 5])
// CHECK-NEXT: target    llvm -mcpu=
// CHECK-NEXT: schedule  @rows applied
// CHECK-NEXT: build     {{[0-9.]+}} ms
// CHECK-NEXT: check     B: within {{.*}} of the interpreter (max abs error {{.*}}, max rel error {{.*}})
// CHECK-NEXT: check     agrees with the interpreter on saturating values, NaN, zeros of both signs, infinities
// CHECK-NEXT: time      median {{.*}}, p90 {{.*}}, p99 {{.*}}, min {{.*}} ms of 2 runs
// CHECK-NEXT: speed     {{.*}} calls/s, {{.*}} GFLOP/s at the median
// PLAIN: schedule  @rows left out
// PLAIN: check     B: within {{.*}} of the interpreter
// LIMIT: note      interpreting would take {{.*}} s, --check-limit is 0 s
// LIMIT: check     B: within {{.*}} of the unscheduled, unoptimised program
// TENSOR: sum(x: int64[4, 3], y: int64[4, 3], out {{.*}}: int64[4, 3])
// TENSOR: check     {{.*}}: equal to the interpreter (max abs error 0, max rel error 0)
// TENSOR-NEXT: check     agrees with the interpreter on saturating values, extreme integers
// SEVERAL: error: the file has several functions ('scale', 'sum'): name one with --func
// FUNC: error: the file has no function 'scle', did you mean 'scale'
// EXTENT: sizes     m = 1 (chosen: --shape and --input state others)
// NAME: error: --input alpha=2.5: there is no argument 'alpha'
// OUTPUT: error: --output A=a.npy: there is no output 'A' (known: 'B')
// FILE: error: cannot open '{{.*}}none.npy': no such file or directory
// NPY: error: '{{.*}}weft-run.mlir' is not a .npy file with an array of numbers
// CPU: error: unknown CPU 'znver44'
// KIND: error: unknown target kind 'gpu' (known: 'c', 'cuda', 'llvm', 'metal', 'opencl')
// MISSING: error: cannot open '{{.*}}none.mlir': no such file or directory
// COMMAND: error: unknown command 'rum', did you mean 'run'?
// HELP: run  compile a function and run it on arrays

func.func @scale(%A: memref<?x5xf32>, %factor: f32, %B: memref<?x5xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?x5xf32>
  tir.assume_shape %B[%m] : memref<?x5xf32>
  tir.for %i in %m {
    tir.for %j in 5 {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<5>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x5xf32>
        %b = arith.mulf %a, %factor : f32
        memref.store %b, %B[%vi, %vj] : memref<?x5xf32>
      }
    }
  }
  func.return
}

func.func @sum(%x: tensor<4x3xi64>, %y: tensor<4x3xi64>) -> tensor<4x3xi64> {
  %z = graph.add %x, %y : tensor<4x3xi64>, tensor<4x3xi64> -> tensor<4x3xi64>
  func.return %z : tensor<4x3xi64>
}

sched.func @rows {
  %b = sched.get_block "B" in @scale : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.parallel %i
}
