// RUN: weft-opt %s --split-input-file -p tir-lower-blocks | filecheck %s --check-prefix=BLOCKS
// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized | filecheck %s --check-prefix=LANES
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low -t 'llvm-ir{triple="x86_64-unknown-linux-gnu"}' | filecheck %s --check-prefix=LLVM
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low -t 'llvm-ir{triple="aarch64-unknown-linux-gnu"}' | filecheck %s --check-prefix=ARM
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=znver4}' | filecheck %s --check-prefix=ASM
// RUN: weft-opt %s --split-input-file -p 'lower-tir-to-low{target=c}' -t c | filecheck %s --check-prefix=SOURCE

// B goes past the caches, C does not; what is left over of the lanes neither.
func.func @two(%A: memref<99xf32>, %B: memref<99xf32>, %C: memref<99xf32>) {
  tir.for %i in 7 parallel {
    tir.for %j in 16 vectorized {
      tir.block "B" iters(%vi: spatial<99>) = [%i * 16 + %j] where [%i * 16 + %j] < [99] attributes {nontemporal = [0]} {
        %a = memref.load %A[%vi] : memref<99xf32>
        memref.store %a, %B[%vi] : memref<99xf32>
        memref.store %a, %C[%vi] : memref<99xf32>
      }
    }
  }
  func.return
}
// BLOCKS-LABEL: @two
// BLOCKS:         memref.store %a, %B[{{.*}}] {nontemporal = true} : memref<99xf32>
// BLOCKS:         memref.store %a, %C[%vi] : memref<99xf32>

// LLVM-LABEL: define {{.*}}@two.parallel.body
// LLVM:         [[AT:%.*]] = getelementptr inbounds nuw float, ptr %B
// LLVM-NEXT:    [[NUMBER:%.*]] = ptrtoint ptr [[AT]] to i64
// LLVM-NEXT:    [[BEYOND:%.*]] = and i64 [[NUMBER]], 15
// LLVM-NEXT:    [[ALIGNED:%.*]] = icmp eq i64 [[BEYOND]], 0
// LLVM-NEXT:    br i1 [[ALIGNED]], label %past.caches, label %through.caches
// LLVM:       past.caches:
// LLVM-NEXT:    store <16 x float> %a, ptr [[AT]], align 16, !nontemporal !0
// LLVM-NEXT:    br label %stored
// LLVM:       through.caches:
// LLVM-NEXT:    store <16 x float> %a, ptr [[AT]], align 4
// LLVM-NEXT:    br label %stored
// LLVM:       stored:
// LLVM:         store <16 x float> %a, ptr {{%.*}}, align 4
// LLVM:         call void @llvm.x86.sse.sfence()
// LLVM-NEXT:    ret void
// LLVM-LABEL: define void @two
// LLVM-NOT:     sfence
// LLVM:         !0 = !{i32 1}

// Elsewhere the address does not matter, and what one thread stored is seen when another is told.
// ARM-LABEL:  define {{.*}}@two.parallel.body
// ARM-NOT:      ptrtoint
// ARM:          store <16 x float> %a, ptr {{%.*}}, align 4, !nontemporal !0
// ARM:          store <16 x float> %a, ptr {{%.*}}, align 4{{$}}
// ARM-NOT:      fence
// ARM:          ret void

// ASM-LABEL: two.parallel.body:
// ASM-COUNT-4: vmovntps %xmm
// ASM:       sfence
// ASM:       retq

// SOURCE-LABEL: void two
// SOURCE-NOT:     nontemporal

// -----

// A buffer in registers stays there; scalars and scattered lanes are stored as ever.
func.func @registers(%A: memref<16x16xf64>, %C: memref<16x16xf64>, %s: f64) {
  %T = memref.alloc() : memref<16xf64, "local">
  tir.for %i in 16 {
    tir.for %j in 16 vectorized {
      tir.block "T" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] attributes {nontemporal = [0]} {
        %a = memref.load %A[%vi, %vj] : memref<16x16xf64>
        memref.store %a, %T[%j] : memref<16xf64, "local">
      }
    }
    tir.for %j in 16 vectorized {
      tir.block "C" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] attributes {nontemporal = [0]} {
        %t = memref.load %T[%j] : memref<16xf64, "local">
        memref.store %t, %C[%vj, %vi] : memref<16x16xf64>
      }
    }
  }
  tir.for %i in 3 {
    tir.block "S" iters(%vi: spatial<3>) = [%i] attributes {nontemporal = [0]} {
      memref.store %s, %C[%vi, %vi] : memref<16x16xf64>
    }
  }
  func.return
}
// BLOCKS-LABEL: @registers
// BLOCKS:         memref.store %a, %T[%j] : memref<16xf64, "local">
// BLOCKS:         memref.store %t, %C[{{.*}}] {nontemporal = true} : memref<16x16xf64>
// BLOCKS:         memref.store %s, %C[{{.*}}] {nontemporal = true} : memref<16x16xf64>

// LANES-LABEL: @registers
// LANES:         vector.store {{%.*}}, %T[%1] : memref<16xf64, "local">, vector<16xf64>
// LANES:         low.scatter

// LLVM-LABEL: define {{.*}}@registers
// LLVM-NOT:     nontemporal
// LLVM-NOT:     sfence
// LLVM:         ret void
