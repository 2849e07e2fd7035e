// RUN: weft-opt %s --split-input-file -p tir-insert-barriers | filecheck %s

// Between a write and a read by another thread, and between iterations that use the memory again.
// CHECK-LABEL: func.func @rotate(
// CHECK: tir.for %[[K:\w+]] in 8 {
// CHECK: memref.store %[[A:\w+]], %S[%[[T:\w+]]]
// CHECK-NOT: memref.load
// CHECK: low.barrier
// CHECK-NEXT: memref.load %S
// CHECK-NEXT: memref.store
// CHECK-NEXT: low.barrier
// CHECK-NEXT: }
// CHECK-NOT: low.barrier
// CHECK: func.return
func.func @rotate(%A: memref<8x64xf32>, %B: memref<8x64xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<64xf32, "shared">
      tir.for %k in 8 {
        %next = affine.apply affine_map<(d0) -> ((d0 + 1) mod 64)>(%t)
        %a = memref.load %A[%k, %t] : memref<8x64xf32>
        memref.store %a, %S[%t] : memref<64xf32, "shared">
        %s = memref.load %S[%next] : memref<64xf32, "shared">
        memref.store %s, %B[%k, %t] : memref<8x64xf32>
      }
    }
  }
  func.return
}

// -----

// A thread that reads what itself wrote waits for nobody; nor does one that reads another half of the memory.
// CHECK-LABEL: func.func @own(
// CHECK-NOT: low.barrier
// CHECK: func.return
func.func @own(%A: memref<64xf32>, %B: memref<64xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<128xf32, "shared">
      %high = affine.apply affine_map<(d0) -> (d0 + 64)>(%t)
      %a = memref.load %A[%t] : memref<64xf32>
      memref.store %a, %S[%t] : memref<128xf32, "shared">
      memref.store %a, %S[%high] : memref<128xf32, "shared">
      %s = memref.load %S[%t] : memref<128xf32, "shared">
      memref.store %s, %B[%t] : memref<64xf32>
    }
  }
  func.return
}

// -----

// A barrier stands as far out as the accesses allow: before the loop and the condition, not in them. Threads of device
// memory are kept in order, too.
// CHECK-LABEL: func.func @outside(
// CHECK: memref.store %[[A:\w+]], %B[%[[T:\w+]]]
// CHECK-NEXT: low.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: tir.for %[[K:\w+]] in 4 {
// CHECK-NOT: low.barrier
// CHECK: func.return
func.func @outside(%A: memref<4xf32>, %B: memref<4xf32>, %C: memref<4x4xf32>) attributes {tir.threads_in_step} {
  %c2 = arith.constant 2 : index
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "B, C"} {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      %inside = arith.cmpi slt, %t, %c2 : index
      %a = memref.load %A[%t] : memref<4xf32>
      memref.store %a, %B[%t] : memref<4xf32>
      scf.if %inside {
        tir.for %k in 4 {
          %s = memref.load %B[%k] : memref<4xf32>
          memref.store %s, %C[%t, %k] : memref<4x4xf32>
        }
      }
    }
  }
  func.return
}

// -----

// Under a condition that is the same for all threads of a block, barriers may stand.
// CHECK-LABEL: func.func @uniform(
// CHECK: scf.if
// CHECK: low.barrier
// CHECK-NEXT: memref.load %S
// CHECK: } else {
// CHECK-NOT: low.barrier
// CHECK: func.return
func.func @uniform(%A: memref<16xf32>, %B: memref<16xf32>) attributes {tir.threads_in_step} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  tir.for %b in 2 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<8xf32, "shared">
      %first = arith.cmpi slt, %b, %c1 : index
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%b, %t)
      %other = affine.apply affine_map<(d0) -> (7 - d0)>(%t)
      scf.if %first {
        %a = memref.load %A[%at] : memref<16xf32>
        memref.store %a, %S[%t] : memref<8xf32, "shared">
        %s = memref.load %S[%other] : memref<8xf32, "shared">
        memref.store %s, %B[%at] : memref<16xf32>
      } else {
        memref.store %zero, %B[%at] : memref<16xf32>
      }
    }
  }
  func.return
}
