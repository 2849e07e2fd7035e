// RUN: weft-opt %s --split-input-file -p tir-lower-reductions | filecheck %s

// The init leaves the loop of the reduction; loops of spatial iterators inside it are repeated.

func.func @hoisted(%A: memref<8x4xf32>, %Y: memref<8xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %k0 in 2 {
    tir.for %i in 8 {
      tir.for %k1 in 2 {
        tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k0 * 2 + %k1] {
          tir.init {
            memref.store %zero, %Y[%vi] : memref<8xf32>
          }
          %a = memref.load %A[%vi, %vk] : memref<8x4xf32>
          %y = memref.load %Y[%vi] : memref<8xf32>
          %s = arith.addf %y, %a : f32
          memref.store %s, %Y[%vi] : memref<8xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @hoisted
// CHECK:         tir.for %[[I:\w+]] in 8 {
// CHECK-NEXT:      tir.block "Y_init" iters(%[[VI:\w+]]: spatial<8>) = [%[[I]]] {
// CHECK-NEXT:        memref.store %[[ZERO:\w+]], %Y[%[[VI]]] : memref<8xf32>
// CHECK:         tir.for %[[K0:\w+]] in 2 {
// CHECK-NEXT:      tir.for %[[I]] in 8 {
// CHECK-NEXT:        tir.for %[[K1:\w+]] in 2 {
// CHECK-NEXT:          tir.block "Y"
// CHECK-NOT:             tir.init

// -----

// Another block shares the loop of the reduction: the init stays, under a condition.

func.func @guarded(%A: memref<4xf32>, %Y: memref<1xf32>, %Z: memref<4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %k in 4 {
    tir.block "Y" iters(%vo: spatial<1>, %vk: reduce<4>) = [0, %k] {
      tir.init {
        memref.store %zero, %Y[%vo] : memref<1xf32>
      }
      %a = memref.load %A[%vk] : memref<4xf32>
      %y = memref.load %Y[%vo] : memref<1xf32>
      %s = arith.addf %y, %a : f32
      memref.store %s, %Y[%vo] : memref<1xf32>
    }
    tir.block "Z" iters(%v: spatial<4>) = [%k] {
      memref.store %zero, %Z[%v] : memref<4xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @guarded
// CHECK:         tir.for %[[K:\w+]] in 4 {
// CHECK-NEXT:      tir.block "Y" iters(%[[VO:\w+]]: spatial<1>, %[[VK:\w+]]: reduce<4>) = [0, %[[K]]] {
// CHECK-NEXT:        %[[V0:\w+]] = arith.constant 0 : index
// CHECK-NEXT:        %[[V1:\w+]] = arith.cmpi eq, %[[VK]], %[[V0]] : index
// CHECK-NEXT:        scf.if %[[V1]] {
// CHECK-NEXT:          memref.store %[[ZERO:\w+]], %Y[%[[VO]]] : memref<1xf32>

// -----

// A loop that both a spatial and a reduce iterator come from stays around the init, which keeps a guard.

func.func @fused(%A: memref<6x4xf32>, %Y: memref<6xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %f in 24 {
    tir.block "Y" iters(%vi: spatial<6>, %vk: reduce<4>) = [%f floordiv 4, %f mod 4] {
      tir.init {
        memref.store %zero, %Y[%vi] : memref<6xf32>
      }
      %a = memref.load %A[%vi, %vk] : memref<6x4xf32>
      %y = memref.load %Y[%vi] : memref<6xf32>
      %s = arith.addf %y, %a : f32
      memref.store %s, %Y[%vi] : memref<6xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @fused
// CHECK:         tir.block "Y_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[F:\w+]] floordiv 4] where [%[[F]] mod 4] < [1] {
// CHECK:         tir.block "Y" iters(%[[VI]]: spatial<6>, %[[VK:\w+]]: reduce<4>)

// -----

// The init stores to another element than the updates of its instance: it stays where it runs, under its condition.

func.func @elsewhere(%A: memref<6x4xf32>, %Y: memref<7xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %f in 24 {
    tir.block "Y" iters(%vi: spatial<6>, %vk: reduce<4>) = [%f floordiv 4, %f mod 4] {
      tir.init {
        memref.store %zero, %Y[%vi] : memref<7xf32>
      }
      %next = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %a = memref.load %A[%vi, %vk] : memref<6x4xf32>
      %y = memref.load %Y[%next] : memref<7xf32>
      %s = arith.addf %y, %a : f32
      memref.store %s, %Y[%next] : memref<7xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @elsewhere
// CHECK-NOT:     tir.block "Y_init"
// CHECK:         tir.for %[[F:\w+]] in 24 {
// CHECK-NEXT:      tir.block "Y" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<4>) = [%[[F]] floordiv 4, %[[F]] mod 4] {
// CHECK:             %[[FIRST:\w+]] = arith.cmpi eq, %[[VK]], %{{.*}} : index
// CHECK-NEXT:        scf.if %[[FIRST]] {
// CHECK-NEXT:          memref.store %{{.*}}, %Y[%[[VI]]] : memref<7xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[NEXT:\w+]] = affine.apply
// CHECK:             memref.store %{{.*}}, %Y[%[[NEXT]]] : memref<7xf32>

// -----

// One element at a time: the init may leave the loop of the reduction, whatever it stores to.

func.func @row(%A: memref<6x4xf32>, %Y: memref<7xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 6 {
    tir.for %k in 4 {
      tir.block "Y" iters(%vi: spatial<6>, %vk: reduce<4>) = [%i, %k] {
        tir.init {
          memref.store %zero, %Y[%vi] : memref<7xf32>
        }
        %next = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
        %a = memref.load %A[%vi, %vk] : memref<6x4xf32>
        %y = memref.load %Y[%next] : memref<7xf32>
        %s = arith.addf %y, %a : f32
        memref.store %s, %Y[%next] : memref<7xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @row
// CHECK:         tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT:      tir.block "Y_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[I]]] {
// CHECK-NEXT:        memref.store %{{.*}}, %Y[%[[VI]]] : memref<7xf32>
// CHECK:           tir.for %{{.*}} in 4 {
// CHECK-NEXT:        tir.block "Y" iters
// CHECK-NOT:           scf.if
