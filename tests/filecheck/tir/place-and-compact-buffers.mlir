// RUN: weft-opt %s --split-input-file -p tir-place-buffers,tir-lower-reductions,tir-lower-blocks,tir-compact-buffers | filecheck %s
// RUN: weft-opt %s --split-input-file -p tir-place-buffers | filecheck %s --check-prefix=PLACE

// Each iteration of %i0 writes what it reads: it gets a buffer of its own, of the size that it touches.

func.func @private(%A: memref<16x8xf32>, %C: memref<16x8xf32>) {
  %T = memref.alloc() : memref<16x8xf32, "local">
  tir.for %i0 in 4 parallel {
    tir.for %r in 4 {
      tir.for %j in 8 {
        tir.block "T" iters(%vi: spatial<16>, %vj: spatial<8>) = [%i0 * 4 + %r, %j] {
          %a = memref.load %A[%vi, %vj] : memref<16x8xf32>
          memref.store %a, %T[%vi, %vj] : memref<16x8xf32, "local">
        }
      }
    }
    tir.for %r in 4 {
      tir.for %j in 8 {
        tir.block "C" iters(%vi: spatial<16>, %vj: spatial<8>) = [%i0 * 4 + %r, %j] {
          %t = memref.load %T[%vi, %vj] : memref<16x8xf32, "local">
          memref.store %t, %C[%vi, %vj] : memref<16x8xf32>
        }
      }
    }
  }
  func.return
}
// PLACE-LABEL: @private
// PLACE-NEXT:    tir.for %[[I0:\w+]] in 4 parallel {
// PLACE-NEXT:      %T = memref.alloc() : memref<16x8xf32, "local">
// CHECK-LABEL: @private
// CHECK:         %T = memref.alloc() : memref<4x8xf32, "local">
// CHECK:         memref.store %[[A:\w+]], %T[%[[R:\w+]], %[[J:\w+]]] : memref<4x8xf32, "local">
// CHECK:         %[[T:\w+]] = memref.load %T[%[[R]], %[[J]]] : memref<4x8xf32, "local">

// -----

// An iteration reads what the one before wrote: the buffer stays outside.

func.func @carried(%A: memref<8xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %T = memref.alloc() : memref<9xf32>
  %c0 = arith.constant 0 : index
  memref.store %zero, %T[%c0] : memref<9xf32>
  tir.for %i in 8 {
    tir.block "T" iters(%v: spatial<8>) = [%i] {
      %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%v)
      %a = memref.load %A[%v] : memref<8xf32>
      %t = memref.load %T[%v] : memref<9xf32>
      %s = arith.addf %a, %t : f32
      memref.store %s, %T[%next] : memref<9xf32>
      memref.store %s, %C[%v] : memref<8xf32>
    }
  }
  func.return
}
// PLACE-LABEL: @carried
// PLACE:         memref.alloc
// PLACE:         tir.for
// CHECK-LABEL: @carried
// CHECK:         memref.alloc() : memref<9xf32>
// CHECK:         tir.for

// -----

// The window of a convolution: rows %h .. %h + 2.

func.func @window(%A: memref<10xf32>, %C: memref<8xf32>) {
  %T = memref.alloc() : memref<10xf32>
  tir.for %h in 8 {
    tir.for %p in 3 {
      tir.block "T" iters(%v: spatial<8>, %w: spatial<3>) = [%h, %p] {
        %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%v, %w)
        %a = memref.load %A[%x] : memref<10xf32>
        memref.store %a, %T[%x] : memref<10xf32>
      }
    }
    tir.block "C" iters(%v: spatial<8>) = [%h] {
      %x = affine.apply affine_map<(d0) -> (d0 + 2)> (%v)
      %s = memref.load %T[%v] : memref<10xf32>
      %t = memref.load %T[%x] : memref<10xf32>
      %d = arith.subf %t, %s : f32
      memref.store %d, %C[%v] : memref<8xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @window
// CHECK:         tir.for %[[H:\w+]] in 8 {
// CHECK-NEXT:      %T = memref.alloc() : memref<3xf32>
// CHECK:           memref.store %[[A:\w+]], %T[%[[P:\w+]]] : memref<3xf32>
// CHECK:           memref.load %T[%{{.*}}] : memref<3xf32>
