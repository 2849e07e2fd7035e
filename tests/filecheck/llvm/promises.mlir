// RUN: weft-opt %s --split-input-file -p 'lower-tir-to-low' -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s

// Nothing is promised: parameters may overlap, products and sums are not fused. Each op may allow it for itself.
// CHECK:      define void @nothing(ptr captures(none) readonly align 4 dereferenceable(32) %A, ptr captures(none) writeonly align 4 dereferenceable(32) %C) nounwind {
// CHECK:        %p = fmul float %x, %x
// CHECK-NEXT:   %s = fadd float %p, %x
// CHECK-NEXT:   %t = fadd contract float %s, %x
func.func @nothing(%A: memref<8xf32>, %C: memref<8xf32>) attributes {tir.promises = []} {
  tir.for %i in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %x = memref.load %A[%v] : memref<8xf32>
      %p = arith.mulf %x, %x : f32
      %s = arith.addf %p, %x : f32
      %t = arith.addf %s, %x fastmath<contract> : f32
      memref.store %t, %C[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// An argument that overlaps no other; with one other left, that overlaps none either.
// CHECK:      define void @argument(ptr noalias captures(none) readonly align 4 dereferenceable(32) %A, ptr noalias captures(none) writeonly align 4 dereferenceable(32) %C) nounwind {
// CHECK:        fmul contract <8 x float>
func.func @argument(%A: memref<8xf32> {llvm.noalias}, %C: memref<8xf32>) attributes {tir.promises = ["contract"]} {
  tir.for %i in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %x = memref.load %A[%v] : memref<8xf32>
      %p = arith.mulf %x, %x : f32
      memref.store %p, %C[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// Symbols come behind the arguments, whose attributes stay beside them. The body of a parallel loop promises no more.
// CHECK:      define internal void @several.parallel.body(
// CHECK-SAME:   ptr captures(none) readonly align 4 %A, ptr captures(none) readonly align 4 %B
// CHECK-SAME:   ptr noalias captures(none) writeonly align 4 %D
// CHECK:        fmul float
// CHECK:      define void @several(ptr captures(none) readonly align 4 %A, ptr captures(none) readonly align 4 %B, ptr noalias captures(none) writeonly align 4 %D, i64 %n) nounwind {
func.func @several(%A: memref<?xf32>, %B: memref<?xf32>, %D: memref<?xf32> {llvm.noalias}) attributes {tir.promises = []} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume_shape %D[%n] : memref<?xf32>
  tir.for %i in %n parallel {
    tir.block "D" iters(%v: spatial<%n>) = [%i] {
      %x = memref.load %A[%v] : memref<?xf32>
      %y = memref.load %B[%v] : memref<?xf32>
      %p = arith.mulf %x, %y : f32
      memref.store %p, %D[%v] : memref<?xf32>
    }
  }
  func.return
}
