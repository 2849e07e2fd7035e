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

// -----

// What an opaque op gives is in a temporary, whatever follows; an opaque op touches no temporary of the pass.
// CHECK-LABEL: func.func @given
// CHECK: %[[T:.*]] = memref.alloc() : memref<f32>
// CHECK: tir.block "c" iters() = [] {
// CHECK-NEXT: %[[C:.*]] = func.call @get() : () -> f32
// CHECK-NEXT: memref.store %[[C]], %[[T]][] : memref<f32>
// CHECK-NEXT: }
// CHECK: tir.block "A" iters() = [] {
// CHECK-NEXT: %[[L:.*]] = memref.load %[[T]][] : memref<f32>
// CHECK-NEXT: memref.store %[[L]], %A[] : memref<f32>
// CHECK-LABEL: func.func @between
// CHECK: tir.block "x" iters(%vi: spatial<4>) = [%i] {
// CHECK: tir.block "func_call"
// CHECK-NEXT: func.call @touch()
// CHECK: tir.block "B" iters(%vi: spatial<4>, %vj: spatial<8>) = [%i, %j] {
func.func private @get() -> f32
func.func private @touch()
func.func @given(%A: memref<f32>) {
  %c = func.call @get() : () -> f32
  memref.store %c, %A[] : memref<f32>
  return
}
func.func @between(%A: memref<4xf32>, %B: memref<4x8xf32>) {
  affine.for %i = 0 to 4 {
    %x = affine.load %A[%i] : memref<4xf32>
    func.call @touch() : () -> ()
    affine.for %j = 0 to 8 {
      affine.store %x, %B[%i, %j] : memref<4x8xf32>
    }
  }
  return
}

// -----

// Effects of a branch that others in it need stay together.
// CHECK-LABEL: func.func @branch
// CHECK: tir.block "A" iters() = [] {
// CHECK-NEXT: scf.if %k {
// CHECK-NEXT: %[[C:.*]] = func.call @get() : () -> f32
// CHECK-NEXT: tir.for %i in 4 {
// CHECK-NEXT: memref.store %[[C]], %A[%i] : memref<4xf32>
func.func private @get() -> f32
func.func @branch(%A: memref<4xf32>, %k: i1) {
  scf.if %k {
    %c = func.call @get() : () -> f32
    affine.for %i = 0 to 4 {
      affine.store %c, %A[%i] : memref<4xf32>
    }
  }
  return
}

// -----

// Assertions of sizes become facts, at the top.
// CHECK-LABEL: func.func @asserted
// CHECK: tir.assume [%c1] < [%d]
// CHECK: tir.assume [%n] == [%d]
// CHECK-NOT: cf.assert
func.func @asserted(%A: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %A, %c0 : memref<?xf32>
  %more = arith.cmpi sgt, %d, %c1 : index
  %same = arith.cmpi eq, %n, %d : index
  %both = arith.andi %more, %same : i1
  cf.assert %both, "sizes"
  %a = memref.load %A[%c1] : memref<?xf32>
  memref.store %a, %A[%c0] : memref<?xf32>
  return
}

// -----

// A byte holds a narrow integer: loads extend it, stores keep its low bits, unsigned operations mask it.
// CHECK-LABEL: func.func @narrow(%A: memref<4xi8> {tir.element = i4}, %B: memref<4xi32>)
// CHECK: %[[L:.*]] = memref.load %A[%vi] : memref<4xi8>
// CHECK: %[[H:.*]] = arith.shli %[[L]]
// CHECK-NEXT: %[[X:.*]] = arith.shrsi %[[H]]
// CHECK: %[[M:.*]] = arith.andi %[[X]]
// CHECK-NEXT: arith.extui %[[M]] : i8 to i32
// CHECK: memref.store {{.*}} : memref<4xi32>
func.func @narrow(%A: memref<4xi4>, %B: memref<4xi32>) {
  affine.for %i = 0 to 4 {
    %a = affine.load %A[%i] : memref<4xi4>
    %w = arith.extui %a : i4 to i32
    affine.store %w, %B[%i] : memref<4xi32>
  }
  return
}
