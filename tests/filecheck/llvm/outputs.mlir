// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefix=LL
// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell optimized=true}' | filecheck %s --check-prefix=OPT
// RUN: weft-opt %s -t 'llvm-ir{reassociate=true}' | filecheck %s --check-prefix=FAST
// RUN: weft-opt %s -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefix=HASWELL
// RUN: weft-opt %s -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=haswell attr="-fma"}' | filecheck %s --check-prefix=NOFMA
// RUN: weft-opt %s -t 'asm{triple="aarch64-unknown-linux-gnu" cpu="cortex-a72"}' | filecheck %s --check-prefix=ARM
// RUN: not weft-opt %s -t 'asm{cpu=nonsense}' 2>&1 | filecheck %s --check-prefix=CPU

// The four stores and loads of the local buffer are gone: the loops are repeated and their buffer is in registers.
// LL:          alloca [32 x float], align 64
// LL:          fmul contract <8 x float>
// LL:          fadd contract <8 x float>
// OPT-LABEL:   define void @axpy(
// OPT-NOT:     alloca
// OPT-NOT:     br i1
// OPT-COUNT-4: store <8 x float>
// OPT:         ret void
// FAST:        fmul reassoc contract <8 x float>
// HASWELL:     axpy:
// HASWELL-COUNT-4: vfmadd{{.*}}%ymm
// HASWELL:     retq
// NOFMA-LABEL: axpy:
// NOFMA-NOT:   vfmadd
// NOFMA-COUNT-4: vmulps
// NOFMA:       retq
// ARM:         axpy:
// ARM-COUNT-8: fmla
// ARM:         ret
// CPU:         error: unknown CPU 'nonsense'
func.func @axpy(%A: memref<32xf32>, %s: f32, %B: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %local = memref.alloca() : memref<32xf32, "local">
  %vs = vector.broadcast %s : f32 to vector<8xf32>
  scf.for %i = %c0 to %c32 step %c8 {
    %a = vector.load %A[%i] : memref<32xf32>, vector<8xf32>
    vector.store %a, %local[%i] : memref<32xf32, "local">, vector<8xf32>
  } {low.unroll}
  scf.for %i = %c0 to %c32 step %c8 {
    %a = vector.load %local[%i] : memref<32xf32, "local">, vector<8xf32>
    %p = arith.mulf %a, %vs : vector<8xf32>
    %b = vector.load %B[%i] : memref<32xf32>, vector<8xf32>
    %r = arith.addf %p, %b : vector<8xf32>
    vector.store %r, %B[%i] : memref<32xf32>, vector<8xf32>
  } {low.unroll}
  func.return
}
