// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @sums(%A: memref<?xi8>, %C: memref<?xf32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xf32>
  // expected-error@+1 {{low.tile_product adds to i32, got f32}}
  low.tile_product %a[%i] as ui8, %a[%i] as si8 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 4 : i64, extents = array<i64>}
  func.return
}

// -----

func.func @kinds(%A: memref<?xi8>, %B: memref<?xbf16>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %b = low.access_ptr %B[%i] read : memref<?xbf16>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product multiplies numbers of one width and kind, got ui8 and bf16}}
  low.tile_product %a[%i] as ui8, %b[%i] as bf16 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 4 : i64, extents = array<i64>}
  func.return
}

// -----

func.func @empty(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product has positive rows, columns, depth and extents, got [4, 4, 4, 0]}}
  low.tile_product %a[%i, %i] as ui8, %a[%i, %i] as si8 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 4 : i64, extents = array<i64: 0>}
  func.return
}

// -----

func.func @registers(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product holds all sums in 8 tiles of 16 x 16 with its factors, got 48 rows and 32 columns}}
  low.tile_product %a[%i] as ui8, %a[%i] as si8 onto %c[%i] {rows = 48 : i64, columns = 32 : i64, depth = 4 : i64, extents = array<i64>}
  func.return
}

// -----

func.func @depth(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product multiplies whole groups of 4 elements and at most 64 bytes at once, got depth 68 of i8}}
  low.tile_product %a[%i] as ui8, %a[%i] as si8 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 68 : i64, extents = array<i64>}
  func.return
}

// -----

func.func @distances(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product has a distance of rows and one for each of 1 levels, got 1 of A and 2 of B}}
  low.tile_product %a[%i] as ui8, %a[%i, %i] as si8 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 4 : i64, extents = array<i64: 2>}
  func.return
}

// -----

func.func @narrow(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] write : memref<?xi32>
  // expected-error@+1 {{low.tile_product reads all bits of its factors, got ui4}}
  low.tile_product %a[%i] as ui4, %a[%i] as si8 onto %c[%i] {rows = 4 : i64, columns = 4 : i64, depth = 4 : i64, extents = array<i64>}
  func.return
}
