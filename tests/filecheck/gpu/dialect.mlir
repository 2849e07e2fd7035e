// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s | xdsl-opt | filecheck %s

// CHECK: func.func @main(%A: memref<?xf32>, %n: index)
func.func @main(%A: memref<?xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %g = arith.ceildivui %n, %c256 : index
  // CHECK: low.launch @kernel blocks(%[[G:\w+]], %[[C1:\w+]], %[[C1]]) threads(%[[C256:\w+]], %[[C1]], %[[C1]]) (%A, %n) : memref<?xf32>, index
  low.launch @kernel blocks(%g, %c1, %c1) threads(%c256, %c1, %c1) (%A, %n) : memref<?xf32>, index
  // CHECK-NEXT: low.launch @idle blocks(%[[C1]], %[[C1]], %[[C1]]) threads(%[[C1]], %[[C1]], %[[C1]]) ()
  low.launch @idle blocks(%c1, %c1, %c1) threads(%c1, %c1, %c1) ()
  func.return
}

func.func @idle() attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  func.return
}

// CHECK: func.func @kernel(%A: memref<?xf32>, %n: index) attributes {low.kernel = #low.kernel<[256, 1, 1], source = "B">, low.arg_access = [#low<access readwrite>, #low<access read>]} {
func.func @kernel(%A: memref<?xf32>, %n: index) attributes {
    low.kernel = #low.kernel<[256, 1, 1], source = "B">, low.arg_access = [#low<access readwrite>, #low<access read>]} {
  // CHECK-NEXT: %[[B:\w+]] = low.thread_id "blockIdx.x" : index
  %b = low.thread_id "blockIdx.x" : index
  // CHECK-NEXT: %[[T:\w+]] = low.thread_id "threadIdx.x" extent 256 : index
  %t = low.thread_id "threadIdx.x" extent 256 : index
  %S = memref.alloca() : memref<1024xf32, "shared">
  // CHECK: low.async_copy %A[%[[B]]] to %S[%[[T]]] bytes 16 : memref<?xf32>, memref<1024xf32, "shared">
  low.async_copy %A[%b] to %S[%t] bytes 16 : memref<?xf32>, memref<1024xf32, "shared">
  // CHECK-NEXT: low.async_commit
  low.async_commit
  // CHECK-NEXT: low.async_wait 1
  low.async_wait 1
  // CHECK-NEXT: low.barrier
  low.barrier
  %v = memref.load %S[%t] : memref<1024xf32, "shared">
  // CHECK: %[[W:\w+]] = low.shuffle down %[[V:\w+]], %[[T]] width 32 : f32
  %w = low.shuffle down %v, %t width 32 : f32
  // CHECK-NEXT: %[[X:\w+]] = low.shuffle xor %[[W]], %[[T]] width 16 : f32
  %x = low.shuffle xor %w, %t width 16 : f32
  // CHECK-NEXT: %[[Y:\w+]] = low.shuffle up %[[X]], %[[T]] width 32 : f32
  %y = low.shuffle up %x, %t width 32 : f32
  // CHECK-NEXT: %[[Z:\w+]] = low.shuffle idx %[[Y]], %[[T]] width 32 : f32
  %z = low.shuffle idx %y, %t width 32 : f32
  // CHECK-NEXT: %[[OLD:\w+]] = low.atomic add %[[Z]], %A[%[[B]]] : f32, memref<?xf32>
  %old = low.atomic add %z, %A[%b] : f32, memref<?xf32>
  // CHECK-NEXT: %[[MOST:\w+]] = low.atomic max %[[Z]], %S[%[[T]]] : f32, memref<1024xf32, "shared">
  %most = low.atomic max %z, %S[%t] : f32, memref<1024xf32, "shared">
  // CHECK: %[[SEEN:\w+]] = low.atomic or %[[FLAGS:\w+]], %F[%[[B]], %[[T]]] : i32, memref<4x8xi32>
  %flags = arith.constant 6 : i32
  %F = memref.alloca() : memref<4x8xi32>
  %seen = low.atomic or %flags, %F[%b, %t] : i32, memref<4x8xi32>
  func.return
}
