// RUN: weft-opt %s -p plan-memory --split-input-file --verify-diagnostics | filecheck %s
// RUN: weft-opt %s -p plan-memory --split-input-file --verify-diagnostics | weft-opt --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'plan-memory{arena=false}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=SLOTS

// Two are alive at a time: the third lies where the first was. Offsets are multiples of 64 bytes.
// CHECK-LABEL: func.func @chain(%x: memref<5xf32>, %y: memref<5xf32>) attributes {tir.arena_bytes = 128 : i64} {
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64} : memref<128xi8>
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %a = memref.view %arena[%[[A]]][] : memref<128xi8> to memref<5xf32>
// CHECK-NEXT:    %[[B:.*]] = arith.constant 64 : index
// CHECK-NEXT:    %b = memref.view %arena[%[[B]]][] : memref<128xi8> to memref<5xf32>
// CHECK-NEXT:    %[[C:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %c = memref.view %arena[%[[C]]][] : memref<128xi8> to memref<5xf32>
// CHECK-NEXT:    func.call @shift(%x, %a)
// CHECK-NEXT:    func.call @shift(%a, %b)
// CHECK-NEXT:    func.call @shift(%b, %c)
// CHECK-NEXT:    func.call @shift(%c, %y)
// CHECK-NEXT:    func.return
//
// SLOTS-LABEL: func.func @chain(%x: memref<5xf32>, %y: memref<5xf32>) attributes {tir.arena_bytes = [20 : i64, 20 : i64]} {
// SLOTS-NEXT:    %slot = memref.alloc() {alignment = 64 : i64} : memref<20xi8>
// SLOTS-NEXT:    %slot_1 = memref.alloc() {alignment = 64 : i64} : memref<20xi8>
// SLOTS-NEXT:    %[[A:.*]] = arith.constant 0 : index
// SLOTS-NEXT:    %a = memref.view %slot[%[[A]]][] : memref<20xi8> to memref<5xf32>
// SLOTS:         %b = memref.view %slot_1[
// SLOTS:         %c = memref.view %slot[
func.func @chain(%x: memref<5xf32>, %y: memref<5xf32>) {
  %a = memref.alloc() : memref<5xf32>
  %b = memref.alloc() : memref<5xf32>
  %c = memref.alloc() : memref<5xf32>
  func.call @shift(%x, %a) : (memref<5xf32>, memref<5xf32>) -> ()
  func.call @shift(%a, %b) : (memref<5xf32>, memref<5xf32>) -> ()
  func.call @shift(%b, %c) : (memref<5xf32>, memref<5xf32>) -> ()
  func.call @shift(%c, %y) : (memref<5xf32>, memref<5xf32>) -> ()
  func.return
}
func.func private @shift(memref<5xf32>, memref<5xf32>)

// -----

