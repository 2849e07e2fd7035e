// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=cascadelake -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s --check-prefixes=CHECK,VNNI
// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=cascadelake -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432" only_trace=true}' | filecheck %s --check-prefix=TRACE
// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=apple-m1 -num-threads=1"}' | filecheck %s --check-prefixes=CHECK,NEON
// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s --check-prefixes=CHECK,AVX2
// RUN: weft-opt %s -p 'default-schedule{target="c -num-threads=1"}' | filecheck %s --check-prefixes=CHECK,PLAIN

func.func @product(%A: memref<48x64xi8>, %B: memref<64x128xi8>, %C: memref<48x128xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %i in 48 { tir.for %j in 128 { tir.for %k in 64 {
    tir.block "C" iters(%vi: spatial<48>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<48x128xi32> }
      %a = memref.load %A[%vi, %vk] : memref<48x64xi8>
      %x = arith.extsi %a : i8 to i32
      %b = memref.load %B[%vk, %vj] : memref<64x128xi8>
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %c = memref.load %C[%vi, %vj] : memref<48x128xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%vi, %vj] : memref<48x128xi32>
    } } } }
  func.return
}
// One signed and one unsigned factor: the right one is recoded, in its panel; sums of rows come first.
// CHECK-LABEL: @product
// VNNI:          %C_sums = memref.alloc() : memref<48xi32>
// VNNI:          memref.alloc() : memref<2x16x64x4xi8>
// VNNI:          tir.block "B_global" {{.*}}
// VNNI:            arith.xori
// VNNI:          low.tile_interleave {{.*}} {lanes = 16 : i64, rows = 4 : i64}
// VNNI:          tir.for %{{.*}} in 16 {
// VNNI-NEXT:       tir.for %{{.*}} in 6 unrolled {
// VNNI-NEXT:         tir.for %{{.*}} in 4 unrolled {
// VNNI:                low.tile_dot %{{.*}} as si8, %{{.*}} as ui8 onto %{{.*}} {lanes = 16 : i64, steps = 4 : i64}
// VNNI:          tir.block "C_global"
// VNNI:            memref.store %{{.*}}, %C[

// Both signed, as they are.
// NEON-NOT:      C_sums
// NEON:          low.tile_interleave {{.*}} {lanes = 4 : i64, rows = 4 : i64}
// NEON:          low.tile_dot %{{.*}} as si8, %{{.*}} as si8 onto %{{.*}} {lanes = 4 : i64, steps = 4 : i64}

// Halves, by twos.
// AVX2-NOT:      C_sums
// AVX2:          memref.alloc() : memref<{{.*}}x32x16x2xi16>
// AVX2:          low.tile_interleave {{.*}} {lanes = 8 : i64, rows = 2 : i64}
// AVX2:          low.tile_dot %{{.*}} as si16, %{{.*}} as si16 onto %{{.*}} {lanes = 8 : i64, steps = 2 : i64}

// No such instructions: lanes of 32 bits.
// PLAIN-NOT:     low.tile_dot

// TRACE:         sched.func @default_product
// TRACE:           sched.recode %{{.*}} {index = 1, encoding = "unsigned"} : block, block, block
// TRACE:           sched.transform_layout
// TRACE:           sched.tensorize %{{.*}} {intrinsic = "interleave_16x4_8"}
// TRACE:           sched.tensorize %{{.*}} {intrinsic = "dot_16x4_s8u8"}
