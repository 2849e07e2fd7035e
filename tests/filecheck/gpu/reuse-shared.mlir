// RUN: weft-opt %s --split-input-file -p tir-reuse-shared | filecheck %s

// T is first written when all threads have read S: it lies where S lay. U is used together with T, and V has no room
// before it that it may use.
// CHECK-LABEL: func.func @turns(
// CHECK: %arena = memref.alloca() {alignment = 16 : i64} : memref<96xf32, "shared">
// CHECK-NOT: memref.alloca
// CHECK: memref.store %[[A:\w+]], %arena[%[[T:\w+]]] : memref<96xf32, "shared">
// CHECK: %[[S:\w+]] = memref.load %arena[%[[U:\w+]]] : memref<96xf32, "shared">
// CHECK: memref.store %[[S]], %arena[%[[T]]] : memref<96xf32, "shared">
// CHECK: [[at:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 32))> (%[[T]])
// CHECK-NEXT: memref.store %[[S]], %arena[[[at]]] : memref<96xf32, "shared">
func.func @turns(%A: memref<64xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> { tir.for %t in 32 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() {alignment = 16 : i64} : memref<96xf32, "shared">
    %T = memref.alloca() {alignment = 16 : i64} : memref<32xf32, "shared">
    %U = memref.alloca() {alignment = 16 : i64} : memref<32xf32, "shared">
    %u = affine.apply affine_map<(d0) -> (31 - d0)> (%t)
    %a = memref.load %A[%t] : memref<64xf32>
    memref.store %a, %S[%t] : memref<96xf32, "shared">
    low.barrier
    %s = memref.load %S[%u] : memref<96xf32, "shared">
    low.barrier
    memref.store %s, %T[%t] : memref<32xf32, "shared">
    memref.store %s, %U[%t] : memref<32xf32, "shared">
    low.barrier
    %x = memref.load %T[%u] : memref<32xf32, "shared">
    %y = memref.load %U[%u] : memref<32xf32, "shared">
    %z = arith.addf %x, %y : f32
    memref.store %z, %A[%u] : memref<64xf32>
  } }
  func.return
}

// -----

// No barrier between them; another type; together in a loop; a loop that may not run between them: all stay apart.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT: %arena
// CHECK: %S = memref.alloca()
// CHECK: %T = memref.alloca()
// CHECK: %I = memref.alloca()
// CHECK: %L = memref.alloca()
// CHECK: %M = memref.alloca()
// CHECK-NOT: %arena
// CHECK: func.return
func.func @apart(%A: memref<64xf32>, %J: memref<64xi32>, %n: index) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> { tir.for %t in 32 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() : memref<32xf32, "shared">
    %T = memref.alloca() : memref<32xf32, "shared">
    %I = memref.alloca() : memref<32xi32, "shared">
    %L = memref.alloca() : memref<32xf64, "shared">
    %M = memref.alloca() : memref<32xf64, "shared">
    %a = memref.load %A[%t] : memref<64xf32>
    %i = memref.load %J[%t] : memref<64xi32>
    %d = arith.extf %a : f32 to f64
    memref.store %a, %S[%t] : memref<32xf32, "shared">
    tir.for %k in %n { low.barrier }
    memref.store %a, %T[%t] : memref<32xf32, "shared">
    low.barrier
    memref.store %i, %I[%t] : memref<32xi32, "shared">
    tir.for %k in 4 {
      memref.store %d, %L[%t] : memref<32xf64, "shared">
      low.barrier
      memref.store %d, %M[%t] : memref<32xf64, "shared">
      low.barrier
    }
  } }
  func.return
}

// -----

// The barrier at the end of an iteration stands behind all of a loop; so does the one at its start before it. In a
// condition each branch is asked: here both say yes.
// CHECK-LABEL: func.func @loops(
// CHECK: %arena = memref.alloca() {alignment = 16 : i64} : memref<32xf32, "shared">
// CHECK-NOT: memref.alloca
// CHECK: func.return
func.func @loops(%A: memref<64xf32>, %n: index, %c: i1) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> { tir.for %t in 32 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() : memref<32xf32, "shared">
    %T = memref.alloca() : memref<32xf32, "shared">
    %U = memref.alloca() : memref<32xf32, "shared">
    %a = memref.load %A[%t] : memref<64xf32>
    scf.if %c {
      tir.for %k in %n { memref.store %a, %S[%t] : memref<32xf32, "shared">  low.barrier }
      memref.store %a, %T[%t] : memref<32xf32, "shared">
    } else {
      memref.store %a, %S[%t] : memref<32xf32, "shared">
      tir.for %k in 2 { low.barrier }
      memref.store %a, %T[%t] : memref<32xf32, "shared">
    }
    tir.for %k in %n { low.barrier  memref.store %a, %U[%t] : memref<32xf32, "shared"> }
  } }
  func.return
}

// -----

// One branch says no; and a use behind a loop is not followed by the barrier of its iterations.
// CHECK-LABEL: func.func @branches(
// CHECK-NOT: %arena
func.func @branches(%A: memref<64xf32>, %n: index, %c: i1) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> { tir.for %t in 32 thread_binding<"threadIdx.x"> {
    %S = memref.alloca() : memref<32xf32, "shared">
    %T = memref.alloca() : memref<32xf32, "shared">
    %U = memref.alloca() : memref<32xi32, "shared">
    %V = memref.alloca() : memref<32xi32, "shared">
    %a = memref.load %A[%t] : memref<64xf32>
    %i = arith.fptosi %a : f32 to i32
    scf.if %c {
      memref.store %a, %S[%t] : memref<32xf32, "shared">
      low.barrier
      memref.store %a, %T[%t] : memref<32xf32, "shared">
    } else {
      memref.store %a, %T[%t] : memref<32xf32, "shared">
      memref.store %a, %S[%t] : memref<32xf32, "shared">
    }
    memref.store %i, %U[%t] : memref<32xi32, "shared">
    tir.for %k in %n { memref.store %i, %U[%t] : memref<32xi32, "shared">  low.barrier }
    memref.store %i, %V[%t] : memref<32xi32, "shared">
  } }
  func.return
}
