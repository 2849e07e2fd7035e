// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=znver4}' | filecheck %s
// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefix=HASWELL

// With mask registers, the lanes of a tail and the lanes of a strided load in an image are made of scalars. Other
// compares are of vectors: the numbers grow by three, the lanes are too few, and elements are no indices.
// CHECK:      icmp sgt i64 %{{.*}}, %i
// CHECK:      %[[LEFT:.*]] = sub i64 %{{.*}}, %i
// CHECK-NEXT: %[[COUNT:.*]] = call i64 @llvm.umin.i64(i64 %[[LEFT]], i64 16)
// CHECK-NEXT: %[[LANES:.*]] = select i1 %{{.*}}, i64 %[[COUNT]], i64 0
// CHECK-NEXT: %[[REST:.*]] = shl i64 -1, %[[LANES]]
// CHECK-NEXT: %[[FIRST:.*]] = xor i64 %[[REST]], -1
// CHECK-NEXT: %[[BITS:.*]] = trunc i64 %[[FIRST]] to i16
// CHECK-NEXT: bitcast i16 %[[BITS]] to <16 x i1>
// CHECK:      call i64 @llvm.umin.i64(i64 %{{.*}}, i64 32)
// CHECK-NEXT: add i64 %{{.*}}, 1
// CHECK-NEXT: lshr i64 %{{.*}}, 1
// CHECK:      bitcast i16 %{{.*}} to <16 x i1>
// CHECK:      icmp slt <16 x i64>
// CHECK:      icmp slt <4 x i64>
// CHECK:      icmp slt <16 x i32>

// HASWELL-NOT:      bitcast
// HASWELL-COUNT-3:  icmp slt <16 x i64>
func.func @masks(%A: memref<?xi8>, %n: index) attributes {
    low.params = [#low.param<"A", memref<?xi8>, readwrite, ["n"]>], low.symbols = ["n"]} {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %ones = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xindex>
  %twos = arith.constant dense<[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]> : vector<16xindex>
  %threes = arith.constant dense<[0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45]> : vector<16xindex>
  %few = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
  %ints = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
  %limit = vector.broadcast %n : index to vector<16xindex>
  %limit4 = vector.broadcast %n : index to vector<4xindex>
  %number = arith.index_cast %n : index to i32
  %limit32 = vector.broadcast %number : i32 to vector<16xi32>
  scf.for %i = %zero to %n step %step {
    %base = vector.broadcast %i : index to vector<16xindex>
    %at = arith.addi %base, %ones : vector<16xindex>
    %tail = arith.cmpi slt, %at, %limit : vector<16xindex>
    %even = arith.addi %twos, %base : vector<16xindex>
    %strided = arith.cmpi slt, %even, %limit : vector<16xindex>
    %third = arith.addi %base, %threes : vector<16xindex>
    %thirds = arith.cmpi slt, %third, %limit : vector<16xindex>
    %short = arith.cmpi slt, %few, %limit4 : vector<4xindex>
    %narrow = arith.cmpi slt, %ints, %limit32 : vector<16xi32>
    %one = arith.andi %tail, %strided : vector<16xi1>
    %two = arith.andi %one, %thirds : vector<16xi1>
    %three = arith.andi %two, %narrow : vector<16xi1>
    %bytes = arith.extui %three : vector<16xi1> to vector<16xi8>
    vector.store %bytes, %A[%i] : memref<?xi8>, vector<16xi8>
    %four = arith.extui %short : vector<4xi1> to vector<4xi8>
    vector.store %four, %A[%i] : memref<?xi8>, vector<4xi8>
  }
  func.return
}
