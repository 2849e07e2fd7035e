// RUN: not weft-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: low.fragment: wmma has the shapes [16, 16, 16], [32, 8, 16], [8, 32, 16], got [16, 16, 8]
func.func private @f() attributes {x = #low.fragment<wmma, a, row, [16, 16, 8], f16>}

// -----

// CHECK: low.fragment: a of mma does not hold f32
func.func private @f() attributes {x = #low.fragment<mma, a, row, [16, 8, 16], f32>}

// -----

// CHECK: low.fragment: c of mma does not hold f16
func.func private @f() attributes {x = #low.fragment<mma, c, row, [16, 8, 16], f16>}

// -----

// CHECK: low.fragment: the accumulator must have order row
func.func private @f() attributes {x = #low.fragment<mma, c, col, [16, 8, 16], f32>}
