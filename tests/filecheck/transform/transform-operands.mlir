// RUN: weft-opt %s | filecheck %s
// RUN: weft-opt %s --print-op-generic | weft-opt | filecheck %s

// Groups of operands, numbers that may be operands, and regions in lists.

builtin.module attributes {transform.with_named_sequence} {
  transform.named_sequence @s(%a: !transform.any_op, %p: !transform.any_param) {
    %c:2 = transform.structured.tile_using_forall %a num_threads *(%p) tile_sizes [4, %p] : (!transform.any_op, !transform.any_param, !transform.any_param) -> (!transform.any_op, !transform.any_op)
    %t = transform.tune.knob<"k"> = 1 from options = [1, 2] {x} -> !transform.any_param
    transform.tune.alternatives<"k2"> selected_region = %p : !transform.any_param { }, { }
    transform.match.param.cmpi eq %p, %p : !transform.any_param
    %m, %n = transform.foreach_match restrict_root in %a, %a @m -> @x, @b -> @y : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.sequence %a, %p : !transform.any_op, !transform.any_param failures(suppress) {
    ^bb0(%q: !transform.any_op, %r: !transform.any_param):
    }
    transform.sequence failures(suppress) {
    ^bb0(%q: !transform.any_op):
    }
    transform.print
    transform.print %a : !transform.any_op
    transform.structured.vectorize %a vector_sizes [8, %p] {vectorize_nd_extract} : !transform.any_op, !transform.any_param
    %d = transform.match.structured.dim %a[except(0)] {parallel} : (!transform.any_op) -> !transform.any_param
    transform.match.structured.dim %a[all] : !transform.any_op
    transform.match.structured failures(suppress) %a : !transform.any_op {
    ^bb0(%q: !transform.any_op):
      transform.match.structured.yield
    }
    transform.yield
  }
}

// CHECK:         transform.named_sequence @s(%a: !transform.any_op, %p: !transform.any_param) {
// CHECK-NEXT:      %c, %c_1 = transform.structured.tile_using_forall %a num_threads *(%p) tile_sizes [4, %p] : (!transform.any_op, !transform.any_param, !transform.any_param) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:      %t = transform.tune.knob<"k"> = 1 : i64 from options = [1 : i64, 2 : i64] {x} -> !transform.any_param
// CHECK-NEXT:      transform.tune.alternatives<"k2"> selected_region = %p : !transform.any_param {
// CHECK-NEXT:      }, {
// CHECK-NEXT:      }
// CHECK-NEXT:      transform.match.param.cmpi eq %p, %p : !transform.any_param
// CHECK-NEXT:      %m, %n = transform.foreach_match restrict_root in %a, %a @m -> @x, @b -> @y : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:      transform.sequence %a, %p : !transform.any_op, !transform.any_param failures(suppress) {
// CHECK-NEXT:      ^bb0(%q: !transform.any_op, %r: !transform.any_param):
// CHECK-NEXT:      }
// CHECK-NEXT:      transform.sequence failures(suppress) {
// CHECK-NEXT:      ^bb0(%q: !transform.any_op):
// CHECK-NEXT:      }
// CHECK-NEXT:      transform.print
// CHECK-NEXT:      transform.print %a : !transform.any_op
// CHECK-NEXT:      transform.structured.vectorize %a vector_sizes [8, %p] {vectorize_nd_extract} : !transform.any_op, !transform.any_param
// CHECK-NEXT:      %d = transform.match.structured.dim %a[except(0)] {parallel} : (!transform.any_op) -> !transform.any_param
// CHECK-NEXT:      transform.match.structured.dim %a[all] : !transform.any_op
// CHECK-NEXT:      transform.match.structured failures(suppress) %a : !transform.any_op {
// CHECK-NEXT:      ^bb0(%q: !transform.any_op):
// CHECK-NEXT:        transform.match.structured.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      transform.yield
// CHECK-NEXT:    }
// CHECK-NEXT:  }
