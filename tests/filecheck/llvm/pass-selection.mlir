// RUN: weft-opt %s --split-input-file -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s

// What schedules leave to LLVM's optimiser stands at the end of a module, unless it is everything.

// Vectors, and each access moves with its loop. The unrolled loop is part of the loop around it, and the local buffer,
// whose indices are constants then, becomes registers.
// CHECK-LABEL: define void @tile(
// CHECK:       ![[node:[0-9]+]] = !{!"nothing"}
// CHECK-NEXT:  !weft.pass_selection = !{![[node]]}
func.func @tile(%A: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %sum = memref.alloca() : memref<32xf32>
  scf.for %k = %c0 to %c32 step %c1 {
    %row = arith.muli %k, %c32 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %lane = arith.muli %i, %c8 : index
      %at = arith.addi %row, %lane : index
      %a = vector.load %A[%at] : memref<1024xf32>, vector<8xf32>
      %s = vector.load %sum[%lane] : memref<32xf32>, vector<8xf32>
      %t = arith.addf %a, %s : vector<8xf32>
      vector.store %t, %sum[%lane] : memref<32xf32>, vector<8xf32>
    } {low.unroll}
  }
  func.return
}

// -----

// The same where the loop over the tile stays: its sums stay in memory, at the same places in each iteration of %k, and
// LLVM may take several of these at once. (A matmul with sums in memory ran 1.4 times as long without.)
// CHECK-LABEL: define void @rolled(
// CHECK-NOT:   weft.pass_selection
func.func @rolled(%A: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %sum = memref.alloca() : memref<32xf32>
  scf.for %k = %c0 to %c32 step %c1 {
    %row = arith.muli %k, %c32 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %lane = arith.muli %i, %c8 : index
      %at = arith.addi %row, %lane : index
      %a = vector.load %A[%at] : memref<1024xf32>, vector<8xf32>
      %s = vector.load %sum[%lane] : memref<32xf32>, vector<8xf32>
      %t = arith.addf %a, %s : vector<8xf32>
      vector.store %t, %sum[%lane] : memref<32xf32>, vector<8xf32>
    }
  }
  func.return
}

// -----

// An access that is the same in each iteration, of a buffer that is no local one.
// CHECK-LABEL: define void @repeated(
// CHECK:       !{!"invariants"}
func.func @repeated(%A: memref<1024xf32>, %S: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1024 = arith.constant 1024 : index
  scf.for %k = %c0 to %c1024 step %c8 {
    %a = vector.load %A[%k] : memref<1024xf32>, vector<8xf32>
    %s = vector.load %S[%c0] : memref<8xf32>, vector<8xf32>
    %t = arith.addf %a, %s : vector<8xf32>
    vector.store %t, %S[%c0] : memref<8xf32>, vector<8xf32>
  }
  func.return
}

// -----

// The same for a local buffer that is no register, for it is passed on,
// CHECK-LABEL: define void @escapes(
// CHECK:       !{!"invariants"}
func.func @use(%S: memref<8xf32>) {
  func.return
}
func.func @escapes(%A: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1024 = arith.constant 1024 : index
  %sum = memref.alloca() : memref<8xf32>
  scf.for %k = %c0 to %c1024 step %c8 {
    %a = vector.load %A[%k] : memref<1024xf32>, vector<8xf32>
    vector.store %a, %sum[%c0] : memref<8xf32>, vector<8xf32>
  }
  func.call @use(%sum) : (memref<8xf32>) -> ()
  func.return
}

// -----

// or because one of its indices is known at run time only.
// CHECK-LABEL: define void @picks(
// CHECK:       !{!"invariants"}
func.func @picks(%A: memref<1024xf32>, %B: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1024 = arith.constant 1024 : index
  %sum = memref.alloca() : memref<8xf32>
  scf.for %k = %c0 to %c1024 step %c8 {
    %a = vector.load %A[%k] : memref<1024xf32>, vector<8xf32>
    vector.store %a, %sum[%c0] : memref<8xf32>, vector<8xf32>
    %lane = arith.remui %k, %c8 : index
    %s = memref.load %sum[%lane] : memref<8xf32>
    memref.store %s, %B[%lane] : memref<8xf32>
  }
  func.return
}

// -----

// Scalar loops that copy or fill consecutive elements become calls.
// CHECK-LABEL: define void @copies(
// CHECK:       !{!"invariants"}
func.func @copies(%A: memref<1024xf32>, %B: memref<1024xf32>, %zero: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %row = arith.muli %i, %c32 : index
    scf.for %j = %c0 to %c32 step %c1 {
      %at = arith.addi %j, %row : index
      %a = memref.load %A[%at] : memref<1024xf32>
      memref.store %a, %B[%at] : memref<1024xf32>
    }
    scf.for %j = %c0 to %c32 step %c1 {
      %at = arith.addi %row, %j : index
      memref.store %zero, %A[%at] : memref<1024xf32>
    }
  }
  func.return
}

