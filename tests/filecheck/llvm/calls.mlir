// RUN: weft-opt %s -p 'low-legalize{target=llvm}' -t llvm-ir | filecheck %s
// Calls pass pointers and symbols; constants are bytes; what a callee only reads is only read by the caller.

// CHECK: @eight = private unnamed_addr constant [8 x i8] c"\00\00\80\3F\00\00\00\C0", align 64
// CHECK: @zeros = private unnamed_addr global [400 x i8] zeroinitializer, align 128
// CHECK: @truth = private unnamed_addr constant [3 x i8] c"\01\00\01", align 64
"memref.global"() <{sym_name = "eight", type = memref<2xf32>, initial_value = dense<[1.0, -2.0]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "zeros", type = memref<100xi32>, initial_value, sym_visibility = "private", alignment = 128 : i64}> : () -> ()
"memref.global"() <{sym_name = "truth", type = memref<3xi1>, initial_value = dense<[true, false, true]> : tensor<3xi1>, sym_visibility = "private", constant}> : () -> ()

// CHECK-LABEL: define void @scale(
func.func @scale(%A: memref<?xf32>, %s: f32, %B: memref<?xf32>, %n: index) attributes {
    low.params = [#low.param<"A", memref<?xf32>, read, ["n"]>, #low.param<"s", f32, read, []>, #low.param<"B", memref<?xf32>, write, ["n"]>],
    low.symbols = ["n"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %A[%i] : memref<?xf32>
    %b = arith.mulf %a, %s : f32
    memref.store %b, %B[%i] : memref<?xf32>
  }
  func.return
}

// CHECK-LABEL: define void @caller(ptr noalias captures(none) readonly {{[^%]*}} %X, ptr noalias captures(none) writeonly {{[^%]*}} %Y)
func.func @caller(%X: memref<2xf32>, %Y: memref<2xf32>) attributes {
    low.params = [#low.param<"X", memref<2xf32>, read, []>, #low.param<"Y", memref<2xf32>, write, []>], low.symbols = []} {
  %c2 = arith.constant 2 : index
  %s = arith.constant 0.5 : f32
  %T = memref.alloc() : memref<2xf32>
  %K = memref.get_global @eight : memref<2xf32>
  %x = "memref.cast"(%X) : (memref<2xf32>) -> memref<?xf32>
  %t = "memref.cast"(%T) : (memref<2xf32>) -> memref<?xf32>
  %k = "memref.cast"(%K) : (memref<2xf32>) -> memref<?xf32>
  %y = "memref.cast"(%Y) : (memref<2xf32>) -> memref<?xf32>
  // CHECK: call void @scale(ptr %X, float 0.5, ptr %T, i64 2)
  func.call @scale(%x, %s, %t, %c2) : (memref<?xf32>, f32, memref<?xf32>, index) -> ()
  // CHECK: call void @scale(ptr @eight, float 0.5, ptr %Y, i64 2)
  func.call @scale(%k, %s, %y, %c2) : (memref<?xf32>, f32, memref<?xf32>, index) -> ()
  memref.dealloc %T : memref<2xf32>
  func.return
}

// The bits of a bf16 are an integer, but where functions take one or give one: C passes those as floats.
func.func private @outside(bf16) -> bf16

// CHECK-LABEL: define void @scaled_twice(ptr {{[^%]*}} %A, bfloat %s)
// CHECK: %bits = bitcast bfloat %s to i16
func.func @scaled_twice(%A: memref<4xbf16>, %s: bf16) attributes {
    low.params = [#low.param<"A", memref<4xbf16>, readwrite, []>, #low.param<"s", bf16, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %minus = arith.negf %s : bf16
  // CHECK: %[[MINUS:.*]] = xor i16 %bits, -32768
  // CHECK: %[[PASSED:.*]] = bitcast i16 %[[MINUS]] to bfloat
  // CHECK: %[[GIVEN:.*]] = call bfloat @outside(bfloat %[[PASSED]])
  // CHECK: bitcast bfloat %[[GIVEN]] to i16
  %r = func.call @outside(%minus) : (bf16) -> bf16
  // CHECK: store <4 x i16> splat (i16 16256), ptr %A
  %ones = arith.constant dense<1.0> : vector<4xbf16>
  vector.store %ones, %A[%c0] : memref<4xbf16>, vector<4xbf16>
  memref.store %r, %A[%c0] : memref<4xbf16>
  // CHECK: bitcast i16 16256 to bfloat
  // CHECK: call void @scaled_twice(ptr %A, bfloat %{{.*}})
  %one = arith.constant 1.0 : bf16
  func.call @scaled_twice(%A, %one) : (memref<4xbf16>, bf16) -> ()
  func.return
}
