// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=skylake-avx512 -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s --check-prefix=AVX2

// Many channels: the windows of 48 pixels, for 8 channels at a time, before all results that they add to.

func.func @packed(%X: memref<1x32x24x24xf32>, %W: memref<32x32x3x3xf32>, %Y: memref<1x32x24x24xf32>) {
  %c1 = arith.constant 1 : index
  %c25 = arith.constant 25 : index
  %zero = arith.constant 0.000000e+00 : f32
  %Y_pad = memref.alloc() : memref<1x32x26x26xf32>
  tir.for %i0 in 1 {
    tir.for %i1 in 32 {
      tir.for %i2 in 26 {
        tir.for %i3 in 26 {
          tir.block "Y_pad" iters(%vi0: spatial<1>, %vi1: spatial<32>, %vi2: spatial<26>, %vi3: spatial<26>) = [%i0, %i1, %i2, %i3] {
            %0 = arith.cmpi sge, %vi2, %c1 : index
            %1 = arith.cmpi slt, %vi2, %c25 : index
            %2 = arith.andi %0, %1 : i1
            %3 = arith.cmpi sge, %vi3, %c1 : index
            %4 = arith.andi %2, %3 : i1
            %5 = arith.cmpi slt, %vi3, %c25 : index
            %6 = arith.andi %4, %5 : i1
            %7 = scf.if %6 -> (f32) {
              %8 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi2)
              %9 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi3)
              %x = memref.load %X[%vi0, %vi1, %8, %9] : memref<1x32x24x24xf32>
              scf.yield %x : f32
            } else {
              scf.yield %zero : f32
            }
            memref.store %7, %Y_pad[%vi0, %vi1, %vi2, %vi3] : memref<1x32x26x26xf32>
          }
        }
      }
    }
  }
  tir.for %n in 1 {
    tir.for %c in 32 {
      tir.for %h in 24 {
        tir.for %w in 24 {
          tir.for %rc in 32 {
            tir.for %rh in 3 {
              tir.for %rw in 3 {
                tir.block "Y" iters(%vn: spatial<1>, %vc: spatial<32>, %vh: spatial<24>, %vw: spatial<24>, %vrc: reduce<32>, %vrh: reduce<3>, %vrw: reduce<3>) = [%n, %c, %h, %w, %rc, %rh, %rw] {
                  tir.init {
                    memref.store %zero, %Y[%vn, %vc, %vh, %vw] : memref<1x32x24x24xf32>
                  }
                  %10 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vh, %vrh)
                  %11 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vw, %vrw)
                  %y_pad = memref.load %Y_pad[%vn, %vrc, %10, %11] : memref<1x32x26x26xf32>
                  %w_1 = memref.load %W[%vc, %vrc, %vrh, %vrw] : memref<32x32x3x3xf32>
                  %12 = arith.mulf %y_pad, %w_1 : f32
                  %13 = memref.load %Y[%vn, %vc, %vh, %vw] : memref<1x32x24x24xf32>
                  %14 = arith.addf %13, %12 : f32
                  memref.store %14, %Y[%vn, %vc, %vh, %vw] : memref<1x32x24x24xf32>
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @packed
// CHECK:         memref<4x1x32x576xf32, "local">
// CHECK:         %Y_pad_reindex = memref.alloc() : memref<1x12x32x3x3x48xf32>
// CHECK-NEXT:    tir.for %[[pixels:.*]] in 12 parallel {
// CHECK-NEXT:      tir.for %[[part:.*]] in 4 {
// CHECK-NEXT:        tir.for %[[vector:.*]] in 3 {
// CHECK-NEXT:          tir.for %[[channel:.*]] in 8 {
// CHECK-NEXT:            tir.for %{{.*}} in 3 unrolled {
// CHECK-NEXT:              tir.for %{{.*}} in 3 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                  tir.block "Y_pad_reindex"
// CHECK:             tir.for %[[rows:.*]] in 4 {
// CHECK:               tir.block "Y_rf_init"
// CHECK:               tir.for %[[k:.*]] in 72 {
// CHECK-NEXT:            tir.for %{{.*}} in 8 unrolled {
// CHECK-NEXT:              tir.for %{{.*}} in 3 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                  tir.block "Y_rf_update"
// CHECK:               tir.block "Y" iters

// -----

// Enough pixels for their number of channels: the lanes are filters, weights are laid out for them, and pixels are read in
// place, in strips of 30 rows. Results are turned as they are stored.

func.func @filters_in_lanes(%X: memref<1x24x61x25xf32>, %W: memref<32x24x3x3xf32>, %Y: memref<1x32x59x23xf32>) {
  %0 = arith.constant 0.000000e+00 : f32
  tir.for %n in 1 {
    tir.for %f in 32 {
      tir.for %i in 59 {
        tir.for %j in 23 {
          tir.for %c in 24 {
            tir.for %r in 3 {
              tir.for %s in 3 {
                tir.block "Y" iters(%vn: spatial<1>, %vf: spatial<32>, %vi: spatial<59>, %vj: spatial<23>, %vc: reduce<24>, %vr: reduce<3>, %vs: reduce<3>) = [%n, %f, %i, %j, %c, %r, %s] {
                  tir.init {
                    memref.store %0, %Y[%vn, %vf, %vi, %vj] : memref<1x32x59x23xf32>
                  }
                  %1 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vi, %vr)
                  %2 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vj, %vs)
                  %x = memref.load %X[%vn, %vc, %1, %2] : memref<1x24x61x25xf32>
                  %w = memref.load %W[%vf, %vc, %vr, %vs] : memref<32x24x3x3xf32>
                  %3 = arith.mulf %x, %w : f32
                  %4 = memref.load %Y[%vn, %vf, %vi, %vj] : memref<1x32x59x23xf32>
                  %5 = arith.addf %4, %3 : f32
                  memref.store %5, %Y[%vn, %vf, %vi, %vj] : memref<1x32x59x23xf32>
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @filters_in_lanes
// CHECK:         %Y_local = memref.alloc() : memref<1x59x23x32xf32, "local">
// CHECK:         tir.for %{{.*}} in 16 unrolled {
// CHECK-NEXT:      tir.block "W_global"
// CHECK:         tir.for %[[strip:.*]] in 2 parallel {
// CHECK:           tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:        tir.block "X_global"
// CHECK:           tir.for %{{.*}} in 30 {
// CHECK-NEXT:        tir.for %{{.*}} in 3 {
// CHECK:               tir.block "Y_init"
// CHECK:               tir.for %[[C:\w+]] in 24 {
// CHECK-NEXT:            tir.for %[[R:\w+]] in 3 {
// CHECK-NEXT:              tir.for %[[S:\w+]] in 3 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 8 unrolled {
// CHECK-NEXT:                  tir.for %{{.*}} in 2 unrolled {
// CHECK-NEXT:                    tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                      tir.block "Y_update"
// CHECK:                           tir.for %[[filter:.*]] in 32 {
// CHECK-NEXT:                        tir.for %{{.*}} in 8 unrolled {
// CHECK-NEXT:                          tir.block "Y_local" {{.*}}prefetch = {{\[\[}}"write", 0 : i64, [0 : i64, 0 : i64, 0 : i64, 8 : i64]]]

// -----

// Few channels: rows of pixels are read where they are, for pieces of 8 rows with their border.

func.func @in_place(%X: memref<1x3x64x64xf32>, %W: memref<16x3x3x3xf32>, %Y: memref<1x16x64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %zero = arith.constant 0.000000e+00 : f32
  %Y_pad = memref.alloc() : memref<1x3x66x66xf32>
  tir.for %i0 in 1 {
    tir.for %i1 in 3 {
      tir.for %i2 in 66 {
        tir.for %i3 in 66 {
          tir.block "Y_pad" iters(%vi0: spatial<1>, %vi1: spatial<3>, %vi2: spatial<66>, %vi3: spatial<66>) = [%i0, %i1, %i2, %i3] {
            %0 = arith.cmpi sge, %vi2, %c1 : index
            %1 = arith.cmpi slt, %vi2, %c65 : index
            %2 = arith.andi %0, %1 : i1
            %3 = arith.cmpi sge, %vi3, %c1 : index
            %4 = arith.andi %2, %3 : i1
            %5 = arith.cmpi slt, %vi3, %c65 : index
            %6 = arith.andi %4, %5 : i1
            %7 = scf.if %6 -> (f32) {
              %8 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi2)
              %9 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi3)
              %x = memref.load %X[%vi0, %vi1, %8, %9] : memref<1x3x64x64xf32>
              scf.yield %x : f32
            } else {
              scf.yield %zero : f32
            }
            memref.store %7, %Y_pad[%vi0, %vi1, %vi2, %vi3] : memref<1x3x66x66xf32>
          }
        }
      }
    }
  }
  tir.for %n in 1 {
    tir.for %c in 16 {
      tir.for %h in 64 {
        tir.for %w in 64 {
          tir.for %rc in 3 {
            tir.for %rh in 3 {
              tir.for %rw in 3 {
                tir.block "Y" iters(%vn: spatial<1>, %vc: spatial<16>, %vh: spatial<64>, %vw: spatial<64>, %vrc: reduce<3>, %vrh: reduce<3>, %vrw: reduce<3>) = [%n, %c, %h, %w, %rc, %rh, %rw] {
                  tir.init {
                    memref.store %zero, %Y[%vn, %vc, %vh, %vw] : memref<1x16x64x64xf32>
                  }
                  %10 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vh, %vrh)
                  %11 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vw, %vrw)
                  %y_pad = memref.load %Y_pad[%vn, %vrc, %10, %11] : memref<1x3x66x66xf32>
                  %w_1 = memref.load %W[%vc, %vrc, %vrh, %vrw] : memref<16x3x3x3xf32>
                  %12 = arith.mulf %y_pad, %w_1 : f32
                  %13 = memref.load %Y[%vn, %vc, %vh, %vw] : memref<1x16x64x64xf32>
                  %14 = arith.addf %13, %12 : f32
                  memref.store %14, %Y[%vn, %vc, %vh, %vw] : memref<1x16x64x64xf32>
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @in_place
// CHECK:         tir.for %[[some:.*]] in 8 parallel {
// CHECK:           tir.block "Y_pad" iters
// CHECK:           tir.for %[[channels:.*]] in 4 {
// CHECK-NEXT:        tir.for %[[row:.*]] in 8 {
// CHECK:               tir.block "Y_init"
// CHECK:               tir.for %[[RC:\w+]] in 3 {
// CHECK-NEXT:            tir.for %[[RH:\w+]] in 3 unrolled {
// CHECK-NEXT:              tir.for %[[RW:\w+]] in 3 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 4 unrolled {
// CHECK-NEXT:                  tir.for %{{.*}} in 4 unrolled {
// CHECK-NEXT:                    tir.for %{{.*}} in 16 vectorized {
// CHECK:               tir.block "Y_local"

// -----

// One channel each: several rows in registers, which read most data together, a column of the window at a time.

func.func @depthwise(%X: memref<1x8x64x64xf32>, %W: memref<8x1x3x3xf32>, %Y: memref<1x8x64x64xf32>) {
  %c1 = arith.constant 1 : index
  %c65 = arith.constant 65 : index
  %zero = arith.constant 0.000000e+00 : f32
  %Y_pad = memref.alloc() : memref<1x8x66x66xf32>
  tir.for %i0 in 1 {
    tir.for %i1 in 8 {
      tir.for %i2 in 66 {
        tir.for %i3 in 66 {
          tir.block "Y_pad" iters(%vi0: spatial<1>, %vi1: spatial<8>, %vi2: spatial<66>, %vi3: spatial<66>) = [%i0, %i1, %i2, %i3] {
            %0 = arith.cmpi sge, %vi2, %c1 : index
            %1 = arith.cmpi slt, %vi2, %c65 : index
            %2 = arith.andi %0, %1 : i1
            %3 = arith.cmpi sge, %vi3, %c1 : index
            %4 = arith.andi %2, %3 : i1
            %5 = arith.cmpi slt, %vi3, %c65 : index
            %6 = arith.andi %4, %5 : i1
            %7 = scf.if %6 -> (f32) {
              %8 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi2)
              %9 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi3)
              %x = memref.load %X[%vi0, %vi1, %8, %9] : memref<1x8x64x64xf32>
              scf.yield %x : f32
            } else {
              scf.yield %zero : f32
            }
            memref.store %7, %Y_pad[%vi0, %vi1, %vi2, %vi3] : memref<1x8x66x66xf32>
          }
        }
      }
    }
  }
  tir.for %n in 1 {
    tir.for %c in 8 {
      tir.for %h in 64 {
        tir.for %w in 64 {
          tir.for %rc in 1 {
            tir.for %rh in 3 {
              tir.for %rw in 3 {
                tir.block "Y" iters(%vn: spatial<1>, %vc: spatial<8>, %vh: spatial<64>, %vw: spatial<64>, %vrc: reduce<1>, %vrh: reduce<3>, %vrw: reduce<3>) = [%n, %c, %h, %w, %rc, %rh, %rw] {
                  tir.init {
                    memref.store %zero, %Y[%vn, %vc, %vh, %vw] : memref<1x8x64x64xf32>
                  }
                  %10 = affine.apply affine_map<(d0, d1) -> (((d0 floordiv 1) + d1))> (%vc, %vrc)
                  %11 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vh, %vrh)
                  %12 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vw, %vrw)
                  %y_pad = memref.load %Y_pad[%vn, %10, %11, %12] : memref<1x8x66x66xf32>
                  %w_1 = memref.load %W[%vc, %vrc, %vrh, %vrw] : memref<8x1x3x3xf32>
                  %13 = arith.mulf %y_pad, %w_1 : f32
                  %14 = memref.load %Y[%vn, %vc, %vh, %vw] : memref<1x8x64x64xf32>
                  %15 = arith.addf %14, %13 : f32
                  memref.store %15, %Y[%vn, %vc, %vh, %vw] : memref<1x8x64x64xf32>
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
// The border is part of the windows, a tile is a vector of each of four rows.
// CHECK-LABEL: @depthwise
// CHECK:         tir.for %{{.*}} in 8 parallel {
// CHECK-NEXT:      tir.for %{{.*}} in 16 {
// CHECK-NEXT:        tir.for %{{.*}} in 4 {
// CHECK:               tir.block "Y_init"
// CHECK:               tir.for %[[RW:\w+]] in 3 unrolled {
// CHECK-NEXT:            tir.for %[[RC:\w+]] in 1 unrolled {
// CHECK-NEXT:            tir.for %[[RH:\w+]] in 3 unrolled {
// CHECK-NEXT:              tir.for %{{.*}} in 4 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 1 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                  tir.block "Y_update"
// CHECK-NOT:         tir.block "Y_pad"
// CHECK:               tir.block "Y_local"

// -----

// Blocks of channels: with 32 registers a tile is a row, with 16 tiles go on from row to row.

func.func @blocked(%X: memref<1x2x14x14x16xf32>, %W: memref<2x2x3x3x16x16xf32>, %Y: memref<1x2x14x14x16xf32>) {
  %c1 = arith.constant 1 : index
  %c15 = arith.constant 15 : index
  %zero = arith.constant 0.000000e+00 : f32
  %Y_pad = memref.alloc() : memref<1x2x16x16x16xf32>
  tir.for %i0 in 1 {
    tir.for %i1 in 2 {
      tir.for %i2 in 16 {
        tir.for %i3 in 16 {
          tir.for %i4 in 16 {
            tir.block "Y_pad" iters(%vi0: spatial<1>, %vi1: spatial<2>, %vi2: spatial<16>, %vi3: spatial<16>, %vi4: spatial<16>) = [%i0, %i1, %i2, %i3, %i4] {
              %0 = arith.cmpi sge, %vi2, %c1 : index
              %1 = arith.cmpi slt, %vi2, %c15 : index
              %2 = arith.andi %0, %1 : i1
              %3 = arith.cmpi sge, %vi3, %c1 : index
              %4 = arith.andi %2, %3 : i1
              %5 = arith.cmpi slt, %vi3, %c15 : index
              %6 = arith.andi %4, %5 : i1
              %7 = scf.if %6 -> (f32) {
                %8 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi2)
                %9 = affine.apply affine_map<(d0) -> ((d0 + -1))> (%vi3)
                %x = memref.load %X[%vi0, %vi1, %8, %9, %vi4] : memref<1x2x14x14x16xf32>
                scf.yield %x : f32
              } else {
                scf.yield %zero : f32
              }
              memref.store %7, %Y_pad[%vi0, %vi1, %vi2, %vi3, %vi4] : memref<1x2x16x16x16xf32>
            }
          }
        }
      }
    }
  }
  tir.for %n in 1 {
    tir.for %b in 2 {
      tir.for %h in 14 {
        tir.for %w in 14 {
          tir.for %f in 16 {
            tir.for %rb in 2 {
              tir.for %rh in 3 {
                tir.for %rw in 3 {
                  tir.for %rc in 16 {
                    tir.block "Y" iters(%vn: spatial<1>, %vb: spatial<2>, %vh: spatial<14>, %vw: spatial<14>, %vf: spatial<16>, %vrb: reduce<2>, %vrh: reduce<3>, %vrw: reduce<3>, %vrc: reduce<16>) = [%n, %b, %h, %w, %f, %rb, %rh, %rw, %rc] {
                      tir.init {
                        memref.store %zero, %Y[%vn, %vb, %vh, %vw, %vf] : memref<1x2x14x14x16xf32>
                      }
                      %10 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vh, %vrh)
                      %11 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vw, %vrw)
                      %y_pad = memref.load %Y_pad[%vn, %vrb, %10, %11, %vrc] : memref<1x2x16x16x16xf32>
                      %w_1 = memref.load %W[%vb, %vrb, %vrh, %vrw, %vrc, %vf] : memref<2x2x3x3x16x16xf32>
                      %12 = arith.mulf %y_pad, %w_1 : f32
                      %13 = memref.load %Y[%vn, %vb, %vh, %vw, %vf] : memref<1x2x14x14x16xf32>
                      %14 = arith.addf %13, %12 : f32
                      memref.store %14, %Y[%vn, %vb, %vh, %vw, %vf] : memref<1x2x14x14x16xf32>
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @blocked
// CHECK:         tir.for %{{.*}} in 2 parallel {
// CHECK:           tir.block "Y_pad"
// CHECK:           tir.for %{{.*}} in 2 {
// CHECK-NEXT:        tir.for %{{.*}} in 7 {
// CHECK-NEXT:          tir.for %{{.*}} in 1 {
// CHECK:             tir.block "Y_init"
// CHECK:             tir.for %[[RB:\w+]] in 2 {
// CHECK-NEXT:          tir.for %[[RH:\w+]] in 3 {
// CHECK-NEXT:            tir.for %[[RW:\w+]] in 3 {
// CHECK-NEXT:              tir.for %[[RC:\w+]] in 16 {
// CHECK-NEXT:                tir.for %{{.*}} in 14 unrolled {
// CHECK-NEXT:                  tir.for %{{.*}} in 1 unrolled {
// CHECK-NEXT:                    tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                      tir.block "Y_update"
// CHECK:             tir.block "Y_local"

// AVX2-LABEL: @blocked
// AVX2:         tir.block "Y_pad"
// AVX2:         tir.for %{{.*}} in {{[0-9]+}} parallel {
// AVX2:           tir.block "Y_init" iters(%{{.*}}: spatial<1>, %{{.*}}: spatial<2>, %{{.*}}: spatial<196>, %{{.*}}: spatial<16>)
// AVX2:           tir.for %[[RB:\w+]] in 2 {
// AVX2-NEXT:        tir.for %[[RH:\w+]] in 3 {
// AVX2-NEXT:          tir.for %[[RW:\w+]] in 3 {
// AVX2-NEXT:            tir.for %[[RC0:\w+]] in 4 {
// AVX2-NEXT:              tir.for %[[RC1:\w+]] in 4 unrolled {
// AVX2:                     tir.for %{{.*}} in 8 vectorized {
// AVX2-NEXT:                  tir.block "Y_update"
// AVX2:           tir.block "Y_local"

// -----

// Images of symbolic extents: masks of a tile are computed once for eight channels.

func.func @symbolic_depthwise(%X: memref<?x24x?x?xf32>, %W: memref<24x3x3xf32>, %Y: memref<?x24x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.000000e+00 : f32
  %n0 = memref.dim %Y, %c0 : memref<?x24x?x?xf32>
  %rows = memref.dim %Y, %c2 : memref<?x24x?x?xf32>
  %columns = memref.dim %Y, %c3 : memref<?x24x?x?xf32>
  tir.for %n in %n0 {
    tir.for %c in 24 {
      tir.for %h in %rows {
        tir.for %w in %columns {
          tir.for %rh in 3 {
            tir.for %rw in 3 {
              tir.block "Y" iters(%vn: spatial<%n0>, %vc: spatial<24>, %vh: spatial<%rows>, %vw: spatial<%columns>, %vrh: reduce<3>, %vrw: reduce<3>) = [%n, %c, %h, %w, %rh, %rw] {
                tir.init {
                  memref.store %zero, %Y[%vn, %vc, %vh, %vw] : memref<?x24x?x?xf32>
                }
                %0 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vh, %vrh)
                %1 = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vw, %vrw)
                %x = memref.load %X[%vn, %vc, %0, %1] : memref<?x24x?x?xf32>
                %weight = memref.load %W[%vc, %vrh, %vrw] : memref<24x3x3xf32>
                %2 = arith.mulf %x, %weight : f32
                %3 = memref.load %Y[%vn, %vc, %vh, %vw] : memref<?x24x?x?xf32>
                %4 = arith.addf %3, %2 : f32
                memref.store %4, %Y[%vn, %vc, %vh, %vw] : memref<?x24x?x?xf32>
              }
            }
          }
        }
      }
    }
  }
  func.return
}

// CHECK-LABEL: @symbolic_depthwise
// CHECK:         tir.for %{{.*}} in %{{.*}} parallel {
// CHECK-NEXT:      tir.for %{{.*}} in 3 {
// CHECK-NEXT:        tir.for %[[columns:.*]] in %{{.*}} {
// CHECK-NEXT:          tir.for %[[rows:.*]] in %{{.*}} attributes {interior = true} {
// CHECK-NEXT:            tir.for %[[channel:.*]] in 8 {
// CHECK-NEXT:              tir.for %{{.*}} in 4 unrolled {
// CHECK-NEXT:                tir.for %{{.*}} in 16 vectorized {
// CHECK-NEXT:                  tir.block "Y_init"
