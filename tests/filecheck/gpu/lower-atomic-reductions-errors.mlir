// RUN: not weft-opt %s --split-input-file -p tir-lower-atomic-reductions 2>&1 | filecheck %s

// CHECK: error: block "S" combines by atomic operations, which are on one element at a time, in the vectorized loop %[[I:\w+]]
func.func @lanes(%A: memref<8x64xf32>, %S: memref<8xf32>) {
  tir.for %z in 64 thread_binding<"blockIdx.z"> { tir.for %i in 8 vectorized {
    tir.block "S" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %z] {
      %a = memref.load %A[%vi, %vk] : memref<8x64xf32>
      %s = memref.load %S[%vi] : memref<8xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%vi] : memref<8xf32>
    }
  } }
  func.return
}

// -----

// CHECK: error: block "S" is reduced over %[[Z:\w+]], which is bound to blockIdx.z, but its parts cannot be combined: block "S" needs the old value of %S for more than to combine into it
func.func @prefix(%A: memref<64xf32>, %S: memref<1xf32>, %P: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %z in 64 thread_binding<"blockIdx.z"> {
    tir.block "S" iters(%vk: reduce<64>) = [%z] {
      %a = memref.load %A[%vk] : memref<64xf32>
      %s = memref.load %S[%c0] : memref<1xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%c0] : memref<1xf32>
      %d = arith.mulf %s, %a : f32
      %e = arith.cmpf ogt, %d, %a : f32
    }
  }
  func.return
}

// -----

// CHECK: error: block "S" is reduced over %[[Z:\w+]], which is bound to blockIdx.z, but its parts cannot be combined: block "S" takes the one or the other of several values at once
func.func @argmax(%A: memref<64xf32>, %S: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %z in 64 thread_binding<"blockIdx.z"> {
    tir.block "S" iters(%vk: reduce<64>) = [%z] attributes {tir.commutative} {
      %a = memref.load %A[%vk] : memref<64xf32>
      %s = memref.load %S[%c0] : memref<1xf32>
      %g = arith.cmpf ogt, %s, %a : f32
      %t = arith.select %g, %s, %a : f32
      memref.store %t, %S[%c0] : memref<1xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: the loop is thread_binding, but iteration (z=0) of block "S" writes S[0]; iteration (z=1) of block "S" writes S[0] at the same time
func.func @mixed(%A: memref<64xf32>, %S: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %z in 64 thread_binding<"blockIdx.z"> {
    tir.block "S" iters(%vk: reduce<64>) = [%z] {
      %a = memref.load %A[%vk] : memref<64xf32>
      %s = memref.load %S[%c0] : memref<1xf32>
      %t = arith.subf %a, %s : f32
      memref.store %t, %S[%c0] : memref<1xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: the loop is thread_binding, but iteration (z=0) of block "S" writes S[0]; iteration (z=1) of block "S" writes S[0] at the same time
func.func @starts(%A: memref<64xf32>, %S: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  tir.for %z in 64 thread_binding<"blockIdx.z"> {
    tir.block "S" iters(%vk: reduce<64>) = [%z] {
      tir.init { memref.store %zero, %S[%c0] : memref<1xf32> }
      %a = memref.load %A[%vk] : memref<64xf32>
      %s = memref.load %S[%c0] : memref<1xf32>
      %t = arith.addf %a, %s : f32
      memref.store %t, %S[%c0] : memref<1xf32>
    }
  }
  func.return
}
