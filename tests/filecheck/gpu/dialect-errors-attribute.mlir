// RUN: not weft-opt %s 2>&1 | filecheck %s

// CHECK: low.kernel has threads for three axes, at least one each, got [0, 1, 1]
func.func @k() attributes {low.kernel = #low.kernel<[0, 1, 1], source = "">} {
  func.return
}
