// RUN: weft-opt %s -p low-forward-stores | filecheck %s

// A loaded element that was just stored is the stored value; then the first store is stored over.
// CHECK-LABEL: @add
// CHECK:       %x = memref.load %A[%i]
// CHECK-NEXT:  %[[SUM:\w+]] = arith.addf %[[ZERO:\w+]], %x : f32
// CHECK-NEXT:  memref.store %[[SUM]], %B[%i]
// CHECK-NEXT:  func.return
func.func @add(%A: memref<8xf32>, %B: memref<8xf32>) attributes {low.kernel = #low.kernel<[8, 1, 1], source = "B">} {
  %zero = arith.constant 0.0 : f32
  %i = low.thread_id "threadIdx.x" : index
  memref.store %zero, %B[%i] : memref<8xf32>
  %x = memref.load %A[%i] : memref<8xf32>
  %b = memref.load %B[%i] : memref<8xf32>
  %sum = arith.addf %b, %x : f32
  memref.store %sum, %B[%i] : memref<8xf32>
  func.return
}

// Another element may be the same one; a barrier lets other threads write.
// CHECK-LABEL: @keeps
// CHECK:       memref.store %x, %S[%i]
// CHECK-NEXT:  memref.store %x, %S[%j]
// CHECK-NEXT:  %[[A:\w+]] = memref.load %S[%i]
// CHECK-NEXT:  memref.store %[[A]], %S[%j]
// CHECK-NEXT:  low.barrier
// CHECK-NEXT:  %[[B:\w+]] = memref.load %S[%j]
// CHECK-NEXT:  memref.store %[[B]], %A[%i]
func.func @keeps(%A: memref<8xf32>, %j: index) attributes {low.kernel = #low.kernel<[8, 1, 1], source = "S">} {
  %S = memref.alloca() : memref<8xf32, "shared">
  %i = low.thread_id "threadIdx.x" : index
  %x = memref.load %A[%i] : memref<8xf32>
  memref.store %x, %S[%i] : memref<8xf32, "shared">
  memref.store %x, %S[%j] : memref<8xf32, "shared">
  %a = memref.load %S[%i] : memref<8xf32, "shared">
  memref.store %a, %S[%j] : memref<8xf32, "shared">
  low.barrier
  %b = memref.load %S[%j] : memref<8xf32, "shared">
  memref.store %b, %A[%i] : memref<8xf32>
  func.return
}

// CPU functions are left to LLVM.
// CHECK-LABEL: @host
// CHECK:       memref.load %A
func.func @host(%A: memref<8xf32>, %i: index, %x: f32) {
  memref.store %x, %A[%i] : memref<8xf32>
  %a = memref.load %A[%i] : memref<8xf32>
  memref.store %a, %A[%i] : memref<8xf32>
  func.return
}

// Names of one memory: what was stored by one name may be overwritten by another one.
// CHECK-LABEL: @views
// CHECK:       memref.store %x, %B[%i]
// CHECK-NEXT:  memref.store %y, %A[%i]
// CHECK-NEXT:  %[[B:\w+]] = memref.load %B[%i]
// CHECK-NEXT:  memref.store %[[B]], %A[%j]
func.func @views(%A: memref<8xf32>, %x: f32, %y: f32, %i: index, %j: index) attributes {low.kernel = #low.kernel<[8, 1, 1], source = "V">} {
  %B = "memref.cast"(%A) : (memref<8xf32>) -> memref<?xf32>
  memref.store %x, %B[%i] : memref<?xf32>
  memref.store %y, %A[%i] : memref<8xf32>
  %b = memref.load %B[%i] : memref<?xf32>
  memref.store %b, %A[%j] : memref<8xf32>
  func.return
}
