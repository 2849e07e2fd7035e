// RUN: weft-opt %s -p convert-tir-to-affine --split-input-file --verify-diagnostics --validate | filecheck %s

// Guards are integer sets.
// CHECK-LABEL: func.func @guarded
// CHECK-NEXT:    "affine.parallel"() {{.*}}upperBoundsMap = affine_map<() -> (32)>
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      affine.for %r = 0 to 4 {
// CHECK-NEXT:        "affine.if"(%i, %r) <{condition = affine_set<(d0, d1) : ((((d0 * -4) + (d1 * -1)) + 125) >= 0)>}> ({
// CHECK-NEXT:          %a = affine.load %A[%i * 4 + %r] : memref<126xf32>
// CHECK-NEXT:          %e = math.exp %a : f32
// CHECK-NEXT:          affine.store %e, %B[%i * 4 + %r] : memref<126xf32>
// CHECK-NEXT:          affine.yield
func.func @guarded(%A: memref<126xf32>, %B: memref<126xf32>) {
  tir.for %i in 32 parallel {
    tir.for %r in 4 {
      tir.block "B" iters(%vi: spatial<126>) = [%i * 4 + %r] where [%i * 4 + %r] < [126] {
        %a = memref.load %A[%vi] : memref<126xf32>
        %e = math.exp %a : f32
        memref.store %e, %B[%vi] : memref<126xf32>
      }
    }
  }
  func.return
}

// -----

// Temporaries are in the loops that they are private to. Memory spaces, facts and attributes of weft are dropped.
// CHECK-LABEL: func.func @temp(%A: memref<128x64xf32>, %B: memref<128x64xf32>) {
// CHECK:         ^bb0(%i: index):
// CHECK-NEXT:      %T = memref.alloc() : memref<4x64xf32>
// CHECK-NEXT:      affine.for %r = 0 to 4 {
// CHECK-NEXT:        affine.for %j = 0 to 64 {
// CHECK-NEXT:          affine.load %A[%i * 4 + %r, %j] : memref<128x64xf32>
// CHECK-NEXT:          math.exp
// CHECK-NEXT:          affine.store %e, %T[%r, %j] : memref<4x64xf32>
// CHECK:           affine.for %r = 0 to 256 {
// CHECK:             affine.load %T[%r floordiv 64, %r mod 64] : memref<4x64xf32>
// CHECK:             affine.store %{{.*}}, %B[%i * 4 + %r floordiv 64, %r mod 64] : memref<128x64xf32>
// CHECK:           memref.dealloc %T : memref<4x64xf32>
func.func @temp(%A: memref<128x64xf32>, %B: memref<128x64xf32>) attributes {tir.promises = ["noalias"]} {
  %T = memref.alloc() : memref<128x64xf32, "local">
  tir.for %i in 32 parallel {
    tir.for %r in 4 {
      tir.for %j in 64 vectorized {
      tir.block "T" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i * 4 + %r, %j] {
        %a = memref.load %A[%vi, %vj] : memref<128x64xf32>
        %e = math.exp %a : f32
        memref.store %e, %T[%vi, %vj] : memref<128x64xf32, "local">
      } }
    }
    tir.for %r in 256 {
      tir.block "B" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i * 4 + %r floordiv 64, %r mod 64] {
        %a = memref.load %T[%vi, %vj] : memref<128x64xf32, "local">
        %z = arith.index_cast %vj : index to i32
        %zf = arith.sitofp %z : i32 to f32
        %e = arith.mulf %a, %zf : f32
        memref.store %e, %B[%vi, %vj] : memref<128x64xf32>
      }
    }
  }
  func.return
}

// -----

