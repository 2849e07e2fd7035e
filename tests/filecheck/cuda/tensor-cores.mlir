// RUN: weft-opt %s -t cuda | filecheck %s
// RUN: not weft-opt %s -t opencl 2>&1 | filecheck %s --check-prefix OPENCL
// OPENCL: low.wmma_load has no form in OpenCL C

// Each op of a warp is a call; what it does is PTX, in front of the kernels. Shared memory of tiles starts on 32 bytes.
// CHECK: // A tile of 16 x 16 as a fragment of matrix a; its rows are `rows` elements apart.
// CHECK-NEXT: void weft_wmma_load_a_row_16x16x16_f16_shared(weft_f16 *fragment, const weft_f16 *tile, int rows) {
// CHECK-NEXT: #if defined(__CUDA_ARCH__)
// CHECK-NEXT:   unsigned int *r = (unsigned int *)fragment;
// CHECK-NEXT:   asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
// CHECK: wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};
// CHECK: wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7}, %9;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};
// CHECK: void __launch_bounds__(32) k(float *__restrict__ D) {
// CHECK-NEXT:   __shared__ __align__(32) weft_f16 S[1024];
// CHECK-NEXT:   __align__(16) weft_f16 A[16];
// CHECK-NEXT:   __align__(16) weft_f16 B[16];
// CHECK-NEXT:   __align__(16) float C[8];
// CHECK-NEXT:   const int t = threadIdx.x;
// CHECK-NEXT:   weft_wmma_load_a_row_16x16x16_f16_shared(A, S + 512, 32);
// CHECK-NEXT:   weft_wmma_mma_row_col_16x16x16_f16(C, A, B);
// CHECK-NEXT:   weft_wmma_store_16x16x16_f32_global(C, D, 16);
// CHECK-NEXT:   weft_ldmatrix_x4_trans(A, S + t * 8);
// CHECK-NEXT:   weft_mma_m16n8k16_f16(C, A, B + 4);
func.func @k(%D: memref<256xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %S = memref.alloca() : memref<1024xf16, "shared">
  %A = memref.alloca() : memref<16xf16, "local">
  %B = memref.alloca() : memref<16xf16, "local">
  %C = memref.alloca() : memref<8xf32, "local">
  %t = low.thread_id "threadIdx.x" extent 32 : index
  %s = low.access_ptr %S[%c512] read : memref<1024xf16, "shared">
  %a = low.access_ptr %A[%c0] readwrite : memref<16xf16, "local">
  low.wmma_load <wmma, a, row, [16, 16, 16], f16> %s, %c32 to %a
  %b = low.access_ptr %B[%c0] read : memref<16xf16, "local">
  %c = low.access_ptr %C[%c0] readwrite : memref<8xf32, "local">
  low.wmma_mma %a by %b onto %c {a = #low.fragment<wmma, a, row, [16, 16, 16], f16>, b = #low.fragment<wmma, b, col, [16, 16, 16], f16>}
  %d = low.access_ptr %D[%c0] write : memref<256xf32>
  low.wmma_store <wmma, c, row, [16, 16, 16], f32> %c to %d, %c16
  %row = arith.muli %t, %c8 : index
  %own = low.access_ptr %S[%row] read : memref<1024xf16, "shared">
  low.ldmatrix %own to %a {count = 4, transposed = true, element = f16}
  %second = low.access_ptr %B[%c4] read : memref<16xf16, "local">
  low.mma_sync %a by %second onto %c {element = f16}
  func.return
}
