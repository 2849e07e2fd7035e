// RUN: weft-opt %s -p 'lower-tir-to-low{target=llvm}' | filecheck %s
// RUN: weft-opt %s -p 'lower-tir-to-low{target=llvm}' | weft-opt | filecheck %s
// RUN: weft-opt %s -p 'lower-tir-to-low{target=llvm}' -t llvm-ir | filecheck %s --check-prefix=LLVM
// RUN: weft-opt %s -p 'lower-tir-to-low{target=c}' -t c | filecheck %s --check-prefix=C

// Buffers become flat, the shapes stay; addresses that stand in memory are captured. Names are escaped.
// CHECK-LABEL: func.func @main(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<1xi1>, %n: index)
// CHECK:         %t = memref.alloc({{.*}}) {alignment = 64 : i64} : memref<?xf32>
// CHECK-NEXT:    low.call_registered "env.a\22b"(%x) outs(%t) extents(%n, %n) [memref<?x4xf32>, memref<4x?xf32>] : (memref<?xf32>) -> (memref<?xf32>)
// CHECK-NEXT:    low.call_registered "env.any"(%x, %t) outs(%y, %z) extents(%n, %n, %n) [memref<?x4xf32>, memref<4x?xf32>, memref<?x4xf32>, memref<i1>] : (memref<?xf32>, memref<?xf32>) -> (memref<?xf32>, memref<1xi1>)
// LLVM-LABEL: define void @weft_function_main(ptr noalias readonly align 4 %x, ptr noalias writeonly align 4 %y,
// LLVM:         %arrays = alloca [2 x { ptr, ptr, i32, i8, i8, i16 }], align 8
// LLVM:         %extents = alloca [4 x i64], align 8
// LLVM:         store i64 %n, ptr
// LLVM:         store i64 4, ptr
// LLVM:         store ptr %x, ptr
// LLVM:         store i32 2, ptr
// LLVM-NEXT:    %[[CODE:.*]] = getelementptr { ptr, ptr, i32, i8, i8, i16 }, ptr %array, i64 0, i32 3
// LLVM-NEXT:    store i8 2, ptr %[[CODE]]
// LLVM:         store i8 32, ptr
// LLVM:         call void @weft_call_registered(ptr @registered.name, ptr %arrays, i32 1, i32 1)
// LLVM:         call void @weft_call_registered(ptr @registered.name.1, ptr %arrays.1, i32 2, i32 2)
// LLVM:       declare void @weft_call_registered(ptr, ptr, i32, i32)
// LLVM:       @registered.name = private constant [8 x i8] c"\65\6E\76\2E\61\22\62\00"
// C:          int32_t weft_set_function(const char *name, weft_function function, void *context);
// C-LABEL:    void main_(
// C:            weft_call_registered("env.a\042b", (weft_array[]){{.*}}(void *)x, (const int64_t[]){n, 4}, 2, 2, 32, 1}, {(void *)t, (const int64_t[]){4, n}, 2, 2, 32, 1}}, 1, 1);
// C-NEXT:       weft_call_registered("env.any", (weft_array[]){{.*}} {(void *)z, NULL, 0, 6, 8, 1}}, 2, 2);
func.func @main(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %z: memref<i1>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  tir.assume_shape %y[%n] : memref<?x4xf32>
  %t = memref.alloc(%n) : memref<4x?xf32>
  low.call_registered "env.a\"b"(%x) outs(%t) extents(%n, %n) [memref<?x4xf32>, memref<4x?xf32>] : (memref<?x4xf32>) -> (memref<4x?xf32>)
  low.call_registered "env.any"(%x, %t) outs(%y, %z) extents(%n, %n, %n) [memref<?x4xf32>, memref<4x?xf32>, memref<?x4xf32>, memref<i1>]
    : (memref<?x4xf32>, memref<4x?xf32>) -> (memref<?x4xf32>, memref<i1>)
  func.return
}
