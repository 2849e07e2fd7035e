// RUN: weft-opt %s --split-input-file -p "tir-run-idle-lanes" | filecheck %s

// Sums of 14 of 16 lanes, which a loop over the active lanes reads.

func.func @sums(%data: memref<9x14xf32>, %out: memref<9x14xf32>) {
  %c14 = arith.constant 14 : index
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 9 {
    %sums = memref.alloc() : memref<14xf32, "local">
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %c14 : index
      scf.if %inside {
        memref.store %zero, %sums[%l] : memref<14xf32, "local">
      }
    }
    tir.for %k in 3 {
      tir.for %l in 16 vectorized {
        %inside = arith.cmpi slt, %l, %c14 : index
        scf.if %inside {
          %a = memref.load %data[%i, %l] : memref<9x14xf32>
          %b = memref.load %sums[%l] : memref<14xf32, "local">
          %s = arith.addf %a, %b : f32
          memref.store %s, %sums[%l] : memref<14xf32, "local">
        }
      }
    }
    tir.for %l in 14 vectorized {
      %s = memref.load %sums[%l] : memref<14xf32, "local">
      memref.store %s, %out[%i, %l] : memref<9x14xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @sums
// CHECK:         memref.alloc() : memref<16xf32, "local">
// CHECK-NEXT:    tir.for %[[L:\w+]] in 16 vectorized {
// CHECK-NOT:       scf.if
// CHECK:           memref.store %zero, %sums[%[[L]]] : memref<16xf32, "local">
// CHECK:         tir.for %{{\w+}} in 3 {
// CHECK:             %[[INSIDE:\w+]] = arith.cmpi slt
// CHECK-NEXT:        %[[A:\w+]] = scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT:          memref.load %data
// CHECK:             } else {
// CHECK:             }
// CHECK-NEXT:        %[[B:\w+]] = memref.load %sums
// CHECK-NEXT:        %[[S:\w+]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:        memref.store %[[S]], %sums

// -----

// Halves that are idle are dropped.

func.func @half(%data: memref<5xf32>, %out: memref<5xf32>) {
  %c5 = arith.constant 5 : index
  tir.for %i in 2 {
    %copy = memref.alloc() : memref<5xf32, "local">
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %c5 : index
      scf.if %inside {
        %a = memref.load %data[%l] : memref<5xf32>
        memref.store %a, %copy[%l] : memref<5xf32, "local">
      }
    }
    tir.for %l in 5 vectorized {
      %s = memref.load %copy[%l] : memref<5xf32, "local">
      memref.store %s, %out[%l] : memref<5xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @half
// CHECK:         memref.alloc() : memref<8xf32, "local">
// CHECK-NEXT:    tir.for %{{\w+}} in 8 vectorized {

// -----

// All lanes of the second loop read elements of idle ones; symbolic numbers of lanes, and global arrays, stay.

func.func @others(%data: memref<14xf32>, %out: memref<16xf32>, %n: index) {
  %c14 = arith.constant 14 : index
  tir.for %i in 2 {
    %read = memref.alloc() : memref<16xf32, "local">
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %c14 : index
      scf.if %inside {
        %a = memref.load %data[%l] : memref<14xf32>
        memref.store %a, %read[%l] : memref<16xf32, "local">
      }
    }
    tir.for %l in 16 vectorized {
      %s = memref.load %read[%l] : memref<16xf32, "local">
      memref.store %s, %out[%l] : memref<16xf32>
    }
  }
  tir.for %i in 2 {
    %symbolic = memref.alloc() : memref<14xf32, "local">
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %n : index
      scf.if %inside {
        %a = memref.load %data[%l] : memref<14xf32>
        memref.store %a, %symbolic[%l] : memref<14xf32, "local">
      }
    }
  }
  tir.for %i in 2 {
    %global = memref.alloc() : memref<14xf32>
    tir.for %l in 16 vectorized {
      %inside = arith.cmpi slt, %l, %c14 : index
      scf.if %inside {
        %a = memref.load %data[%l] : memref<14xf32>
        memref.store %a, %global[%l] : memref<14xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @others
// CHECK-NOT:     -> (f32)
// CHECK:         memref.alloc() : memref<14xf32, "local">
// CHECK-NOT:     -> (f32)
// CHECK:         memref.alloc() : memref<14xf32>
// CHECK-NOT:     -> (f32)
// CHECK:         func.return
