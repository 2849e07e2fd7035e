// RUN: weft-opt %s -p plan-memory --split-input-file | filecheck %s

// The result is written over the donated cache: the copy in front of the updates goes.
func.func @step(%cache: memref<?x16xf32> {tir.donated}, %new: memref<?xf32>, %out: memref<?x16xf32>)
    attributes {tir.function, tir.returned = ["out"]} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %cache, %c0 : memref<?x16xf32>
  tir.assume_shape %new[%n] : memref<?xf32>
  tir.assume_shape %out[%n] : memref<?x16xf32>
  func.call @put(%cache, %new, %out) : (memref<?x16xf32>, memref<?xf32>, memref<?x16xf32>) -> ()
  func.return
}
func.func private @put(%cache: memref<?x16xf32>, %new: memref<?xf32>, %out: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %cache, %c0 : memref<?x16xf32>
  tir.assume_shape %new[%n] : memref<?xf32>
  tir.assume_shape %out[%n] : memref<?x16xf32>
  tir.for %i in %n {
    tir.block "put" iters(%vi: spatial<%n>) = [%i] {
      tir.for %j in 16 {
        %old = memref.load %cache[%vi, %j] : memref<?x16xf32>
        memref.store %old, %out[%vi, %j] : memref<?x16xf32>
      }
      %x = memref.load %new[%vi] : memref<?xf32>
      memref.store %x, %out[%vi, %c3] : memref<?x16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @step(%cache: memref<?x16xf32> {tir.donated}, %new: memref<?xf32>)
// CHECK-SAME:    tir.returned = ["cache"]
// CHECK-SAME:    tir.parameter_access = [#low<access readwrite>, #low<access read>]
// CHECK:         func.call @put_in_place(%cache, %new)
// CHECK:       func.func private @put_in_place(%cache: memref<?x16xf32>, %new: memref<?xf32>)
// CHECK-NOT:     memref.load %cache
// CHECK:         memref.store %{{.*}}, %cache[%{{.*}}, %{{.*}}] : memref<?x16xf32>

// -----

// Updates in front of the copy would survive it: nothing is written in place.
func.func @late(%cache: memref<8xf32> {tir.donated}, %out: memref<8xf32>)
    attributes {tir.function, tir.returned = ["out"]} {
  func.call @copy(%cache, %out) : (memref<8xf32>, memref<8xf32>) -> ()
  func.return
}
func.func private @copy(%cache: memref<8xf32>, %out: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  tir.block "put" iters() = [] {
    memref.store %one, %out[%c0] : memref<8xf32>
    tir.for %j in 8 {
      %old = memref.load %cache[%j] : memref<8xf32>
      memref.store %old, %out[%j] : memref<8xf32>
    }
  }
  func.return
}
// CHECK-LABEL: func.func @late
// CHECK:         func.call @copy(%cache, %out)
