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
// CHECK-NEXT:    %[[M:\w+]] = low.cmpf olt, %a, %b : vector<8xf32>
// CHECK-NEXT:    %[[N:\w+]] = low.cmpf ogt, %a, %b fastmath<nnan,ninf> : vector<8xf32>
// CHECK-NEXT:    %[[P:\w+]] = low.cmpi slt, %x, %x : vector<8xindex>
// CHECK-NEXT:    %[[S:\w+]] = low.select %[[M]], %a, %b : vector<8xf32>
// CHECK-NEXT:    %[[F:\w+]] = low.sitofp %i : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %[[U:\w+]] = low.uitofp %i : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %[[J:\w+]] = low.fptosi %a : vector<8xf32> to vector<8xi16>
// CHECK-NEXT:    %[[K:\w+]] = low.fptoui %a : vector<8xf32> to vector<8xi16>
// CHECK-NEXT:    %[[W:\w+]] = low.extsi %i : vector<8xi32> to vector<8xi64>
// CHECK-NEXT:    %[[V:\w+]] = low.extui %[[M]] : vector<8xi1> to vector<8xi8>
// CHECK-NEXT:    %[[T:\w+]] = low.trunci %i : vector<8xi32> to vector<8xi8>
// CHECK-NEXT:    %[[Y:\w+]] = low.index_cast %i : vector<8xi32> to vector<8xindex>
// CHECK-NEXT:    %[[L:\w+]] = low.ldexp %a, %b : vector<8xf32>
