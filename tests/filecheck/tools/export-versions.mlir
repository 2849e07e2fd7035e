// RUN: weft build %s -o %t.ll --target "llvm -mcpu=haswell -num-threads=1"
// RUN: filecheck %s --input-file %t.ll
// RUN: weft build %s -o %t.plain.ll --target "llvm -mcpu=haswell -num-threads=1" --no-default-schedule
// RUN: filecheck %s --input-file %t.plain.ll --check-prefix=PLAIN

// An exported program has the versions of kernels for few rows that `weft.build` makes.
// CHECK: icmp sle i64 %m, 11
// CHECK: define internal void @matmul_few(
// PLAIN-NOT: matmul_few
func.func @rows(%x: tensor<?x40xf32, #graph.dims<m>>, %w: tensor<40x128xf32>) -> tensor<?x128xf32, #graph.dims<m>> {
  %y = graph.matmul %x, %w : tensor<?x40xf32, #graph.dims<m>>, tensor<40x128xf32>
  func.return %y : tensor<?x128xf32, #graph.dims<m>>
}
