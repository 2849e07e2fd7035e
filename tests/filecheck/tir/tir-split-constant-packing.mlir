// RUN: weft-opt %s -p tir-split-constant-packing --split-input-file --verify-diagnostics | filecheck %s
// RUN: weft-opt %s -p tir-split-constant-packing,tir-fold-constant-calls --split-input-file --verify-diagnostics | filecheck %s --check-prefix=FOLD

// What is computed from a constant alone moves out, through several temporaries; a constant that others read stays.
// CHECK-LABEL: func.func @main
// CHECK:         %w = memref.get_global @w : memref<4xf32>
// CHECK-NEXT:    %b = memref.get_global @b : memref<4xf32>
// CHECK-NEXT:    %p = memref.alloc() : memref<4xf32>
// CHECK-NEXT:    func.call @f_pack_w(%w, %p) : (memref<4xf32>, memref<4xf32>) -> ()
// CHECK-NEXT:    func.call @f(%x, %p, %b, %y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
// CHECK-LABEL: func.func private @f(%x: memref<4xf32>, %p: memref<4xf32> {tir.constant}, %b: memref<4xf32> {tir.constant}, %y: memref<4xf32>)
// CHECK-NOT:     "twice"
// CHECK:         tir.block "y"
// CHECK-LABEL: func.func private @f_pack_w(%w: memref<4xf32> {tir.constant}, %p: memref<4xf32>)
// CHECK-SAME:      tir.parameter_access = [#low<access read>, #low<access write>]
// CHECK:         {{.*}} = arith.constant 2.0
// CHECK:         %t = memref.alloc() : memref<4xf32>
// CHECK:         tir.block "twice"
// CHECK:         tir.block "pack"
// CHECK-NEXT:      {{.*}} = affine.apply
// CHECK-NEXT:      %e = memref.load %t
// FOLD:        "memref.global"() <{{.*}}sym_name = "w_packed", {{.*}}dense<[8.000000e+00, 6.000000e+00, 4.000000e+00, 2.000000e+00]>
// FOLD-NOT:    sym_name = "w"
// FOLD-LABEL:  func.func @main
// FOLD-NOT:      memref.alloc
// FOLD:          %p = memref.get_global @w_packed : memref<4xf32>
// FOLD-NEXT:     func.call @f(%x, %p, %b, %y)
// FOLD-NOT:    @f_pack_w
"memref.global"() <{sym_name = "w", type = memref<4xf32>, initial_value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>, sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "b", type = memref<4xf32>, initial_value = dense<1.0> : tensor<4xf32>, sym_visibility = "private", constant}> : () -> ()
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) attributes {tir.function} {
  %w = memref.get_global @w : memref<4xf32>
  %b = memref.get_global @b : memref<4xf32>
  func.call @f(%x, %w, %b, %y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
func.func private @f(%x: memref<4xf32>, %w: memref<4xf32> {tir.constant}, %b: memref<4xf32> {tir.constant}, %y: memref<4xf32>) {
  %t = memref.alloc() : memref<4xf32>
  %p = memref.alloc() : memref<4xf32>
  %two = arith.constant 2.0 : f32
  tir.for %i in 4 {
    tir.block "twice" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %w[%v] : memref<4xf32>
      %d = arith.mulf %e, %two : f32
      memref.store %d, %t[%v] : memref<4xf32>
    }
  }
  tir.for %i in 4 {
    tir.block "pack" iters(%v: spatial<4>) = [%i] {
      %at = affine.apply affine_map<(d0) -> (3 - d0)>(%v)
      %e = memref.load %t[%v] : memref<4xf32>
      memref.store %e, %p[%at] : memref<4xf32>
    }
  }
  tir.for %i in 4 {
    tir.block "y" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %x[%v] : memref<4xf32>
      %d = memref.load %p[%v] : memref<4xf32>
      %c = memref.load %b[%v] : memref<4xf32>
      %s = arith.mulf %e, %d : f32
      %r = arith.addf %s, %c : f32
      memref.store %r, %y[%v] : memref<4xf32>
    }
  }
  func.return
}

