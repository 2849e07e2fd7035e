// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @wide(%c: vector<4xi64>, %a: vector<16xi8>) {
  // expected-error@+1 {{low.dot adds products of i8 to i32, got vector<4xi64>, vector<16xi8>, vector<16xi8>}}
  %r = low.dot %c, %a as si8, %a as si8 : vector<4xi64>, vector<16xi8>, vector<16xi8>
  func.return
}

// -----

func.func @matrix(%c: vector<4xi32>, %a: vector<4x4xi8>) {
  // expected-error@+1 {{low.dot works on vectors of one dimension, got vector<4xi32>, vector<4x4xi8>}}
  %r = low.dot %c, %a as si8, %a as si8 : vector<4xi32>, vector<4x4xi8>, vector<4x4xi8>
  func.return
}

// -----

func.func @signless(%c: vector<4xi32>, %a: vector<16xi8>) {
  // expected-error@+1 {{low.dot reads si8, ui1 to ui8, si16, ui16 or bf16, got i8}}
  %r = low.dot %c, %a as i8, %a as si8 : vector<4xi32>, vector<16xi8>, vector<16xi8>
  func.return
}

// -----

func.func @width(%c: vector<4xi32>, %a: vector<16xi8>) {
  // expected-error@+1 {{low.dot reads i8 as si16}}
  %r = low.dot %c, %a as si16, %a as si8 : vector<4xi32>, vector<16xi8>, vector<16xi8>
  func.return
}

// -----

func.func @widths(%c: vector<4xi32>, %a: vector<16xi8>, %b: vector<16xi16>) {
  // expected-error@+1 {{low.dot multiplies numbers of one width and kind, got si8 and si16}}
  %r = low.dot %c, %a as si8, %b as si16 : vector<4xi32>, vector<16xi8>, vector<16xi16>
  func.return
}

// -----

func.func @groups(%c: vector<4xi32>, %a: vector<8xi8>, %b: vector<16xi8>) {
  // expected-error@+1 {{low.dot takes a group of lanes for each of 4 sums, or one for all, got 8 and 16}}
  %r = low.dot %c, %a as si8, %b as si8 : vector<4xi32>, vector<8xi8>, vector<16xi8>
  func.return
}

// -----

func.func @no_pointer(%p: !ptr_xdsl.ptr, %C: memref<4xi32>, %i: index) {
  %c = low.access_ptr %C[%i] sizes [4] readwrite : memref<4xi32>
  // expected-error@+1 {{low.tile_dot takes pointers of low.access_ptr}}
  low.tile_dot %p as si8, %p as si8 onto %c {lanes = 4 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @box(%A: memref<64xi8>, %C: memref<4xi32>, %i: index) {
  %a = low.access_ptr %A[%i] sizes [4] read : memref<64xi8>
  %c = low.access_ptr %C[%i] sizes [4] readwrite : memref<4xi32>
  // expected-error@+1 {{low.tile_dot works on 16 elements, got a box of [4]}}
  low.tile_dot %a as si8, %a as si8 onto %c {lanes = 4 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @sums(%A: memref<64xi8>, %C: memref<4xi16>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<64xi8>
  %c = low.access_ptr %C[%i] sizes [4] readwrite : memref<4xi16>
  // expected-error@+1 {{low.tile_dot adds to i32, got i16}}
  low.tile_dot %a as si8, %a as si8 onto %c {lanes = 4 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @tile_widths(%A: memref<64xi8>, %B: memref<64xi16>, %C: memref<4xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<64xi8>
  %b = low.access_ptr %B[%i] read : memref<64xi16>
  %c = low.access_ptr %C[%i] sizes [4] readwrite : memref<4xi32>
  // expected-error@+1 {{low.tile_dot multiplies numbers of one width and kind, got si8 and si16}}
  low.tile_dot %a as si8, %b as si16 onto %c {lanes = 4 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @no_lanes(%A: memref<64xi8>, %C: memref<4xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<64xi8>
  %c = low.access_ptr %C[%i] readwrite : memref<4xi32>
  // expected-error@+1 {{low.tile_dot has at least one lane and step, got 0 : i64 and 4 : i64}}
  low.tile_dot %a as si8, %a as si8 onto %c {lanes = 0 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @no_rows(%A: memref<64xi8>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<64xi8>
  // expected-error@+1 {{low.tile_interleave has at least one lane and row, got 4 : i64 and 0 : i64}}
  low.tile_interleave %a, %i to %a {lanes = 4 : i64, rows = 0 : i64}
  func.return
}

// -----

func.func @moved(%A: memref<64xi8>, %B: memref<64xi16>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<64xi8>
  %b = low.access_ptr %B[%i] write : memref<64xi16>
  // expected-error@+1 {{low.tile_interleave moves i8 to i16}}
  low.tile_interleave %a, %i to %b {lanes = 4 : i64, rows = 4 : i64}
  func.return
}

// -----

func.func @vast(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] readwrite : memref<?xi32>
  // expected-error@+1 {{low.tile_dot works on at most 65,536 elements of a buffer, got 36,893,488,147,419,103,228}}
  low.tile_dot %a as si8, %a as si8 onto %c {lanes = 9223372036854775807 : i64, steps = 4 : i64}
  func.return
}

// -----

func.func @kinds(%c: vector<4xf32>, %a: vector<8xbf16>, %b: vector<8xi16>) {
  // expected-error@+1 {{low.dot multiplies numbers of one width and kind, got bf16 and si16}}
  %r = low.dot %c, %a as bf16, %b as si16 : vector<4xf32>, vector<8xbf16>, vector<8xi16>
  func.return
}

// -----

func.func @sums(%c: vector<4xi32>, %a: vector<8xbf16>) {
  // expected-error@+1 {{low.dot adds products of bf16 to f32, got vector<4xi32>, vector<8xbf16>, vector<8xbf16>}}
  %r = low.dot %c, %a as bf16, %a as bf16 : vector<4xi32>, vector<8xbf16>, vector<8xbf16>
  func.return
}

// -----

func.func @halves(%c: vector<4xf32>, %a: vector<8xf16>) {
  // expected-error@+1 {{low.dot reads si8, ui1 to ui8, si16, ui16 or bf16, got f16}}
  %r = low.dot %c, %a as f16, %a as f16 : vector<4xf32>, vector<8xf16>, vector<8xf16>
  func.return
}

// -----

func.func @narrow_and_signed(%c: vector<4xi32>, %a: vector<16xi8>) {
  // expected-error@+1 {{low.dot reads si8, ui1 to ui8, si16, ui16 or bf16, got si4}}
  %r = low.dot %c, %a as si4, %a as si8 : vector<4xi32>, vector<16xi8>, vector<16xi8>
  func.return
}

// -----

func.func @narrow_halves(%c: vector<8xi32>, %a: vector<16xi16>) {
  // expected-error@+1 {{low.dot reads i16 as ui4}}
  %r = low.dot %c, %a as si16, %a as ui4 : vector<8xi32>, vector<16xi16>, vector<16xi16>
  func.return
}
