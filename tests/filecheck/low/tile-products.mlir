// RUN: weft-opt %s | filecheck %s
// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=sapphirerapids -mtriple=x86_64-unknown-linux-gnu"}' | filecheck %s
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=znver4"}' | filecheck %s --check-prefix=ZEN4
// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=sapphirerapids}' | filecheck %s --check-prefix=LLVM
// RUN: weft-opt %s -t c | filecheck %s --check-prefix=SOURCE
// RUN: not weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=znver4}' 2>&1 | filecheck %s --check-prefix=ERROR

func.func @product(%A: memref<?xbf16>, %B: memref<?xbf16>, %C: memref<?xf32>, %i: index, %n: index, %k: index) {
  %a = low.access_ptr %A[%i] read : memref<?xbf16>
  %b = low.access_ptr %B[%i] read : memref<?xbf16>
  %c = low.access_ptr %C[%i] write : memref<?xf32>
  low.tile_product %a[%n, %k] as bf16, %b[%n, %k] as bf16 onto %c[%n] {rows = 20 : i64, columns = 16 : i64, depth = 32 : i64, extents = array<i64: 4>, from_zero}
  func.return
}
// CHECK-LABEL: @product
// CHECK:         low.tile_product %a[%n, %k] as bf16, %b[%n, %k] as bf16 onto %c[%n] {rows = 20 : i64, columns = 16 : i64, depth = 32 : i64, extents = array<i64: 4>, from_zero}

// Rows, levels, and groups of a level, around a dot product for 16 columns.
// ZEN4-LABEL:  @product
// ZEN4:          scf.for
// ZEN4:            arith.constant dense<0.000000e+00> : vector<16xf32>
// ZEN4:            scf.for {{.*}} -> (vector<16xf32>)
// ZEN4:              scf.for {{.*}} -> (vector<16xf32>)
// ZEN4:                low.dot %{{.*}}, %{{.*}} as bf16, %{{.*}} as bf16 : vector<16xf32>, vector<2xbf16>, vector<32xbf16>
// ZEN4:            vector.store
// ZEN4-NOT:      low.tile_product

// 16 and 4 rows of sums in tiles 0 and 1, of A in tiles 2 and 3, and B in tile 4.
// LLVM:        @weft.tiles.0 = private unnamed_addr constant [64 x i8] c"\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\40\00\40\00\40\00\40\00\40\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\10\04\10\04\10\00\00\00\00\00\00\00\00\00\00\00", align 64
// LLVM-LABEL:  define internal void @weft.tile_product.0(
// LLVM:          call void @llvm.x86.tilezero(i8 0)
// LLVM-NEXT:     call void @llvm.x86.tilezero(i8 1)
// LLVM:        body.0:
// LLVM:          call void @llvm.x86.tileloadd64(i8 4, ptr %at.b.0, i64 %b.rows.bytes)
// LLVM-NEXT:     call void @llvm.x86.tileloadd64(i8 2, ptr %at.a.0, i64 %a.rows.bytes)
// LLVM-NEXT:     call void @llvm.x86.tdpbf16ps(i8 0, i8 2, i8 4)
// LLVM-NEXT:     call void @llvm.x86.tileloadd64(i8 3, ptr %a.part.1, i64 %a.rows.bytes)
// LLVM-NEXT:     call void @llvm.x86.tdpbf16ps(i8 1, i8 3, i8 4)
// LLVM:        exit.0:
// LLVM-COUNT-2:  call void @llvm.x86.tilestored64(
// LLVM-LABEL:  define void @product(
// LLVM:          %[[SAME:.*]] = icmp eq i32 %{{.*}}, 0
// LLVM-NEXT:     br i1 %[[SAME]], label %configured, label %configure
// LLVM:        configure:
// LLVM-NEXT:     call void @weft.tiles.configure(ptr @weft.tiles.0)
// LLVM-NEXT:     store i32 0, ptr %tiles
// LLVM:        configured:
// LLVM:          call void @weft.tile_product.0(ptr %{{.*}}, i64 %n, i64 %k, ptr %{{.*}}, i64 %n, i64 %k, ptr %{{.*}}, i64 %n)
// LLVM-NEXT:     call void @llvm.x86.tilerelease()
// LLVM-NEXT:     ret void

// SOURCE:      #if WEFT_TILES && defined(__AMX_BF16__)
// SOURCE:        _tile_loadconfig(configuration);
// SOURCE:          _tile_dpbf16ps(0, 2, 4);
// SOURCE:        _tile_release();
// SOURCE:      #else
// SOURCE:          sum += weft_bf16_to_f32(left[k]) * weft_bf16_to_f32(right[place]);

// ERROR: low.tile_product: znver4 has no instruction for tiles of bf16 and bf16; run low-lower-dots for it
