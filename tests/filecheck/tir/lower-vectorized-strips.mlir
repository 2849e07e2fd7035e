// RUN: weft-opt %s -p tir-lower-vectorized | filecheck %s

// CHECK-LABEL: @long
// CHECK:         tir.for %[[I:.*]] in 33554432 {
// CHECK:           %[[AT:.*]] = affine.apply affine_map<(d0) -> ((d0 * 64))> (%[[I]])
// CHECK-NEXT:      vector.store %{{.*}}, %A[%[[AT]]] : memref<2147483659xi8>, vector<64xi8>
// CHECK-NEXT:    }
// CHECK:         %[[REST:.*]] = arith.constant 2147483648 : index
// CHECK:         vector.store %{{.*}}, %A[%[[REST]]] : memref<2147483659xi8>, vector<11xi8>
func.func @long(%A: memref<2147483659xi8>) {
  %z = arith.constant 0 : i8
  tir.for %i in 2147483659 vectorized {
    memref.store %z, %A[%i] : memref<2147483659xi8>
  }
  func.return
}
