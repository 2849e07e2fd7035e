// RUN: weft-opt %s --split-input-file -p 'lower-tir-to-low{target=c}' -t c | filecheck %s

// Values that are used once stand where they are used; names and loops are those of the program.
func.func @mm_relu(%A: memref<128x128xf32>, %B: memref<128x128xf32>, %C: memref<128x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<128x128xf32>
  tir.for %i in 128 { tir.for %j in 128 { tir.for %k in 128 {
    tir.block "Y" iters(%vi: spatial<128>, %vj: spatial<128>, %vk: reduce<128>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<128x128xf32> }
      %a = memref.load %A[%vi, %vk] : memref<128x128xf32>
      %b = memref.load %B[%vk, %vj] : memref<128x128xf32>
      %product = arith.mulf %a, %b : f32
      %y = memref.load %Y[%vi, %vj] : memref<128x128xf32>
      %sum = arith.addf %y, %product : f32
      memref.store %sum, %Y[%vi, %vj] : memref<128x128xf32>
    } } } }
  tir.for %i in 128 { tir.for %j in 128 {
    tir.block "C" iters(%vi: spatial<128>, %vj: spatial<128>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<128x128xf32>
      %relu = arith.maximumf %y, %zero : f32
      memref.store %relu, %C[%vi, %vj] : memref<128x128xf32>
    } } }
  func.return
}
// CHECK:      // The greater one, NaN when either is; -0 is less than +0.
// CHECK-NEXT: static inline float weft_maximum_f32(float a, float b) {
// CHECK:      void mm_relu(const float *restrict A, const float *restrict B, float *restrict C) {
// CHECK-NEXT:   float *restrict Y = weft_alloc(16384, sizeof(float));
// CHECK-NEXT:   for (int i = 0; i < 128; ++i) {
// CHECK-NEXT:     for (int j = 0; j < 128; ++j) {
// CHECK-NEXT:       Y[i * 128 + j] = 0.0f;
// CHECK-NEXT:       for (int k = 0; k < 128; ++k) {
// CHECK-NEXT:         Y[i * 128 + j] += A[i * 128 + k] * B[j + k * 128];
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK:            C[i * 128 + j] = weft_maximum_f32(Y[i * 128 + j], 0.0f);
// CHECK:        free(Y);

// -----

// Extents that are not known are 64-bit parameters, and the arithmetic on them has 64 bits. Lanes are a loop.
func.func @scale(%A: memref<?x16xf64>, %B: memref<?x16xf64>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?x16xf64>
  tir.assume_shape %B[%m] : memref<?x16xf64>
  tir.for %i in %m parallel { tir.for %j0 in 4 { tir.for %j1 in 4 vectorized {
    tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<16>) = [%i, %j0 * 4 + %j1] {
      %a = memref.load %A[%vi, %vj] : memref<?x16xf64>
      %b = math.exp %a : f64
      memref.store %b, %B[%vi, %vj] : memref<?x16xf64>
    } } } }
  func.return
}
// CHECK:      void scale(const double *restrict A, double *restrict B, int64_t m) {
// CHECK-NEXT:   bool v = {{[0-9]+}} * m >= 65536;
// CHECK-NEXT: #ifdef _OPENMP
// CHECK-NEXT: #pragma omp parallel for if(v)
// CHECK-NEXT: #else
// CHECK-NEXT: (void)(v);
// CHECK-NEXT: #endif
// CHECK-NEXT:   for (int64_t i = 0; i < m; ++i) {
// CHECK-NEXT:     for (int j0 = 0; j0 < 4; ++j0) {
// CHECK-NEXT:       int64_t at = i * 16 + j0 * 4;
// CHECK-NEXT:       WEFT_LANES(2)
// CHECK-NEXT:       for (int l = 0; l < 4; ++l) B[at + l] = exp(A[at + l]);

// -----

// A condition evaluates one branch only; 16-bit floats are widened around arithmetic.
func.func @choose(%M: memref<12xi1>, %A: memref<12xf16>, %B: memref<12xf16>) {
  %zero = arith.constant 0.0 : f16
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %inside = memref.load %M[%v] : memref<12xi1>
      %p = scf.if %inside -> (f16) {
        %a = memref.load %A[%v] : memref<12xf16>
        scf.yield %a : f16
      } else {
        scf.yield %zero : f16
      }
      %s = arith.addf %p, %p : f16
      memref.store %s, %B[%v] : memref<12xf16>
    } }
  func.return
}
// CHECK:      typedef uint16_t weft_f16; {{ *}}// the bits of an IEEE half
// CHECK:      void choose(const uint8_t *restrict M, const weft_f16 *restrict A, weft_f16 *restrict B) {
// CHECK-NEXT:   for (int i = 0; i < 12; ++i) {
// CHECK-NEXT:     weft_f16 p = M[i] != 0 ? A[i] : 0x0000;
// CHECK-NEXT:     B[i] = weft_f32_to_f16(weft_f16_to_f32(p) + weft_f16_to_f32(p));

// -----

// The numbers of large buffers do not fit 32 bits: one operand is widened, and the rest follows. Data wraps around.
func.func @large(%A: memref<65536x65536xi32>, %B: memref<65536x65536xi32>) {
  %c3 = arith.constant 3 : i32
  tir.for %i in 65536 { tir.for %j in 65536 {
    tir.block "B" iters(%vi: spatial<65536>, %vj: spatial<65536>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<65536x65536xi32>
      %b = arith.addi %a, %c3 : i32
      memref.store %b, %B[%vi, %vj] : memref<65536x65536xi32>
    } } }
  func.return
}
// CHECK:      int64_t at = (int64_t)i * 65536 + j;
// CHECK-NEXT: B[at] = (int32_t)((uint32_t)A[at] + 3);
