// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=skylake-avx512 -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=skylake-avx512 -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432" only_trace=true}' | filecheck %s --check-prefix=TRACE
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=skylake-avx512 -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432" only_trace=true},apply-schedule' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s --check-prefix=AVX2
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=cuda}' | filecheck %s --check-prefix=KERNELS

// A chain of elementwise blocks: one nest, lanes of a register, outer iterations on threads.

func.func @add_relu(%A: memref<65536x8xf32>, %B: memref<65536x8xf32>, %D: memref<65536x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<65536x8xf32>
  tir.for %i in 65536 {
    tir.for %j in 8 {
      tir.block "C" iters(%vi: spatial<65536>, %vj: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<65536x8xf32>
        %b = memref.load %B[%vi, %vj] : memref<65536x8xf32>
        %c = arith.addf %a, %b : f32
        memref.store %c, %C[%vi, %vj] : memref<65536x8xf32>
      }
    }
  }
  tir.for %i in 65536 {
    tir.for %j in 8 {
      tir.block "D" iters(%vi: spatial<65536>, %vj: spatial<8>) = [%i, %j] {
        %c = memref.load %C[%vi, %vj] : memref<65536x8xf32>
        %d = arith.maximumf %c, %zero : f32
        memref.store %d, %D[%vi, %vj] : memref<65536x8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @add_relu
// CHECK-NOT:     memref.alloc
// CHECK:         tir.for %[[I_J_FUSED0:\w+]] in 32768 parallel {
// CHECK-NEXT:      tir.for %[[I_J_FUSED1:\w+]] in 16 vectorized {
// CHECK-NEXT:        tir.block "D"
// CHECK-NOT:     tir.block

// TRACE:         tir.for %[[J:\w+]] in 8 {
// TRACE:         sched.func @default_add_relu {
// TRACE-NEXT:      %[[C:\w+]] = sched.get_block "C" in @add_relu : block
// TRACE-NEXT:      sched.compute_inline %[[C]]
// TRACE:           sched.fuse
// TRACE:           sched.vectorize
// TRACE:           sched.parallel

// AVX2-LABEL:    @add_relu
// AVX2:          tir.for %[[I_J_FUSED0:\w+]] in 65536 {
// AVX2-NEXT:       tir.for %[[I_J_FUSED1:\w+]] in 8 vectorized {

// KERNELS-LABEL: @add_relu
// KERNELS-NOT:   vectorized

// -----

// A reduction of rows, then what is computed from its results: one loop over the rows.

func.func @mean(%A: memref<4096x512xf32>, %O: memref<4096xf32>) {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 512.0 : f32
  %S = memref.alloc() : memref<4096xf32>
  tir.for %i in 4096 {
    tir.for %k in 512 {
      tir.block "S" iters(%vi: spatial<4096>, %vk: reduce<512>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<4096xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<4096x512xf32>
        %s = memref.load %S[%vi] : memref<4096xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<4096xf32>
      }
    }
  }
  tir.for %i in 4096 {
    tir.block "O" iters(%vi: spatial<4096>) = [%i] {
      %s = memref.load %S[%vi] : memref<4096xf32>
      %o = arith.divf %s, %count : f32
      memref.store %o, %O[%vi] : memref<4096xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @mean
// CHECK:         tir.for %[[I_M:\w+]] in 4096 parallel {
// CHECK-NEXT:      tir.block "S_init"
// CHECK:           tir.for %[[K0:\w+]] in 8 {
// CHECK-NEXT:        tir.for %[[K1:\w+]] in 64 vectorized attributes {reassociate = true} {
// CHECK-NEXT:          tir.block "S_update"
// CHECK:           tir.block "O"

// AVX2-LABEL:    @mean
// AVX2:          tir.for %[[I_M:\w+]] in 4096 {
// AVX2:            tir.for %[[K1:\w+]] in 32 vectorized attributes {reassociate = true} {

// -----

// Elements divided by the sum of their row: some rows at a time, for the end of a sum is a wait.

func.func @shares(%A: memref<4096x512xf32>, %O: memref<4096x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %S = memref.alloc() : memref<4096xf32>
  tir.for %i in 4096 {
    tir.for %k in 512 {
      tir.block "S" iters(%vi: spatial<4096>, %vk: reduce<512>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<4096xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<4096x512xf32>
        %s = memref.load %S[%vi] : memref<4096xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<4096xf32>
      }
    }
  }
  tir.for %i in 4096 {
    tir.for %j in 512 {
      tir.block "O" iters(%vi: spatial<4096>, %vj: spatial<512>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<4096x512xf32>
        %s = memref.load %S[%vi] : memref<4096xf32>
        %o = arith.divf %a, %s : f32
        memref.store %o, %O[%vi, %vj] : memref<4096x512xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @shares
// CHECK:         tir.for %[[I0_M:\w+]] in 2048 parallel {
// CHECK-NEXT:      tir.for %[[I1:\w+]] in 2 {
// CHECK-NEXT:        tir.block "S_init"
// CHECK:             tir.block "S_update"
// CHECK:           tir.for %[[I1]] in 2 {
// CHECK-NEXT:        tir.for %[[J0:\w+]]
// CHECK:               tir.block "O"

// -----

// Columns: neighbouring results in lanes; as there are many rows, a piece of them all stays in cache.

func.func @columns(%A: memref<512x256xi32>, %S: memref<256xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %j in 256 {
    tir.for %k in 512 {
      tir.block "S" iters(%vj: spatial<256>, %vk: reduce<512>) = [%j, %k] {
        tir.init {
          memref.store %zero, %S[%vj] : memref<256xi32>
        }
        %a = memref.load %A[%vk, %vj] : memref<512x256xi32>
        %s = memref.load %S[%vj] : memref<256xi32>
        %t = arith.addi %s, %a : i32
        memref.store %t, %S[%vj] : memref<256xi32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @columns
// CHECK:         tir.for %[[J0:\w+]] in 2 parallel {
// CHECK-NEXT:      tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:          tir.block "S_init"
// CHECK:           tir.for %[[K0:\w+]] in 128 {
// CHECK-NEXT:        tir.for %[[J1:\w+]] in 8 {
// CHECK-NEXT:          tir.for %[[K1:\w+]] in 4 unrolled {
// CHECK-NEXT:            tir.for %[[J2:\w+]] in 16 vectorized {
// CHECK-NEXT:              tir.block "S_update"

// -----

// Few steps: the results of some registers at a time.

func.func @windows(%A: memref<64x258xf32>, %M: memref<64x256xf32>) {
  %least = arith.constant 0xff800000 : f32
  tir.for %i in 64 {
    tir.for %j in 256 {
      tir.for %k in 3 {
        tir.block "M" iters(%vi: spatial<64>, %vj: spatial<256>, %vk: reduce<3>) = [%i, %j, %k] {
          tir.init {
            memref.store %least, %M[%vi, %vj] : memref<64x256xf32>
          }
          %at = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%vj, %vk)
          %a = memref.load %A[%vi, %at] : memref<64x258xf32>
          %m = memref.load %M[%vi, %vj] : memref<64x256xf32>
          %t = arith.maximumf %m, %a : f32
          memref.store %t, %M[%vi, %vj] : memref<64x256xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @windows
// CHECK:         tir.for %[[I:\w+]] in 64 {{(parallel )?}}{
// CHECK-NEXT:      tir.for %[[J0:\w+]] in 4 {
// CHECK:             tir.block "M_init"
// CHECK:           tir.for %[[K:\w+]] in 3 unrolled {
// CHECK-NEXT:        tir.for %[[J1:\w+]] in 64 vectorized {
// CHECK-NEXT:          tir.block "M_update"

// -----

// What is written runs across what is read: tiles.

func.func @transpose(%A: memref<512x512xf64>, %T: memref<512x512xf64>) {
  tir.for %i in 512 {
    tir.for %j in 512 {
      tir.block "T" iters(%vi: spatial<512>, %vj: spatial<512>) = [%i, %j] {
        %a = memref.load %A[%vj, %vi] : memref<512x512xf64>
        memref.store %a, %T[%vi, %vj] : memref<512x512xf64>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @transpose
// CHECK:         tir.for %[[I0:\w+]] in 64 parallel {
// CHECK-NEXT:      tir.for %[[J0:\w+]] in 64 {
// CHECK-NEXT:        tir.for %[[I1:\w+]] in 8 {
// CHECK-NEXT:          tir.for %[[J1:\w+]] in 8 vectorized {

// -----

// A sum of everything: a part for each of a few iterations of a parallel loop, then the sum of the parts.

func.func @total(%A: memref<1024x1024xf32>, %S: memref<1xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %z in 1 {
    tir.for %i in 1024 {
      tir.for %k in 1024 {
        tir.block "S" iters(%vz: spatial<1>, %vi: reduce<1024>, %vk: reduce<1024>) = [%z, %i, %k] {
          tir.init {
            memref.store %zero, %S[%vz] : memref<1xf32>
          }
          %a = memref.load %A[%vi, %vk] : memref<1024x1024xf32>
          %s = memref.load %S[%vz] : memref<1xf32>
          %t = arith.addf %s, %a : f32
          memref.store %t, %S[%vz] : memref<1xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @total
// CHECK:         tir.for %{{.*}} in 8 parallel {
// CHECK:           tir.for %{{.*}} in 64 vectorized attributes {reassociate = true} {
// CHECK:         tir.block "S" iters(%{{.*}}: spatial<1>, %{{.*}}: reduce<8>)

// AVX2-LABEL:    @total
// AVX2-NOT:      S_rf

// -----

// What loops within a block goes to threads.

func.func @running(%A: memref<512x4096xf32>, %B: memref<512x4096xf32>, %T: memref<512xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 512 {
    tir.block "B" iters(%v: spatial<512>) = [%i] {
      memref.store %zero, %T[%v] : memref<512xf32>
      tir.for %k in 4096 {
        %a = memref.load %A[%v, %k] : memref<512x4096xf32>
        %t = memref.load %T[%v] : memref<512xf32>
        %s = arith.addf %t, %a : f32
        memref.store %s, %T[%v] : memref<512xf32>
        memref.store %s, %B[%v, %k] : memref<512x4096xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @running
// CHECK:         tir.for %{{.*}} in 512 parallel {
// CHECK-NEXT:      tir.block "B"

// -----

// A concatenation: a loop for each array, inside of the rows that both have.

func.func @concatenation(%A: memref<8x100x64xf32>, %B: memref<8x28x64xf32>, %C: memref<8x128x64xf32>) {
  %c100 = arith.constant 100 : index
  tir.for %i in 8 {
    tir.for %j in 128 {
      tir.for %k in 64 {
        tir.block "C" iters(%vi: spatial<8>, %vj: spatial<128>, %vk: spatial<64>) = [%i, %j, %k] {
          %0 = arith.cmpi slt, %vj, %c100 : index
          %1 = scf.if %0 -> (f32) {
            %a = memref.load %A[%vi, %vj, %vk] : memref<8x100x64xf32>
            scf.yield %a : f32
          } else {
            %2 = affine.apply affine_map<(d0) -> ((d0 + -100))> (%vj)
            %b = memref.load %B[%vi, %2, %vk] : memref<8x28x64xf32>
            scf.yield %b : f32
          }
          memref.store %1, %C[%vi, %vj, %vk] : memref<8x128x64xf32>
        }
      }
    }
  }
  func.return
}
// TRACE-LABEL: sched.func @default_concatenation {
// TRACE:         sched.loop_partition %{{.*}} {factors = [100, 28]} : loop, loop
// TRACE-COUNT-2: sched.vectorize
// CHECK-LABEL: @concatenation
// CHECK:         tir.for %{{.*}} in 400 {
// CHECK-NEXT:      tir.for %{{.*}} in 16 vectorized {
// CHECK:         tir.for %{{.*}} in 112 {
// CHECK-NEXT:      tir.for %{{.*}} in 16 vectorized {

// -----

// What somebody scheduled stays as it is; so does what is too small, and has no lanes, to be worth a step.

func.func @scheduled(%A: memref<1024xf32>, %B: memref<1024xf32>) {
  tir.for %i in 1024 unrolled {
    tir.block "B" iters(%vi: spatial<1024>) = [%i] {
      %a = memref.load %A[%vi] : memref<1024xf32>
      memref.store %a, %B[%vi] : memref<1024xf32>
    }
  }
  func.return
}
func.func @one(%A: memref<1xf32>, %B: memref<1xf32>) {
  tir.for %i in 1 {
    tir.block "B" iters(%vi: spatial<1>) = [%i] {
      %a = memref.load %A[%vi] : memref<1xf32>
      memref.store %a, %B[%vi] : memref<1xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @scheduled
// CHECK-NEXT:    tir.for %[[I:\w+]] in 1024 unrolled {
// CHECK-NEXT:      tir.block "B"
// CHECK-LABEL: @one
// CHECK-NEXT:    tir.for %[[I:\w+]] in 1 {
// CHECK-NEXT:      tir.block "B"
// TRACE-NOT:     sched.func @default_scheduled
// TRACE-NOT:     sched.func @default_one

// -----

// Indices that repeat every 3 iterations: the iterations of a period are unrolled. A period of 9 is longer than the limit.

func.func @repeated(%A: memref<8x64xf32>, %B: memref<8x96xf32>, %C: memref<8x288xf32>) {
  tir.for %i in 8 {
    tir.for %j in 96 {
      tir.block "B" iters(%vi: spatial<8>, %vj: spatial<96>) = [%i, %j] {
        %p = affine.apply affine_map<(d0) -> ((d0 * 2) floordiv 3)> (%vj)
        %a = memref.load %A[%vi, %p] : memref<8x64xf32>
        memref.store %a, %B[%vi, %vj] : memref<8x96xf32>
      }
    }
  }
  tir.for %i in 8 {
    tir.for %j in 288 {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<288>) = [%i, %j] {
        %p = affine.apply affine_map<(d0) -> ((d0 * 2) floordiv 9)> (%vj)
        %a = memref.load %A[%vi, %p] : memref<8x64xf32>
        memref.store %a, %C[%vi, %vj] : memref<8x288xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @repeated
// CHECK:           tir.for %{{\w+}} in 32 {
// CHECK-NEXT:        tir.for %{{\w+}} in 3 unrolled {
// CHECK-NEXT:          tir.block "B"
// CHECK:           tir.for %{{\w+}} in 288 {
// CHECK-NEXT:        tir.block "C"
