// What integer sets prove wrong of a program is an error where it stands, before any pass runs.
// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: error: block "C": iterator %[[VI:\w+]]: spatial<128> is bound to values in 0..126, but its domain is 0..127: the loops do not cover it
func.func @short(%A: memref<128xf32>, %C: memref<128xf32>) {
  tir.for %i in 127 {
    tir.block "C" iters(%vi: spatial<128>) = [%i] {
      %a = memref.load %A[%vi] : memref<128xf32>
      memref.store %a, %C[%vi] : memref<128xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: block "C": the loops do not cover the domain: instance (vi=1, vj=0) never runs
func.func @diagonal(%A: memref<64x64xf32>, %C: memref<64x64xf32>) {
  tir.for %i in 64 {
    tir.block "C" iters(%vi: spatial<64>, %vj: spatial<64>) = [%i, %i] {
      %a = memref.load %A[%vi, %vj] : memref<64x64xf32>
      memref.store %a, %C[%vi, %vj] : memref<64x64xf32>
    }
  }
  func.return
}

// -----

// A triangle: loops over the whole domain and a condition in the body, not loops whose extents depend on others, nor a
// guard. (The body with an `if` is a valid program.)
// CHECK: error: block "C": the loops do not cover the domain: instance (vi=0, vj=7) never runs; legal: loops over the whole domain, and an `if` in the body of the block
func.func @triangle(%C: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    %e = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
    tir.for %j in %e {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
        memref.store %zero, %C[%vi, %vj] : memref<8x8xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: block "C": the loops do not cover the domain: instance (vi=0, vj=7) never runs; legal: loops over the whole domain, and an `if` in the body of the block
func.func @guarded_triangle(%C: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    tir.for %j in 8 {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] where [%j] < [%i + 1] {
        memref.store %zero, %C[%vi, %vj] : memref<8x8xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: {{^}}  func.func @valid_triangle
func.func @valid_triangle(%C: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    tir.for %j in 8 {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
        %inside = arith.cmpi sle, %vj, %vi : index
        scf.if %inside {
          memref.store %zero, %C[%vi, %vj] : memref<8x8xf32>
        }
      }
    }
  }
  func.return
}

// -----

// CHECK: error: block "C": the loops run an instance twice: in iterations (i=0, k=0, r=0) and (i=0, k=0, r=1)
func.func @twice(%A: memref<64x64xf32>, %C: memref<64xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 64 {
    tir.for %k in 64 {
      tir.for %r in 2 {
        tir.block "C" iters(%vi: spatial<64>, %vk: reduce<64>) = [%i, %k] {
          tir.init {
            memref.store %zero, %C[%vi] : memref<64xf32>
          }
          %a = memref.load %A[%vi, %vk] : memref<64x64xf32>
          %c = memref.load %C[%vi] : memref<64xf32>
          %sum = arith.addf %c, %a : f32
          memref.store %sum, %C[%vi] : memref<64xf32>
        }
      }
    }
  }
  func.return
}

// -----

// CHECK: error: reads A out of bounds: in iteration (i=63) index 0 is 64, the buffer is memref<64xf32>
func.func @outside(%A: memref<64xf32>, %C: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "C" iters(%vi: spatial<64>) = [%i] {
      %n = affine.apply affine_map<(d0) -> (d0 + 1)> (%vi)
      %a = memref.load %A[%n] : memref<64xf32>
      memref.store %a, %C[%vi] : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: block "C": reduce iterator %[[VI:\w+]] is in index 0 of the output C
func.func @reduced(%A: memref<64xf32>, %C: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "C" iters(%vi: reduce<64>) = [%i] {
      %a = memref.load %A[%vi] : memref<64xf32>
      memref.store %a, %C[%vi] : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: reads T[63], which nothing writes
func.func @unwritten(%C: memref<64xf32>) {
  %T = memref.alloc() : memref<64xf32>
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 63 {
    tir.block "T" iters(%vi: spatial<63>) = [%i] {
      memref.store %zero, %T[%vi] : memref<64xf32>
    }
  }
  tir.for %i in 64 {
    tir.block "C" iters(%vi: spatial<64>) = [%i] {
      %t = memref.load %T[%vi] : memref<64xf32>
      memref.store %t, %C[%vi] : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: the loop is parallel, but iteration (i=0) of block "B" writes B[1]; iteration (i=1) of block "B" reads B[1] at the same time
func.func @scan(%A: memref<128xf32>, %B: memref<129xf32>) {
  tir.for %i in 128 parallel {
    tir.block "B" iters(%vi: spatial<128>) = [%i] {
      %n = affine.apply affine_map<(d0) -> (d0 + 1)> (%vi)
      %a = memref.load %A[%vi] : memref<128xf32>
      %b = memref.load %B[%vi] : memref<129xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %B[%n] : memref<129xf32>
    }
  }
  func.return
}

// -----

// A loop value is not known outside of its loop.
// CHECK: error: value %[[I:\w+]] is used outside its scope (it is defined at line {{[0-9]+}}, in a region that does not hold this use)
func.func @outside_scope(%A: memref<8xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 8 {
  }
  tir.block "A" iters(%vi: spatial<8>) = [%i] {
    memref.store %zero, %A[%vi] : memref<8xf32>
  }
  func.return
}

// -----

// Accesses outside of blocks are checked too.
// CHECK: error: writes A out of bounds: in iteration (i=4) index 0 is 4, the buffer is memref<4xf32>
func.func @loop_without_blocks(%A: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  tir.for %i in 2147483648 {
    memref.store %z, %A[%i] : memref<4xf32>
  }
  func.return
}

// -----

// The loops over thread blocks become one.
// CHECK: error: iteration (z=0, j=0) of block "T" writes T[0, 0]; iteration (z=0, p=3) of block "C" reads T[0, 0] in another thread block: these do not wait for each other
func.func @passed_on(%A: memref<2x4xf32>, %C: memref<2x4xf32>) {
  %T = memref.alloc() : memref<2x4xf32>
  %last = arith.constant 3 : index
  tir.for %z in 2 thread_binding<"blockIdx.x"> {
    tir.for %j in 4 thread_binding<"blockIdx.y"> {
      tir.block "T" iters(%v: spatial<2>, %w: spatial<4>) = [%z, %j] {
        %a = memref.load %A[%v, %w] : memref<2x4xf32>
        memref.store %a, %T[%v, %w] : memref<2x4xf32>
      }
    }
    tir.for %p in 4 thread_binding<"blockIdx.y"> {
      tir.block "C" iters(%v: spatial<2>, %w: spatial<4>) = [%z, %p] {
        %x = arith.subi %last, %w : index
        %a = memref.load %T[%v, %x] : memref<2x4xf32>
        memref.store %a, %C[%v, %w] : memref<2x4xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: tir.for: thread axis 'B' is none of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread.x, vthread.y, vthread.z, vthread
func.func @axis(%C: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 thread_binding<"B"> {
    tir.block "C" iters(%vi: spatial<64>) = [%i] {
      memref.store %zero, %C[%vi] : memref<64xf32>
    }
  }
  func.return
}