// -----

// A temporary that also depends on an argument stays, and so does what is computed from it, and where a number
// is one.
// CHECK-LABEL: func.func private @f(%x: memref<4xf32>, %w: memref<4xf32> {tir.constant}, %n: f32, %y: memref<4xf32>)
// CHECK:         memref.alloc
// CHECK:         memref.alloc
// CHECK-NOT:   @f_pack
// FOLD-LABEL:  func.func private @f(%x: memref<4xf32>, %w: memref<4xf32> {tir.constant}, %n: f32, %y: memref<4xf32>)
func.func private @f(%x: memref<4xf32>, %w: memref<4xf32> {tir.constant}, %n: f32, %y: memref<4xf32>) {
  %t = memref.alloc() : memref<4xf32>
  %p = memref.alloc() : memref<4xf32>
  tir.for %i in 4 {
    tir.block "both" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %w[%v] : memref<4xf32>
      %d = memref.load %x[%v] : memref<4xf32>
      %s = arith.mulf %e, %d : f32
      memref.store %s, %t[%v] : memref<4xf32>
    }
  }
  tir.for %i in 4 {
    tir.block "scaled" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %w[%v] : memref<4xf32>
      %s = arith.mulf %e, %n : f32
      memref.store %s, %p[%v] : memref<4xf32>
    }
  }
  tir.for %i in 4 {
    tir.block "y" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %t[%v] : memref<4xf32>
      %d = memref.load %p[%v] : memref<4xf32>
      %s = arith.mulf %e, %d : f32
      memref.store %s, %y[%v] : memref<4xf32>
    }
  }
  func.return
}

// -----

// Each call gets a constant of its own, and calls of the same constant share one; a call on an argument stays. A result
// that takes many times as much as what it is computed from is computed at each call.
// FOLD:        "memref.global"() <{{.*}}sym_name = "u_packed", {{.*}}dense<[5.000000e+00, 6.000000e+00]>
// FOLD:        "memref.global"() <{{.*}}sym_name = "w_packed", {{.*}}dense<[2.000000e+00, 4.000000e+00]>
// FOLD-LABEL:  func.func @main
// FOLD:          %b = memref.get_global @w_packed
// FOLD:          %c = memref.get_global @w_packed
// FOLD:          %d = memref.get_global @u_packed
// FOLD:          func.call @twice(%x, %y)
// FOLD-NEXT:     func.call @add(%b, %d, %y)
// FOLD-NEXT:     func.call @add(%c, %d, %y)
// FOLD:          func.call @spread(%w, %large)
"memref.global"() <{sym_name = "w", type = memref<2xf32>, initial_value = dense<[1.0, 2.0]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "u", type = memref<2xf32>, initial_value = dense<[2.5, 3.0]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
func.func @main(%x: memref<2xf32>, %y: memref<2xf32>, %z: memref<65536xf32>) attributes {tir.function} {
  %w = memref.get_global @w : memref<2xf32>
  %u = memref.get_global @u : memref<2xf32>
  %b = memref.alloc() : memref<2xf32>
  %c = memref.alloc() : memref<2xf32>
  %d = memref.alloc() : memref<2xf32>
  %large = memref.alloc() : memref<65536xf32>
  func.call @twice(%w, %b) : (memref<2xf32>, memref<2xf32>) -> ()
  func.call @twice(%w, %c) : (memref<2xf32>, memref<2xf32>) -> ()
  func.call @twice(%u, %d) : (memref<2xf32>, memref<2xf32>) -> ()
  func.call @twice(%x, %y) : (memref<2xf32>, memref<2xf32>) -> ()
  func.call @add(%b, %d, %y) : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
  func.call @add(%c, %d, %y) : (memref<2xf32>, memref<2xf32>, memref<2xf32>) -> ()
  func.call @spread(%w, %large) : (memref<2xf32>, memref<65536xf32>) -> ()
  func.call @spread(%y, %z) : (memref<2xf32>, memref<65536xf32>) -> ()
  func.call @copy(%large, %z) : (memref<65536xf32>, memref<65536xf32>) -> ()
  func.return
}
func.func private @twice(%a: memref<2xf32>, %b: memref<2xf32>) {
  tir.for %i in 2 {
    tir.block "twice" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %a[%v] : memref<2xf32>
      %d = arith.addf %e, %e : f32
      memref.store %d, %b[%v] : memref<2xf32>
    }
  }
  func.return
}
func.func private @add(%a: memref<2xf32>, %b: memref<2xf32>, %c: memref<2xf32>) {
  tir.for %i in 2 {
    tir.block "add" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %a[%v] : memref<2xf32>
      %d = memref.load %b[%v] : memref<2xf32>
      %s = arith.addf %e, %d : f32
      memref.store %s, %c[%v] : memref<2xf32>
    }
  }
  func.return
}
func.func private @spread(%a: memref<2xf32>, %b: memref<65536xf32>) {
  tir.for %i in 65536 {
    tir.block "spread" iters(%v: spatial<65536>) = [%i] {
      %at = affine.apply affine_map<(d0) -> (d0 mod 2)>(%v)
      %e = memref.load %a[%at] : memref<2xf32>
      memref.store %e, %b[%v] : memref<65536xf32>
    }
  }
  func.return
}
func.func private @copy(%a: memref<65536xf32>, %b: memref<65536xf32>) {
  tir.for %i in 65536 {
    tir.block "copy" iters(%v: spatial<65536>) = [%i] {
      %e = memref.load %a[%v] : memref<65536xf32>
      memref.store %e, %b[%v] : memref<65536xf32>
    }
  }
  func.return
}

