// options: target="llvm -mcpu=cascadelake"
func.func @f(%A: memref<64xi8>, %B: memref<64xi8>, %C: memref<16xi32>) attributes {
    low.params = [#low.param<"A", memref<64xi8>, read, []>,
                  #low.param<"B", memref<64xi8>, read, []>,
                  #low.param<"C", memref<16xi32>, readwrite, []>],
    low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0] sizes [4] read : memref<64xi8>
  %b = low.access_ptr %B[%c0] sizes [64] read : memref<64xi8>
  %c = low.access_ptr %C[%c0] sizes [16] readwrite : memref<16xi32>
  low.tile_dot %a as ui8, %b as si8 onto %c {lanes = 16, steps = 4}
  func.return
}
