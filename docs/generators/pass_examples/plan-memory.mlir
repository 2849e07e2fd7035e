func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  %c = memref.alloc() : memref<64xf32>
  func.call @shift(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
  func.call @shift(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
  func.call @shift(%b, %c) : (memref<64xf32>, memref<64xf32>) -> ()
  func.call @shift(%c, %y) : (memref<64xf32>, memref<64xf32>) -> ()
  func.return
}
func.func private @shift(memref<64xf32>, memref<64xf32>)
