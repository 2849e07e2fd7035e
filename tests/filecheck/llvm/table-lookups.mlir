// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=znver4}' | filecheck %s
// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=skylake-avx512}' | filecheck %s --check-prefix=GATHER
// GATHER-NOT: vpermi2var

// Bytes of 256 are selected in registers, with zeros if the mask is false; other tables are gathered.
// CHECK-LABEL: define void @lookup
// CHECK:         trunc <16 x i64> %{{.*}} to <16 x i8>
// CHECK-COUNT-4: load <64 x i8>, ptr %{{.*}}, align 1
// CHECK-COUNT-2: call <64 x i8> @llvm.x86.avx512.vpermi2var.qi.512(
// CHECK:         icmp slt <64 x i8>
// CHECK:         select <64 x i1>
// CHECK:         call <16 x i8> @llvm.masked.gather.v16i8.v16p0(
// GATHER-LABEL: define void @lookup
// GATHER:        call <16 x i8> @llvm.masked.gather.v16i8.v16p0(
func.func @lookup(%t: memref<256xi8>, %other: memref<255xi8>, %places: memref<16xi64>, %r: memref<32xi8>) {
  %zero = arith.constant 0 : index
  %next = arith.constant 16 : index
  %p = vector.load %places[%zero] : memref<16xi64>, vector<16xi64>
  %m = arith.cmpi slt, %p, %p : vector<16xi64>
  %at = arith.index_cast %p : vector<16xi64> to vector<16xindex>
  %v = low.gather %t[%at] mask %m : memref<256xi8>, vector<16xindex> -> vector<16xi8>
  %w = low.gather %other[%at] : memref<255xi8>, vector<16xindex> -> vector<16xi8>
  vector.store %v, %r[%zero] : memref<32xi8>, vector<16xi8>
  vector.store %w, %r[%next] : memref<32xi8>, vector<16xi8>
  func.return
}
