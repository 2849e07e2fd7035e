// A loop whose iterations overlap.
module attributes {transform.with_named_sequence} {
  func.func @loop(%A: memref<16xf32>, %B: memref<16xf32>, %C: memref<16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %c16 step %c1 {
      %a = memref.load %A[%i] : memref<16xf32>
      %b = memref.load %B[%i] : memref<16xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%i] : memref<16xf32>
    }
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %add = transform.structured.match ops{["scf.for"]} in %root : (!transform.any_op) -> !transform.op<"scf.for">
    %p = transform.loop.pipeline %add {iteration_interval = 1 : i64, read_latency = 3 : i64} : (!transform.op<"scf.for">) -> !transform.any_op
    transform.yield
  }
}
