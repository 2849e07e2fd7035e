// RUN: weft-opt %s -t cuda | filecheck %s

// What calls check of extents reaches the kernels: n is small and a multiple of 4, so that rows are aligned and 32 bits
// are enough. Of m nothing is known.
// CHECK:      void __launch_bounds__(32) rows(const float *__restrict__ A, long long n, long long m) {
// CHECK-NEXT:   const int n_1 = (int)n;
// CHECK:        *(float4 *)v = *(const float4 *)(A + bx * n_1);
// CHECK:        for (int l = 0; l < 4; ++l) A[bx * m + l] = v[l];
func.func @main(%A: memref<?xf32>, %m: index, %n: index) attributes {
    low.params = [#low.param<"A", memref<?x?xf32>, readwrite, ["m", "n"]>], low.symbols = ["m", "n"],
    low.assume = ["n % 4 == 0", "n <= 4096", "n <= m"]} {
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c32 = arith.constant 32 : index
  low.launch @rows blocks(%c7, %c1, %c1) threads(%c32, %c1, %c1) (%A, %n, %m) : memref<?xf32>, index, index
  func.return
}
func.func @rows(%A: memref<?xf32>, %n: index, %m: index) attributes {
    low.kernel = #low.kernel<[32, 1, 1], source = "x">,
    low.arg_access = [#low<access read>, #low<access read>, #low<access read>]} {
  %bx = low.thread_id "blockIdx.x" extent 7 : index
  %row = arith.muli %bx, %n : index
  %v = vector.load %A[%row] : memref<?xf32>, vector<4xf32>
  %other = arith.muli %bx, %m : index
  vector.store %v, %A[%other] : memref<?xf32>, vector<4xf32>
  func.return
}
