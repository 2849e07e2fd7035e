// RUN: weft-opt %s --split-input-file -p 'raise-affine-to-tir{promises=noalias,contract,reassoc}' | filecheck %s

// A fill and a product: one nest, with an init.

// CHECK-LABEL: func.func @product
// CHECK-SAME: tir.promises = ["contract", "noalias", "reassoc"]
// CHECK: tir.for %i in 24 {
// CHECK-NEXT: tir.for %j in 32 {
// CHECK-NEXT: tir.for %k in 40 {
// CHECK-NEXT: tir.block "C" iters(%vi: spatial<24>, %vj: spatial<32>, %vk: reduce<40>) = [%i, %j, %k] {
// CHECK-NEXT: tir.init {
// CHECK-NEXT: memref.store %zero, %C[%vi, %vj] : memref<24x32xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %a = memref.load %A[%vi, %vk]
// CHECK-NOT: affine.
func.func @product(%A: memref<24x40xf32>, %B: memref<40x32xf32>, %C: memref<24x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to 32 {
      affine.store %zero, %C[%i, %j] : memref<24x32xf32>
    }
  }
  affine.for %i = 0 to 24 {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 40 {
        %a = affine.load %A[%i, %k] : memref<24x40xf32>
        %b = affine.load %B[%k, %j] : memref<40x32xf32>
        %c = affine.load %C[%i, %j] : memref<24x32xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<24x32xf32>
      }
    }
  }
  return
}

// -----

// Loops get extents; the least of several bounds becomes a condition; views are what they view.

// CHECK-LABEL: func.func @bounds
// CHECK: tir.for %t in 3 {
// CHECK-NEXT: tir.for %i in 4 {
// CHECK-NEXT: tir.block "B" iters(%vt: spatial<3>, %vi: spatial<4>) = [%t, %i] {
// CHECK: arith.cmpi slt
// CHECK: scf.if
// CHECK: memref.load %A[%{{.*}}] : memref<40xf32>
func.func @bounds(%A: memref<40xf32>, %B: memref<10xf32>) {
  %odd = memref.subview %A[1] [20] [2] : memref<40xf32> to memref<20xf32, strided<[2], offset: 1>>
  affine.for %t = 0 to 10 step 4 {
    affine.for %i = affine_map<(d0) -> (d0)>(%t) to min affine_map<(d0) -> (d0 + 4, 10)>(%t) {
      %a = affine.load %odd[%i] : memref<20xf32, strided<[2], offset: 1>>
      affine.store %a, %B[%i] : memref<10xf32>
    }
  }
  return
}

// -----

// A scalar that iterations pass on is a reduction; what data bounds is one block.

// CHECK-LABEL: func.func @opaque
// CHECK: %sum = memref.alloc() : memref<5xf32>
// CHECK: tir.for %i in 5 {
// CHECK-NEXT: tir.block "sum" iters(%vi: spatial<5>) = [%i] {
// CHECK-NEXT: memref.store %zero, %sum[%vi]
// CHECK: tir.for %i in 5 {
// CHECK-NEXT: tir.block "sum_1" iters(%vi: spatial<5>) = [%i] {
// CHECK: %n = memref.load %counts[%vi]
// CHECK: tir.for %j in %n {
// CHECK: tir.block "y" iters(%vi: spatial<5>) = [%i] {
func.func @opaque(%counts: memref<5xindex>, %x: memref<5x9xf32>, %y: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 5 {
    %n = affine.load %counts[%i] : memref<5xindex>
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<5x9xf32>
      %s = arith.addf %acc, %v : f32
      scf.yield %s : f32
    }
    affine.store %sum, %y[%i] : memref<5xf32>
  }
  return
}