// -----

// All others may become vectors: those that compute,
// CHECK-LABEL: define void @computes(
// CHECK-NOT:   weft.pass_selection
func.func @computes(%A: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %A[%i] : memref<1024xf32>
  }
  func.return
}

// -----

// store what they computed,
// CHECK-LABEL: define void @counts(
// CHECK-NOT:   weft.pass_selection
func.func @counts(%A: memref<1024xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    memref.store %i, %A[%i] : memref<1024xindex>
  }
  func.return
}

// -----

// copy from or to places that lie apart,
// CHECK-LABEL: define void @strided(
// CHECK-NOT:   weft.pass_selection
func.func @strided(%A: memref<1024xf32>, %B: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %at = arith.muli %i, %c32 : index
    %a = memref.load %A[%at] : memref<1024xf32>
    memref.store %a, %B[%i] : memref<1024xf32>
  }
  func.return
}

// -----

// CHECK-LABEL: define void @apart(
// CHECK-NOT:   weft.pass_selection
func.func @apart(%A: memref<1024xf32>, %B: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %at = arith.addi %i, %i : index
    %a = memref.load %A[%i] : memref<1024xf32>
    memref.store %a, %B[%at] : memref<1024xf32>
  }
  func.return
}

// -----

// decide,
// CHECK-LABEL: define void @decides(
// CHECK-NOT:   weft.pass_selection
func.func @decides(%A: memref<1024xf32>, %zero: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %less = arith.cmpi slt, %i, %n : index
    scf.if %less {
      memref.store %zero, %A[%i] : memref<1024xf32>
    }
  }
  func.return
}

// -----

// or are unrolled: their elements may become vectors.
// CHECK-LABEL: define void @unrolled(
// CHECK-NOT:   weft.pass_selection
func.func @unrolled(%A: memref<1024xf32>, %zero: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %zero, %A[%i] : memref<1024xf32>
  } {low.unroll}
  func.return
}

// -----

// A transposition whose inner loop is unrolled is as it was scheduled.
// CHECK-LABEL: define void @turned(
// CHECK:       !{!"invariants"}
func.func @turned(%A: memref<64xf32>, %B: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %row = arith.muli %j, %c8 : index
      %from = arith.addi %row, %i : index
      %column = arith.muli %i, %c8 : index
      %to = arith.addi %column, %j : index
      %a = memref.load %A[%from] : memref<64xf32>
      memref.store %a, %B[%to] : memref<64xf32>
    } {low.unroll}
  }
  func.return
}

// -----

// One scalar loop in a module is enough.
// CHECK-LABEL: define void @second(
// CHECK-NOT:   weft.pass_selection
func.func @first(%A: memref<8xf32>) {
  func.return
}
func.func @second(%A: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %A[%i] : memref<1024xf32>
  }
  func.return
}

// -----

// Floats are added in order, into a register: no pass of LLVM makes that faster.
// CHECK-LABEL: define void @ordered(
// CHECK:       ![[node:[0-9]+]] = !{!"nothing"}
func.func @ordered(%A: memref<1024xf32>, %C: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %sum = memref.alloca() : memref<1xf32>
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %s = memref.load %sum[%c0] : memref<1xf32>
    %t = arith.addf %s, %a : f32
    memref.store %t, %sum[%c0] : memref<1xf32>
  }
  %r = memref.load %sum[%c0] : memref<1xf32>
  memref.store %r, %C[%c0] : memref<1xf32>
  func.return
}

// -----

// Into memory of the caller: LLVM can keep the sum in a register.
// CHECK-LABEL: define void @ordered_in_memory(
// CHECK:       ![[node:[0-9]+]] = !{!"invariants"}
func.func @ordered_in_memory(%A: memref<1024xf32>, %C: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %s = memref.load %C[%c0] : memref<1xf32>
    %t = arith.addf %s, %a : f32
    memref.store %t, %C[%c0] : memref<1xf32>
  }
  func.return
}

// -----

// In any order: LLVM can use vectors. So it can where each iteration has a sum of its own (below).
// CHECK-LABEL: define void @any_order(
// CHECK-NOT:   weft.pass_selection
func.func @any_order(%A: memref<1024xf32>, %C: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %s = memref.load %C[%c0] : memref<1xf32>
    %t = arith.addf %s, %a fastmath<reassoc> : f32
    memref.store %t, %C[%c0] : memref<1xf32>
  }
  func.return
}

// -----

// CHECK-LABEL: define void @many_sums(
// CHECK-NOT:   weft.pass_selection
func.func @many_sums(%A: memref<1024xf32>, %C: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %c0 to %c1024 step %c1 {
    %a = memref.load %A[%i] : memref<1024xf32>
    %s = memref.load %C[%i] : memref<1024xf32>
    %t = arith.addf %s, %a : f32
    memref.store %t, %C[%i] : memref<1024xf32>
  }
  func.return
}
