// Functions and operations of acme beside a function of weft. weft's passes leave the former as they are.
func.func @scale(%A: memref<8xf32>, %B: memref<8xf32>) {
  %c = arith.constant 2.0 : f32
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      %a = memref.load %A[%vi] : memref<8xf32>
      %b = arith.mulf %a, %c : f32
      memref.store %b, %B[%vi] : memref<8xf32>
    }
  }
  func.return
}
func.func @square(%x: !acme.fixed<4>) -> !acme.fixed<4> {
  %y = acme.mul %x, %x : !acme.fixed<4>
  func.return %y : !acme.fixed<4>
}
func.func @clip_all(%A: memref<4x2xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %A[%i, %c0] : memref<4x2xf32>
    %b = acme.clip %a to 5.000000e-01
    %unused = arith.addf %b, %b : f32
    memref.store %b, %A[%i, %c0] : memref<4x2xf32>
  }
  %1 = arith.addi %n, %c0 {note = "kept as it is"} : index
  func.return %1 : index
}
func.func private @log(memref<4x2xf32>, i32) -> i32
