// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y" yields f32, but its elements are f64}}
  %Y = te.compute "Y" (%i) : tensor<4xf64> {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y" has 1 indices, but tensor<4x4xf32> has rank 2}}
  %Y = te.compute "Y" (%i) : tensor<4x4xf32> {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y": dimension 1 of tensor<4x?xf32> needs its extent after `in`}}
  %Y = te.compute "Y" (%i, %j) : tensor<4x?xf32> {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32, %n: index) {
  // expected-error@+1 {{te.compute "Y": dimension 0 of tensor<4xf32> is static and takes no extent}}
  %Y = te.compute "Y" (%i in %n) : tensor<4xf32> {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y": results differ in shape, tensor<4xf32> and tensor<5xf32>}}
  %Y, %Z = te.compute "Y" (%i) : tensor<4xf32>, tensor<5xf32> {
    te.yield %x, %x : f32, f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y" computes tensors, got f32}}
  %Y = te.compute "Y" () : f32 {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: i7) {
  // expected-error@+1 {{te.compute "Y": elements are i1, i8 to i64 or floats, got i7}}
  %Y = te.compute "Y" () : tensor<i7> {
    te.yield %x : i7
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" (%i) : tensor<4xf32> {
    // expected-error@+1 {{te.compute "Z" must not be in an element of te.compute "Y"}}
    %Z = te.compute "Z" (%j) : tensor<4xf32> {
      te.yield %x : f32
    }
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.compute "Y" must end in te.yield, got test.termop}}
  %Y = te.compute "Y" (%i) : tensor<4xf32> {
    "test.termop"() : () -> ()
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.reduce sum must be in an element region of te.compute}}
  %s = te.reduce sum (%k in 4) : f32 {
    te.yield %x : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce sum has no axis to reduce over}}
    %s = te.reduce sum () : f32 {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: i1) {
  %Y = te.compute "Y" () : tensor<i1> {
    // expected-error@+1 {{te.reduce sum combines one number, got i1}}
    %s = te.reduce sum (%k in 4) : i1 {
      te.yield %x : i1
    }
    te.yield %s : i1
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce any combines one truth value (i1), got f32}}
    %s = te.reduce any (%k in 4) : f32 {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce argmax combines a number and its integer index, got f32, f32}}
    %s, %t = te.reduce argmax (%k in 4) : f32, f32 {
      te.yield %x, %x : f32, f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32, %y: f64) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce max yields f64, but its results are f32}}
    %s = te.reduce max (%k in 4) : f32 {
      te.yield %y : f64
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce custom needs the regions `combine` and `identity`}}
    %s = te.reduce custom (%k in 4) : f32 {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce sum has its own combiner and identity: only `custom` takes regions}}
    %s = te.reduce sum (%k in 4) : f32 {
      te.yield %x : f32
    } combine (%a, %b) {
      te.yield %a : f32
    } identity {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    %s = te.reduce custom (%k in 4) : f32 {
      te.yield %x : f32
    // expected-error@+1 {{combine takes 1 accumulators and as many new values, got 3 arguments}}
    } combine (%a, %b, %c) {
      te.yield %a : f32
    } identity {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: f32, %y: f64) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce custom: identity yields f64, but the results are f32}}
    %s = te.reduce custom (%k in 4) : f32 {
      te.yield %x : f32
    } combine (%a, %b) {
      te.yield %a : f32
    } identity {
      te.yield %y : f64
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%A: tensor<?x4xf32>, %n: index) {
  // expected-error@+1 {{te.assume_shape gives 2 values for 1 dynamic extents of tensor<?x4xf32>}}
  te.assume_shape %A[%n, %n] : tensor<?x4xf32>
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.yield must be in a region of te.compute or te.reduce}}
  te.yield %x : f32
}

// -----

func.func @f(%x: f32) {
  %Y = te.compute "Y" () : tensor<f32> {
    // expected-error@+1 {{te.reduce minu combines integers, got f32}}
    %s = te.reduce minu (%k in 4) : f32 {
      te.yield %x : f32
    }
    te.yield %s : f32
  }
  func.return
}

// -----

func.func @f(%x: i8) {
  // expected-error@+1 {{te.compute "Y": elements are i1, i8 to i64 or floats, got ui8}}
  %Y = te.compute "Y" () : tensor<ui8> {
    te.yield %x : i8
  }
  func.return
}
