// RUN: weft-opt %s -p convert-tir-to-scf --split-input-file --validate | filecheck %s

// CHECK-LABEL: func.func @guarded
// CHECK:         "scf.parallel"
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      %[[FIRST:\d+]] = arith.muli %i, %c4 : index
// CHECK-NEXT:      scf.for %r = %c0 to %c4 step %c1 {
// CHECK-NEXT:        %vi = arith.addi %[[FIRST]], %r : index
// CHECK:             %[[IN:\d+]] = arith.cmpi slt, %vi, %{{.*}} : index
// CHECK-NEXT:        scf.if %[[IN]] {
// CHECK-NEXT:          memref.load %A[%vi] : memref<126xf32>
func.func @guarded(%A: memref<126xf32>, %B: memref<126xf32>) {
  tir.for %i in 32 parallel {
    tir.for %r in 4 {
      tir.block "B" iters(%vi: spatial<126>) = [%i * 4 + %r] where [%i * 4 + %r] < [126] {
        %a = memref.load %A[%vi] : memref<126xf32>
        %e = math.exp %a : f32
        memref.store %e, %B[%vi] : memref<126xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK-LABEL: func.func @temp(%A: memref<128x64xf32>, %B: memref<128x64xf32>) {
// CHECK:           %T = memref.alloc() : memref<4x64xf32>
// CHECK:           memref.store %e, %T[%r, %j] : memref<4x64xf32>
// CHECK:           %[[Q:\d+]] = arith.divui %r, %c64 : index
// CHECK:           %vj = arith.remui %r, %c64 : index
// CHECK:           memref.load %T[%[[Q]], %vj] : memref<4x64xf32>
// CHECK:           memref.dealloc %T : memref<4x64xf32>
func.func @temp(%A: memref<128x64xf32>, %B: memref<128x64xf32>) {
  %T = memref.alloc() : memref<128x64xf32, "local">
  tir.for %i in 32 parallel {
    tir.for %r in 4 {
      tir.for %j in 64 vectorized {
      tir.block "T" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i * 4 + %r, %j] {
        %a = memref.load %A[%vi, %vj] : memref<128x64xf32>
        %e = math.exp %a : f32
        memref.store %e, %T[%vi, %vj] : memref<128x64xf32, "local">
      } }
    }
    tir.for %r in 256 {
      tir.block "B" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i * 4 + %r floordiv 64, %r mod 64] {
        %a = memref.load %T[%vi, %vj] : memref<128x64xf32, "local">
        %z = arith.index_cast %vj : index to i32
        %zf = arith.sitofp %z : i32 to f32
        %e = arith.mulf %a, %zf : f32
        memref.store %e, %B[%vi, %vj] : memref<128x64xf32>
      }
    }
  }
  func.return
}

// -----

// An integer division by zero is still 0.
// CHECK-LABEL: func.func @divided
// CHECK:         arith.cmpi eq
// CHECK:         arith.select
func.func @divided(%A: memref<8xi32>, %B: memref<8xi32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      %a = memref.load %A[%vi] : memref<8xi32>
      %b = memref.load %B[%vi] : memref<8xi32>
      %q = arith.divsi %a, %b : i32
      memref.store %q, %B[%vi] : memref<8xi32>
    }
  }
  func.return
}
