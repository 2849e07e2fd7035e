// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s -p lower-graph --validate | filecheck %s --check-prefix=TIR
// RUN: weft-opt %s -p "lower-graph,lower-tir-to-low{target=llvm}" --validate

// CHECK-LABEL: func.func @scan
// CHECK:         graph.loop @step for n carried(%h) scanned(%xs) captured(%w) : (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>)

// The result holds the carried value.
// TIR-LABEL: func.func @scan(%h: memref<4xf32>, %xs: memref<?x4xf32>, %w: memref<4xf32>, %last: memref<4xf32>, %all: memref<?x4xf32>)
// TIR:         %n = memref.dim %xs
// TIR:         func.call @step_copy(%h, %last)
// TIR:         tir.for %t in %n {
// TIR-NEXT:      func.call @step_number(%t, %step)
// TIR-NEXT:      func.call @step_row(%step, %xs, %row)
// TIR-NEXT:      func.call @step(%step, %last, %row, %w, %next, %made)
// TIR-NEXT:      func.call @step_copy(%next, %last)
// TIR-NEXT:      func.call @step_stack(%step, %made, %all)
// TIR-NEXT:    }
func.func @scan(%h: tensor<4xf32>, %xs: tensor<?x4xf32, #graph.dims<n>>, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>) {
  %last, %all = graph.loop @step for n carried(%h) scanned(%xs) captured(%w)
    : (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>)
      -> (tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>)
  func.return %last, %all : tensor<4xf32>, tensor<?x4xf32, #graph.dims<n>>
}

func.func private @step(%t: tensor<i64>, %h: tensor<4xf32>, %x: tensor<4xf32>, %w: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %p = graph.multiply %h, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %s = graph.add %p, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  func.return %s, %p : tensor<4xf32>, tensor<4xf32>
}

// Parts may be left out; the number of steps is a number here.
// CHECK-LABEL: func.func @numbers
// CHECK:         graph.loop @number for 5 : () -> tensor<5xi64>
func.func @numbers() -> tensor<5xi64> {
  %all = graph.loop @number for 5 : () -> tensor<5xi64>
  func.return %all : tensor<5xi64>
}

func.func private @number(%t: tensor<i64>) -> tensor<i64> {
  func.return %t : tensor<i64>
}

// CHECK-LABEL: func.func @choose
// CHECK:         %y = graph.if %c then @grow else @keep(%x) : (tensor<4xf32>) -> tensor<4xf32>
// TIR-LABEL: func.func @choose
// TIR:         %[[C:\w+]] = memref.load %c[]
// TIR:         scf.if %[[C]] {
// TIR:           func.call @grow
// TIR:         } else {
// TIR:           func.call @keep
func.func @choose(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c then @grow else @keep(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

func.func private @grow(%x: tensor<?xf32, #graph.dims<k>>) -> tensor<?xf32, #graph.dims<k>> {
  %y = graph.add %x, %x : tensor<?xf32, #graph.dims<k>>, tensor<?xf32, #graph.dims<k>> -> tensor<?xf32, #graph.dims<k>>
  func.return %y : tensor<?xf32, #graph.dims<k>>
}

func.func private @keep(%x: tensor<?xf32, #graph.dims<m>>) -> tensor<?xf32, #graph.dims<m>> {
  func.return %x : tensor<?xf32, #graph.dims<m>>
}

// CHECK-LABEL: func.func @root
// CHECK:         %y, %n = graph.while @more do @halve carried(%x, %zero) captured(%z) : (tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>)

// TIR-LABEL: func.func @root(%x: memref<4xf32>, %z: memref<4xf32>, %y: memref<4xf32>)
// TIR:         func.call @halve_copy(%x, %y)
// TIR:         scf.while
// TIR-NEXT:      func.call @more(%y, %n, %z, %holds)
// TIR-NEXT:      memref.load %holds[]
// TIR-NEXT:      scf.condition
// TIR:           func.call @halve(%y, %n, %z, %next, %next_1)
// TIR-NEXT:      func.call @halve_copy(%next, %y)
func.func @root(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %zero = graph.constant dense<0> : tensor<i64>
  %y, %n = graph.while @more do @halve carried(%x, %zero) captured(%z) : (tensor<4xf32>, tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>)
  func.return %y : tensor<4xf32>
}

func.func private @more(%x: tensor<4xf32>, %n: tensor<i64>, %z: tensor<4xf32>) -> tensor<i1> {
  %end = graph.constant dense<3> : tensor<i64>
  %c = graph.less %n, %end : tensor<i64>, tensor<i64> -> tensor<i1>
  func.return %c : tensor<i1>
}

func.func private @halve(%x: tensor<4xf32>, %n: tensor<i64>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<i64>) {
  %one = graph.constant dense<1> : tensor<i64>
  %m = graph.add %n, %one : tensor<i64>, tensor<i64> -> tensor<i64>
  %y = graph.multiply %x, %z : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  func.return %y, %m : tensor<4xf32>, tensor<i64>
}