// Symbols; an index that is data.
// CHECK-LABEL: func.func @sym
// CHECK:         "affine.parallel"(%n) {{.*}}upperBoundsMap = affine_map<()[s0] -> (s0)>
// CHECK:           affine.store %zero, %B[%i] : memref<?xf32>
// CHECK-NEXT:      affine.for %k = 0 to %m {
// CHECK-NEXT:        %at = affine.load %P[%i] : memref<?xindex>
// CHECK-NEXT:        %a = affine.load %A[%i, %k] : memref<?x?xf32>
// CHECK-NEXT:        %x = memref.load %A[%at, %k] : memref<?x?xf32>
func.func @sym(%A: memref<?x?xf32>, %B: memref<?xf32>, %P: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?x?xf32>
  %m = memref.dim %A, %c1 : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume_shape %P[%n] : memref<?xindex>
  tir.for %i in %n parallel {
    tir.for %k in %m {
      tir.block "B" iters(%vi: spatial<%n>, %vk: reduce<%m>) = [%i, %k] {
        tir.init { memref.store %zero, %B[%vi] : memref<?xf32> }
        %at = memref.load %P[%vi] : memref<?xindex>
        %a = memref.load %A[%vi, %vk] : memref<?x?xf32>
        // expected-remark@+1 {{convert-tir-to-affine: index 0 is not affine: it stays memref.load}}
        %x = memref.load %A[%at, %vk] : memref<?x?xf32>
        %b = memref.load %B[%vi] : memref<?xf32>
        %e = arith.addf %a, %b : f32
        %f = arith.addf %e, %x : f32
        memref.store %f, %B[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}

// -----

// Least of several extents, products of symbols, conditions of which a part is affine, an extent that is data.
// CHECK-LABEL: func.func @least
// CHECK:         %p = arith.muli %n, %m : index
// CHECK:         affine.for %i = 0 to %n {
// CHECK-NEXT:      affine.for %j = 0 to min affine_map<(d0)[s0, s1] -> ((s0 + (d0 * -1)), s1)>(%i)[%n, %m] {
// CHECK-NEXT:        affine.load %A[%i + %j] : memref<?xf32>
// CHECK-NEXT:        %big = arith.cmpf
// CHECK-NEXT:        "affine.if"(%i, %j, %p) <{condition = affine_set<(d0, d1)[s0] : (((((d0 * -1) + (d1 * -1)) + s0) + -1) >= 0)>}> ({
// CHECK-NEXT:          scf.if %big {
// CHECK:             %y = "affine.if"(%i, %j) <{condition = affine_set<(d0, d1) : (((d0 + d1) + -1) == 0)>}> ({
// CHECK-NEXT:          affine.yield %x : f32
// CHECK-NEXT:        }, {
// CHECK-NEXT:          affine.yield %zero : f32
// CHECK:         scf.while
// CHECK:           %k = affine.load %t[0] : memref<1xindex>
// CHECK:           "scf.parallel"(%{{.*}}, %k, %{{.*}})
// CHECK:             memref.store %zero, %A[%l] : memref<?xf32>
func.func @least(%A: memref<?xf32>, %t: memref<1xindex>, %m: index) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  tir.for %i in %n {
    tir.block "A" iters(%vi: spatial<%n>) = [%i] {
      %r = affine.apply affine_map<(d0, d1) -> (d1 - d0)> (%vi, %n)
      %s = arith.minsi %r, %m : index
      %b = arith.maxsi %s, %c0 : index
      tir.for %j in %b {
        %p = arith.muli %n, %m : index
        %k = arith.addi %vi, %j : index
        %q = arith.subi %k, %p : index
        %in = arith.cmpi slt, %q, %c0 : index
        %x = memref.load %A[%k] : memref<?xf32>
        %big = arith.cmpf ogt, %x, %zero : f32
        %both = arith.andi %in, %big : i1
        // expected-remark@+1 {{the condition is no conjunction of affine comparisons: it stays scf.if}}
        scf.if %both {
          memref.store %zero, %A[%vi] : memref<?xf32>
        }
        %e = arith.cmpi eq, %k, %one : index
        %y = scf.if %e -> (f32) {
          scf.yield %x : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %y, %A[%k] : memref<?xf32>
      }
    }
  }
  tir.block "data" iters() = [] {
    scf.while () : () -> () {
      %true = arith.constant false
      scf.condition(%true)
    } do {
      %k = memref.load %t[%c0] : memref<1xindex>
      // expected-remark@+1 {{the extent of loop %l is not affine: it becomes a loop of scf}}
      tir.for %l in %k parallel {
        // expected-remark@+1 {{index 0 is not affine: it stays memref.store}}
        memref.store %zero, %A[%l] : memref<?xf32>
      }
      scf.yield
    }
  }
  func.return
}

// -----

// expected-remark@+1 {{convert-tir-to-affine: the module has no function of block loops}}
builtin.module {
  func.func @other(%A: memref<8xf32>) {
    func.return
  }
}