// -----

// expected-error@+1 {{parameter 'w' of @f is marked tir.constant: that is a buffer of static shape, got memref<?xf32>}}
func.func @f(%w: memref<?xf32> {tir.constant}) {
  func.return
}

// -----

// expected-error@+1 {{parameter 'n' of @f is marked tir.constant: that is a buffer of static shape, got index}}
func.func @f(%n: index {tir.constant}) {
  func.return
}

// -----

// expected-error@+1 {{parameter 'w' of @f is marked tir.constant, and the function writes it}}
func.func @f(%x: memref<2xf32>, %w: memref<2xf32> {tir.constant}) {
  tir.for %i in 2 {
    tir.block "b" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %x[%v] : memref<2xf32>
      memref.store %e, %w[%v] : memref<2xf32>
    }
  }
  func.return
}

// -----

// The parameters of a function to which more than calls refer stay.
// CHECK-LABEL: func.func @address
// CHECK-NOT:     memref.alloc
// CHECK:       func.func private @f(%w: memref<2xf32> {tir.constant}, %y: memref<2xf32>)
// CHECK-NOT:   @f_pack_w
func.func @address(%w: memref<2xf32>, %y: memref<2xf32>) {
  %f = "llvm.mlir.addressof"() <{global_name = @f}> : () -> !llvm.ptr
  func.call @f(%w, %y) : (memref<2xf32>, memref<2xf32>) -> ()
  func.return
}
func.func private @f(%w: memref<2xf32> {tir.constant}, %y: memref<2xf32>) {
  %p = memref.alloc() : memref<2xf32>
  tir.for %i in 2 {
    tir.block "p" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %w[%v] : memref<2xf32>
      memref.store %e, %p[%v] : memref<2xf32>
    }
  }
  tir.for %i in 2 {
    tir.block "y" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %p[%v] : memref<2xf32>
      memref.store %e, %y[%v] : memref<2xf32>
    }
  }
  func.return
}
