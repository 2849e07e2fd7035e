// RUN: weft-opt %s --split-input-file --verify-diagnostics -t llvm-ir
// What a program may ask for and this backend does not have, or what contradicts itself.

func.func @level(%A: memref<4xf32>) {
  // expected-error@+1 {{tir.for is not allowed at level low: lower the module first, with -p lower-tir-to-low}}
  tir.for %i in 4 {
  }
  func.return
}

// -----

func.func @type(%A: memref<4xsi32>) {
  %c0 = arith.constant 0 : index
  // expected-error@-2 {{type si32 is not supported by the llvm backend (it has i1, i8, i16, i32, i64, index, f16, bf16, f32, f64 and vectors of them)}}
  func.return
}

// -----

// expected-error@+1 {{type i24 is not supported by the llvm backend}}
func.func @width(%k: i24) {
  func.return
}

// -----

// expected-error@+1 {{low works on flat buffers without a layout, got memref<4x4xf32>}}
func.func @rank(%A: memref<4x4xf32>) {
  func.return
}

// -----

// expected-error@+1 {{low works on flat buffers without a layout, got memref<4xf32, strided<[2]>>}}
func.func @layout(%A: memref<4xf32, strided<[2]>>) {
  func.return
}

// -----

func.func @vectors() {
  // expected-error@+1 {{vectors have one fixed dimension at low level, got vector<2x2xf32>}}
  %v = arith.constant dense<0.0> : vector<2x2xf32>
  func.return
}

// -----

func.func @scalable(%a: f32) {
  // expected-error@+1 {{vectors have one fixed dimension at low level, got vector<[4]xf32>}}
  %v = vector.broadcast %a : f32 to vector<[4]xf32>
  func.return
}

// -----

// expected-error@+1 {{a parameter of @parameter is a vector: vector<4xf32>}}
func.func @parameter(%v: vector<4xf32>) {
  func.return
}

// -----

func.func @local(%n: index) {
  // expected-error@+1 {{a local buffer needs a static size, got memref<?xf32, "local">}}
  %A = memref.alloca(%n) : memref<?xf32, "local">
  func.return
}

// -----

func.func @stack() {
  %A = memref.alloca() : memref<60000xf32, "local">
  // expected-error@+1 {{the local buffers of @stack take 280000 bytes, more than the 262144 that fit the stack: give large ones the scope 'global'}}
  %B = memref.alloca() : memref<10000xf32, "local">
  func.return
}

// -----

func.func @alignment() {
  // expected-error@+1 {{temporaries are aligned to 64 bytes, got 4096}}
  %A = memref.alloc() {alignment = 4096 : i64} : memref<64xf32>
  func.return
}

// -----

func.func @unroll(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{a loop that is marked low.unroll needs constant bounds and a constant step}}
  scf.for %i = %c0 to %n step %c1 {
  } {low.unroll}
  func.return
}

// -----

func.func @step(%n: index) {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{the step of a loop must be positive, got 0}}
  scf.for %i = %c0 to %n step %c0 {
  }
  func.return
}

// -----

func.func @print(%a: f32) {
  // expected-error@+1 {{vector.print has no lowering in the llvm backend}}
  "vector.print"(%a) : (f32) -> ()
  func.return
}

// -----

func.func @power(%A: memref<1xbf16>, %k: i32) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<1xbf16>
  // expected-error@+1 {{math.fpowi has no lowering in the llvm backend: run low-legalize first}}
  %p = math.fpowi %a, %k : bf16, i32
  func.return
}

// -----

func.func @reduction(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<4xf32>, vector<4xf32>
  // expected-error@+1 {{vector.reduction <xor> does not work on f32}}
  %r = vector.reduction <xor>, %a : vector<4xf32> into f32
  func.return
}

// -----

func.func @result() -> f32 {
  %a = arith.constant 0.0 : f32
  // expected-error@+1 {{a low function returns nothing: results are written to buffers}}
  func.return %a : f32
}

// -----

// expected-error@+1 {{@declared is outside of the module: it takes numbers and pointers (low.access_ptr), got memref<4xf32>}}
func.func private @declared(memref<4xf32>) -> ()
func.func @calls(%A: memref<4xf32>) {
  func.call @declared(%A) : (memref<4xf32>) -> ()
  func.return
}

// -----

// expected-error@+1 {{@several is outside of the module: it gives one result or none}}
func.func private @several() -> (i32, i32)
func.func @calls() {
  %a, %b = func.call @several() : () -> (i32, i32)
  func.return
}

// -----

// expected-error@+1 {{@count has 1 parameters, but low.params names 1 and there are 1 symbols}}
func.func @count(%A: memref<?xf32>) attributes {
  low.params = [#low.param<"A", memref<?xf32>, read, ["n"]>], low.symbols = ["n"]
} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @kind is f32 to callers and memref<4xf32> here}}
func.func @kind(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", f32, read, []>]} {
  func.return
}

// -----

func.func @access(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<4xf32>, read, []>]} {
  %c0 = arith.constant 0 : index
  %a = arith.constant 0.0 : f32
  // expected-error@+1 {{memref.store writes parameter 'A' of @access, which is only read}}
  memref.store %a, %A[%c0] : memref<4xf32>
  func.return
}

// -----

func.func @multiply_add(%A: memref<4xbf16>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xbf16>
  // expected-error@+1 {{math.fma of bf16 has no form in LLVM IR: run low-legalize first}}
  %r = math.fma %a, %a, %a : bf16
  memref.store %r, %A[%c0] : memref<4xbf16>
  func.return
}

// -----

func.func @divide(%A: memref<1xi32>, %k: i32) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<1xi32>
  // expected-error@+1 {{arith.divsi by what may be zero or overflow has no form in LLVM IR: run low-legalize first}}
  %q = arith.divsi %a, %k : i32
  func.return
}

// -----

func.func @half(%A: memref<4xf16>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf16>
  // expected-error@+1 {{math.exp of f16 has no form in LLVM IR: run low-legalize first}}
  %r = math.exp %a : f16
  func.return
}

// -----

func.func @library(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<4xf32>, vector<4xf32>
  // expected-error@+1 {{math.erf of vectors has no form in LLVM IR: run low-legalize first}}
  %r = math.erf %a : vector<4xf32>
  func.return
}

// -----

func.func @unroll_nested() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c32 step %c1 {
    // expected-error@+1 {{a loop that is marked low.unroll makes 2048 copies of its body; at most 1024 are made}}
    scf.for %j = %c0 to %c64 step %c1 {
    } {low.unroll}
  } {low.unroll}
  func.return
}

// -----

func.func @local_alignment() {
  // expected-error@+1 {{local buffers are aligned to 4096 bytes at most, got 4611686018427387904}}
  %A = memref.alloca() {alignment = 4611686018427387904 : i64} : memref<64xf32, "local">
  func.return
}
