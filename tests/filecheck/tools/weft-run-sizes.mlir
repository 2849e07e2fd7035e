// RUN: weft run %s --input p=2 --check | filecheck %s

// The extent of the result follows from those that are given.
// CHECK: check     y: within {{.*}} of the interpreter
func.func @f(%x: tensor<5xf32>, %p: index) -> tensor<?xf32> {
  %c = arith.constant 3.0 : f32
  %y = tensor.pad %x low[%p] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<5xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}