// Uses through casts count. Extents are looked through; sizes of which none is always the greatest are compared at the
// call, and a size that is no multiple of 64 is rounded there.
// CHECK-LABEL: func.func @symbolic
// CHECK-SAME:    tir.arena_bytes = "max(64 * ((4 * m + 63) floordiv 64) + 320 * n, 512 * n)"
// CHECK:         %n = memref.dim %x
// CHECK-NEXT:    %m = memref.dim %z
// CHECK-NEXT:    %[[N2:.*]] = affine.apply
// CHECK:         %[[SIZE:.*]] = arith.maxsi
// CHECK-NEXT:    %arena = memref.alloc(%[[SIZE]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK-DAG:     %a = memref.view %arena[{{.*}}][%n] : memref<?xi8> to memref<?x64xf32>
// CHECK-DAG:     %b = memref.view %arena[{{.*}}][%n] : memref<?xi8> to memref<?x64xf32>
// CHECK-DAG:     %c = memref.view %arena[{{.*}}][%m] : memref<?xi8> to memref<?xf32>
// CHECK:         "memref.cast"(%a) : (memref<?x64xf32>) -> memref<?x?xf32>
//
// SLOTS-LABEL: func.func @symbolic
// SLOTS-SAME:    tir.arena_bytes = ["max(256 * n, 4 * m)", "256 * n"]
// SLOTS:         %[[SIZE:.*]] = arith.maxsi
// SLOTS-NEXT:    %slot = memref.alloc(%[[SIZE]])
func.func @symbolic(%x: memref<?x64xf32>, %z: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %m = memref.dim %z, %c0 : memref<?xf32>
  %n2 = affine.apply affine_map<(d0) -> (d0 * 2)> (%n)
  %a = memref.alloc(%n) : memref<?x64xf32>
  %b = memref.alloc(%n) : memref<?x64xf32>
  %c = memref.alloc(%m) : memref<?xf32>
  %d = memref.alloc(%n2) : memref<?x8xf32>
  func.call @rows(%x, %a) : (memref<?x64xf32>, memref<?x64xf32>) -> ()
  %cast = memref.cast %a : memref<?x64xf32> to memref<?x?xf32>
  func.call @any(%cast, %b) : (memref<?x?xf32>, memref<?x64xf32>) -> ()
  func.call @last(%b, %c) : (memref<?x64xf32>, memref<?xf32>) -> ()
  func.call @end(%c, %d) : (memref<?xf32>, memref<?x8xf32>) -> ()
  func.return
}
func.func private @rows(memref<?x64xf32>, memref<?x64xf32>)
func.func private @any(memref<?x?xf32>, memref<?x64xf32>)
func.func private @last(memref<?x64xf32>, memref<?xf32>)
func.func private @end(memref<?xf32>, memref<?x8xf32>)

// -----

// Other names of temporaries stand behind the arena, whose size needs all extents.
// CHECK-LABEL: func.func @renamed
// CHECK-SAME:    tir.arena_bytes = "512 * n"
// CHECK:         %arena = memref.alloc
// CHECK:         %a = memref.view %arena[
// CHECK:         %b = memref.view %arena[
// CHECK-NEXT:    %flat = memref.reinterpret_cast %a
// CHECK-NEXT:    func.call @rows(%x, %a)
// CHECK-NEXT:    func.call @flat(%flat, %b)
func.func @renamed(%x: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  %n64 = affine.apply affine_map<(d0) -> (d0 * 64)> (%n)
  %a = memref.alloc(%n) : memref<?x64xf32>
  %flat = memref.reinterpret_cast %a to offset: [0], sizes: [%n64], strides: [1] : memref<?x64xf32> to memref<?xf32>
  %b = memref.alloc(%n64) : memref<?xf32>
  func.call @rows(%x, %a) : (memref<?x64xf32>, memref<?x64xf32>) -> ()
  func.call @flat(%flat, %b) : (memref<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func private @rows(memref<?x64xf32>, memref<?x64xf32>)
func.func private @flat(memref<?xf32>, memref<?xf32>)

// -----

// What loops access, what is aligned to more, and what no call takes, stays.
// CHECK-LABEL: func.func @stays
// CHECK-NOT:     arena
// CHECK:         %a = memref.alloc() : memref<4xf32>
// CHECK:         %b = memref.alloc() {alignment = 128 : i64} : memref<4xf32>
func.func @stays(%x: memref<4xf32>, %y: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() {alignment = 128 : i64} : memref<4xf32>
  func.call @shift(%x, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @shift(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  tir.for %i in 4 {
    tir.block "copy" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %a[%v] : memref<4xf32>
      memref.store %e, %y[%v] : memref<4xf32>
    }
  }
  func.return
}
func.func private @shift(memref<4xf32>, memref<4xf32>)

// -----

// expected-error@below {{@huge: its temporaries take 144,115,188,075,855,872 bytes at a time, more than an address space holds (72,057,594,037,927,936)}}
func.func @huge(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<1073741824x16777216xf32>
  %b = memref.alloc() : memref<1073741824x16777216xf32>
  func.call @f(%x, %a, %b) : (memref<4xf32>, memref<1073741824x16777216xf32>, memref<1073741824x16777216xf32>) -> ()
  func.return
}
func.func private @f(memref<4xf32>, memref<1073741824x16777216xf32>, memref<1073741824x16777216xf32>)
