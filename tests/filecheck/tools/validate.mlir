// RUN: weft-opt %s -p canonicalize,cse --validate | filecheck %s
// RUN: not weft-opt %s -p 'apply-pdl{pdl_file="validate-wrong-rules.pdl"}' --validate 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: weft-opt %s -p 'lower-tir-to-low{target=llvm}' --validate | filecheck %s --check-prefix=LOW
// RUN: weft-opt %s -p 'default-schedule,lower-tir-to-low{target=c}' --validate | filecheck %s --check-prefix=LOW

// Edge values: relu6 without its upper bound is relu on ordinary values, of which none is above 6.

// CHECK-LABEL: func.func @relu6
// CHECK:         arith.minimumf
// LOW-LABEL: func.func @relu6
// WRONG: error: pass 'apply-pdl' changed the meaning of the program: @relu6 (A: {{[0-9]+}}, B: {{[0-9]+}}, saturating values in A and B): B[{{[0-9]+}}] was 6.0, is {{.*}}
func.func @relu6(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "B" iters(%vi: spatial<%n>) = [%i] {
      %a = memref.load %A[%vi] : memref<?xf32>
      %r = arith.maximumf %a, %zero : f32
      %y = arith.minimumf %r, %six : f32
      memref.store %y, %B[%vi] : memref<?xf32>
    }
  }
  func.return
}
