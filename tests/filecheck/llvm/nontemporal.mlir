// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefixes=CHECK,X86
// RUN: weft-opt %s -t 'llvm-ir{triple="aarch64-unknown-linux-gnu" cpu=neoverse-v1}' | filecheck %s --check-prefixes=CHECK,ARM

// What an x86 stores past the caches is a multiple of 16 bytes; scalars are stored as ever, for LLVM would make no
// vectors of loops of them.
func.func @few(%A: memref<16xf32>, %B: memref<16xf32>) attributes {low.params = [#low.param<"A", memref<16xf32>, read, []>, #low.param<"B", memref<16xf32>, write, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %v = vector.load %A[%c0] : memref<16xf32>, vector<3xf32>
  vector.store %v, %B[%c0] {nontemporal = true} : memref<16xf32>, vector<3xf32>
  %a = memref.load %A[%c0] : memref<16xf32>
  memref.store %a, %B[%c0] {nontemporal = true} : memref<16xf32>
  func.return
}
// CHECK-LABEL: define void @few
// X86:           store <3 x float> %v, ptr %B, align 4{{$}}
// ARM:           store <3 x float> %v, ptr %B, align 4, !nontemporal !0
// CHECK:         store float %a, ptr %B, align 4{{$}}
// CHECK-NEXT:    ret void
