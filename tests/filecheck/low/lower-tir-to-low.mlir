// RUN: weft-opt %s -p 'lower-tir-to-low{target="llvm -mtriple=x86_64-unknown-linux-gnu"}' | filecheck %s
// RUN: weft-opt %s -p 'lower-tir-to-low{target="llvm -mtriple=x86_64-unknown-linux-gnu"},verify-level{level=low}' | filecheck %s
// RUN: not weft-opt %s -p 'lower-tir-to-low{target=lvm}' 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not weft-opt %s -p 'verify-level{level=low}' 2>&1 | filecheck %s --check-prefix=LEVEL
// RUN: not weft-opt %s -p 'verify-level{level=lo}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: weft-opt %s -p 'lower-tir-to-low{target="llvm -mtriple=x86_64-unknown-linux-gnu"}' --validate | filecheck %s

// TARGET: error: lower-tir-to-low: unknown target 'lvm', did you mean 'llvm'?
// LEVEL: {{.*}}lower-tir-to-low.mlir:[[# @LINE + 6]]:3: error: tir.for is not allowed at level 'low'
// LEVEL-NEXT: tir.for %[[I:\w+]] in 16
// NAME: error: unknown level 'lo', did you mean 'low'?

func.func @relu(%A: memref<16xf32>, %B: memref<16xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 16 vectorized {
    tir.block "B" iters(%v: spatial<16>) = [%i] {
      %a = memref.load %A[%v] : memref<16xf32>
      %b = arith.maximumf %a, %zero : f32
      memref.store %b, %B[%v] : memref<16xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @relu : block
}
// CHECK-LABEL: @relu
// CHECK-NEXT:    %[[none:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-NEXT:    %[[ZERO:\w+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[at:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[A:\w+]] = vector.load %A[%[[at]]] : memref<16xf32>, vector<16xf32>
// CHECK-NEXT:    %[[zeros:.*]] = vector.broadcast %[[ZERO]] : f32 to vector<16xf32>
// CHECK-NEXT:    %[[greater:.*]] = low.cmpf ogt, %[[zeros]], %[[A]] : vector<16xf32>
// CHECK-NEXT:    %[[chosen:.*]] = low.select %[[greater]], %[[zeros]], %[[A]] : vector<16xf32>
// CHECK-NEXT:    %[[B:\w+]] = arith.addf %[[chosen]], %[[none]] {low.ordered} : vector<16xf32>
// CHECK-NEXT:    vector.store %[[B]], %B[%[[at]]] : memref<16xf32>, vector<16xf32>
// CHECK-NEXT:    func.return
// CHECK-NOT:     sched.func

// A function is named to be lowered though it holds no op of the level.
// RUN: weft-opt %s -p 'lower-tir-to-low{func=first}' | filecheck %s --check-prefix=NAMED
// RUN: not weft-opt %s -p 'lower-tir-to-low{func=frist}' 2>&1 | filecheck %s --check-prefix=UNNAMED
func.func @first(%A: memref<2x2xf32>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0, %c0] : memref<2x2xf32>
  memref.store %a, %A[%c0, %c0] : memref<2x2xf32>
  func.return
}
// NAMED: func.func @first(%A: memref<4xf32>) attributes {low.params
// UNNAMED: error: lower-tir-to-low: no function @frist over buffers, did you mean 'first'?
