// RUN: weft-opt %s -p 'tir-storage-align{block=T index=0 axis=-2 factor=32 offset=8}' | filecheck %s
// RUN: weft-opt %s -p 'tir-storage-align{block=T index=0 axis=-2 factor=32 offset=8},tir-storage-align{block=T index=0 axis=0 factor=100 offset=0},lower-tir-to-low' | filecheck %s --check-prefix=LOW

func.func @transpose(%A: memref<4x20x16xf32>, %C: memref<16x20x4xf32>) {
  %T = memref.alloc() : memref<4x20x16xf32>
  tir.for %i in 4 { tir.for %j in 20 { tir.for %k in 16 {
    tir.block "T" iters(%vi: spatial<4>, %vj: spatial<20>, %vk: spatial<16>) = [%i, %j, %k] {
      %a = memref.load %A[%vi, %vj, %vk] : memref<4x20x16xf32>
      memref.store %a, %T[%vi, %vj, %vk] : memref<4x20x16xf32>
    } } } }
  tir.for %k in 16 { tir.for %j in 20 { tir.for %i in 4 {
    tir.block "C" iters(%vk: spatial<16>, %vj: spatial<20>, %vi: spatial<4>) = [%k, %j, %i] {
      %a = memref.load %T[%vi, %vj, %vk] : memref<4x20x16xf32>
      memref.store %a, %C[%vk, %vj, %vi] : memref<16x20x4xf32>
    } } } }
  func.return
}
// CHECK: %T = memref.alloc() {tir.storage_align = {{\[\[}}1 : i64, 32 : i64, 8 : i64]]} : memref<4x20x16xf32>

// Rows 40 elements apart, planes of 20 such rows at a multiple of 100.
// LOW-DAG:   %c800 = arith.constant 800 : index
// LOW-DAG:   %c40 = arith.constant 40 : index
// LOW:       %T = memref.alloca() {alignment = 64 : i64} : memref<3200xf32, "local">
// LOW:       arith.muli %[[I:\w+]], %[[C800:\w+]] : index
// LOW:       arith.muli %[[J:\w+]], %[[C40:\w+]] : index
