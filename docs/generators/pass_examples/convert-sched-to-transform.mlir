func.func @f(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>, %C: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %D = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%C : tensor<16x24xf32>) -> tensor<16x24xf32>
  return %D : tensor<16x24xf32>
}
sched.func @schedule {
  %matmul = sched.get_block "matmul" in @f : block
  %m, %n, %k = sched.get_loops %matmul : loop, loop, loop
  %n0, %n1 = sched.split %n {factors = [0, 8]} : loop, loop
  sched.reorder %n0, %m, %n1, %k
}
