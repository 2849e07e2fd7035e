// RUN: weft-opt %s --split-input-file -p "low-choose-threads{target=\"llvm -mcpu=haswell\"}" | filecheck %s

// The work of loops inside, whose bounds are computed before the loop; of a condition the larger branch.

func.func @rows(%A: memref<?xf32>, %m: index, %n: index) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  low.parallel_for %i in %m {
    %end = arith.addi %n, %c1 : index
    scf.for %j = %c0 to %end step %c1 {
      memref.store %zero, %A[%j] : memref<?xf32>
    }
    %some = arith.cmpi slt, %i, %n : index
    scf.if %some {
      memref.store %zero, %A[%i] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK:         %[[END:.*]] = arith.addi %n, %c1 : index
// CHECK:         arith.muli %{{.*}}, %m : index
// CHECK:         arith.muli %{{.*}}, %[[END]] : index
// CHECK:         %[[PAYS:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK:         low.parallel_for %{{\w+}} in %m if %[[PAYS]] {

// -----

// Known work was decided about when the loop was made parallel; bounds that data decide are not known before.

func.func @others(%A: memref<?xf32>, %B: memref<?xindex>, %m: index) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  low.parallel_for %i in %c8 {
    memref.store %zero, %A[%i] : memref<?xf32>
  }
  low.parallel_for %i in %m {
    %end = memref.load %B[%i] : memref<?xindex>
    scf.for %j = %c0 to %end step %c1 {
      memref.store %zero, %A[%j] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @others
// CHECK:         low.parallel_for %{{\w+}} in %c8 {
// CHECK:         low.parallel_for %{{\w+}} in %m {
