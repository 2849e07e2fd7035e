// RUN: weft-opt %s -t llvm-ir | filecheck %s

// Zeros are not written out.
// CHECK: @zeros = private unnamed_addr global [8589934588 x i8] zeroinitializer, align 64
"memref.global"() <{sym_name = "zeros", sym_visibility = "private", type = memref<2147483647xf32>, initial_value}> : () -> ()
