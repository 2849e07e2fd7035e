// RUN: weft-opt %s -p lower-tir-to-low --validate | filecheck %s
// RUN: weft-opt %s -p lower-tir-to-low -t llvm-ir | filecheck %s --check-prefix=LLVM
// RUN: weft-opt %s -p 'lower-tir-to-low{target=c}' -t c | filecheck %s --check-prefix=C
// RUN: weft-opt %s -p lower-tir-to-low,convert-low-to-upstream | filecheck %s --check-prefix=UPSTREAM

// Views of bytes, and dense buffers in other dimensions, are pointers.

// CHECK-LABEL: func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %n: index)
// CHECK:         %[[N64:.*]] = arith.muli %n, %c64
// CHECK:         %arena = memref.alloc(%[[N64]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK:         %a = memref.view %arena[%[[N32:.*]]][%[[N8:.*]]] : memref<?xi8> to memref<?xf32>
// CHECK:         %rows = memref.reinterpret_cast %x to offset: [0], sizes: [%[[N8]]], strides: [1] : memref<?xf32> to memref<?xf32>
// CHECK-NEXT:    func.call @copy(%rows, %a, %n)
// CHECK-NEXT:    func.call @copy(%a, %y, %n)
// CHECK-NEXT:    memref.dealloc %arena

// LLVM:          define void @f(
// LLVM:          %large.buffer = call ptr @weft_alloc(i64 %{{.*}})
// LLVM:          %arena = phi ptr [ %small, %entry ], [ %large.buffer, %large ]
// LLVM-NEXT:     %[[A:.*]] = getelementptr inbounds nuw i8, ptr %arena, i64 %{{.*}}
// LLVM:          call void @{{.*}}copy{{.*}}(ptr %x, ptr %[[A]], i64 %n)
// LLVM-NEXT:     call void @{{.*}}copy{{.*}}(ptr %[[A]], ptr %y, i64 %n)

// C:             int8_t *restrict arena = weft_alloc(
// C-NEXT:        float *a = (float *)(arena + {{.*}});
// C-NEXT:        copy(x, a, n);
// C-NEXT:        copy(a, y, n);
// C-NEXT:        free(arena);

// UPSTREAM:      %a = memref.view %arena[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xf32>
// UPSTREAM:      memref.reinterpret_cast
func.func @f(%x: memref<?x2x4xf32>, %y: memref<?x8xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x2x4xf32>
  tir.assume_shape %y[%n] : memref<?x8xf32>
  %bytes = affine.apply affine_map<(d0) -> (d0 * 64)> (%n)
  %half = affine.apply affine_map<(d0) -> (d0 * 32)> (%n)
  %arena = memref.alloc(%bytes) {alignment = 64 : i64} : memref<?xi8>
  %a = memref.view %arena[%half][%n] : memref<?xi8> to memref<?x8xf32>
  %rows = memref.reinterpret_cast %x to offset: [0], sizes: [%n, 8], strides: [8, 1] : memref<?x2x4xf32> to memref<?x8xf32>
  func.call @copy(%rows, %a) : (memref<?x8xf32>, memref<?x8xf32>) -> ()
  func.call @copy(%a, %y) : (memref<?x8xf32>, memref<?x8xf32>) -> ()
  func.return
}
func.func private @copy(%A: memref<?x8xf32>, %B: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?x8xf32>
  tir.assume_shape %B[%n] : memref<?x8xf32>
  tir.for %i in %n { tir.for %j in 8 {
    tir.block "B" iters(%v: spatial<%n>, %w: spatial<8>) = [%i, %j] {
      %e = memref.load %A[%v, %w] : memref<?x8xf32>
      memref.store %e, %B[%v, %w] : memref<?x8xf32>
    }
  } }
  func.return
}
