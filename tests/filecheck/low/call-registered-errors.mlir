// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'tir-flatten'

func.func @count(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{low.call_registered takes 2 buffers, but has 1 shapes}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<4xf32>] : (memref<4xf32>) -> (memref<4xf32>)
  func.return
}

// -----

func.func @rank(%x: memref<4x4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{low.call_registered: memref<4x4xf32> cannot be passed as memref<4x4x1xf32>}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<4x4x1xf32>, memref<4xf32>] : (memref<4x4xf32>) -> (memref<4xf32>)
  func.return
}

// -----

func.func @elements(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{low.call_registered: memref<4xf32> cannot be passed as memref<4xf64>}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<4xf32>, memref<4xf64>] : (memref<4xf32>) -> (memref<4xf32>)
  func.return
}

// -----

func.func @layout(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{low.call_registered: the type of an array is a dense memref, got memref<4xf32, strided<[2]>>}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<4xf32, strided<[2]>>, memref<4xf32>] : (memref<4xf32>) -> (memref<4xf32>)
  func.return
}

// -----

func.func @extents(%x: memref<?xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{low.call_registered: the shapes have 1 dynamic extents, got 0}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<?xf32>, memref<4xf32>] : (memref<?xf32>) -> (memref<4xf32>)
  func.return
}

// -----

func.func @view(%x: memref<4xf32, strided<[2]>>, %y: memref<4xf32>) {
  // expected-error@+1 {{"f" takes dense buffers, and %x is a view}}
  low.call_registered "f"(%x) outs(%y) extents() [memref<4xf32>, memref<4xf32>] : (memref<4xf32, strided<[2]>>) -> (memref<4xf32>)
  func.return
}
