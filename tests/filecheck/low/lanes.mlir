// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s | xdsl-opt | filecheck %s

func.func @lanes(%a: vector<8xf32>, %b: vector<8xf32>, %i: vector<8xi32>, %x: vector<8xindex>) {
  %m = low.cmpf olt, %a, %b : vector<8xf32>
  %n = low.cmpf ogt, %a, %b fastmath<nnan,ninf> : vector<8xf32>
  %p = low.cmpi slt, %x, %x : vector<8xindex>
  %s = low.select %m, %a, %b : vector<8xf32>
  %f = low.sitofp %i : vector<8xi32> to vector<8xf32>
  %u = low.uitofp %i : vector<8xi32> to vector<8xf32>
  %j = low.fptosi %a : vector<8xf32> to vector<8xi16>
  %k = low.fptoui %a : vector<8xf32> to vector<8xi16>
  %w = low.extsi %i : vector<8xi32> to vector<8xi64>
  %v = low.extui %m : vector<8xi1> to vector<8xi8>
  %t = low.trunci %i : vector<8xi32> to vector<8xi8>
  %y = low.index_cast %i : vector<8xi32> to vector<8xindex>
  %l = low.ldexp %a, %b : vector<8xf32>
  func.return
}
// CHECK-LABEL: @lanes
// CHECK-NEXT:    %m = low.cmpf olt, %a, %b : vector<8xf32>
// CHECK-NEXT:    %n = low.cmpf ogt, %a, %b fastmath<nnan,ninf> : vector<8xf32>
// CHECK-NEXT:    %p = low.cmpi slt, %x, %x : vector<8xindex>
// CHECK-NEXT:    %s = low.select %m, %a, %b : vector<8xf32>
// CHECK-NEXT:    %f = low.sitofp %i : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %u = low.uitofp %i : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %j = low.fptosi %a : vector<8xf32> to vector<8xi16>
// CHECK-NEXT:    %k = low.fptoui %a : vector<8xf32> to vector<8xi16>
// CHECK-NEXT:    %w = low.extsi %i : vector<8xi32> to vector<8xi64>
// CHECK-NEXT:    %v = low.extui %m : vector<8xi1> to vector<8xi8>
// CHECK-NEXT:    %t = low.trunci %i : vector<8xi32> to vector<8xi8>
// CHECK-NEXT:    %y = low.index_cast %i : vector<8xi32> to vector<8xindex>
// CHECK-NEXT:    %l = low.ldexp %a, %b : vector<8xf32>
