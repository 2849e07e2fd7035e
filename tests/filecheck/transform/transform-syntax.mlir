// RUN: weft-opt %s -t upstream | filecheck %s
// RUN: weft-opt %s --print-op-generic | weft-opt -t upstream | filecheck %s

// The operations of scripts, in the custom syntax of MLIR 22 and in the generic form.

// CHECK:   transform.named_sequence @s(%arg0: !transform.any_op, %arg1: !transform.any_param, %arg2: !transform.param<i64>) {
// CHECK-NEXT:     %transformed, %loops = transform.structured.fuse %arg0 tile_sizes [4, 0] interchange [1, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %0 = transform.structured.split %arg0 after 42 {dimension = 0 : i64} : !transform.any_op
// CHECK-NEXT:     %1 = transform.structured.split %arg0 after %arg2 {dimension = 0 : i64} : !transform.any_op, !transform.param<i64>
// CHECK-NEXT:     %init_or_alloc_op, %fill_op, %split_linalg_op, %combining_linalg_op = transform.structured.split_reduction %arg0 {split_factor = 4 : i64} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
// CHECK-NEXT:     %2 = transform.structured.generalize %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %3 = transform.structured.interchange %arg0 iterator_interchange = [1, 0] : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %4 = transform.structured.decompose %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.structured.vectorize %arg0 vector_sizes [4, 8] : !transform.any_op
// CHECK-NEXT:     transform.structured.vectorize %arg0 : !transform.any_op
// CHECK-NEXT:     %5 = transform.structured.vectorize_children_and_apply_patterns %arg0 {vectorize_padding} : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %tiled_op, %forall_op = transform.structured.tile_using_forall %arg0 tile_sizes [4, %arg1] : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %tiled_op_1, %forall_op_1 = transform.structured.tile_using_forall %arg0 num_threads [4, 4](mapping = [#gpu.thread<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %tiled_linalg_op, %loops_1, %loops_2 = transform.structured.tile_using_for %arg0 tile_sizes [4, %arg1] interchange = [1, 0] : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op, !transform.any_op)
// CHECK-NEXT:     %padded, %pad, %copy = transform.structured.pad %arg0 pad_to_multiple_of [4, 4] {nofold_flags = [1 : i64, 1 : i64], padding_dimensions = [0 : i64, 1 : i64], padding_values = [0.000000e+00 : f32, 0.000000e+00 : f32]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
// CHECK-NEXT:     %img2col_tensor, %transformed_1 = transform.structured.convert_conv2d_to_img2col %arg0 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %6 = transform.structured.convert_to_loops %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %fused_op, %new_containing_op = transform.structured.fuse_into_containing_op %arg0 into %arg0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %7 = transform.structured.match ops{["a"]} interface{TilingInterface} attributes {x} in %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.loop.unroll %arg0 {factor = 4 : i64} : !transform.any_op
// CHECK-NEXT:     %8 = transform.loop.coalesce %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %9 = transform.loop.fuse_sibling %arg0 into %arg0 : (!transform.any_op, !transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %function, %call = transform.loop.outline %arg0 {func_name = "f"} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %10 = transform.loop.forall_to_for %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %11 = transform.loop.forall_to_parallel %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.annotate %arg0 "x" = %arg1 : !transform.any_op, !transform.any_param
// CHECK-NEXT:     transform.annotate %arg0 "x" : !transform.any_op
// CHECK-NEXT:     transform.print %arg0 {name = "x"} : !transform.any_op
// CHECK-NEXT:     transform.debug.emit_remark_at %arg0, "x" : !transform.any_op
// CHECK-NEXT:     %12 = transform.get_parent_op %arg0 {deduplicate, nth_parent = 2 : i64, op_name = "scf.for"} : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %13 = transform.get_producer_of_operand %arg0[1] : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %14 = transform.get_consumers_of_result %arg0[1] : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %15, %16 = transform.split_handle %arg0 {fail_on_payload_too_small = false, overflow_result = 1 : i64} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %17 = transform.merge_handles deduplicate %arg0, %arg0 : !transform.any_op
// CHECK-NEXT:     %18 = transform.cast %arg0 : !transform.any_op to !transform.op<"linalg.matmul">
// CHECK-NEXT:     %19 = transform.param.constant 5 : i64 -> !transform.param<i64>
// CHECK-NEXT:     %20 = transform.num_associations %arg0 : (!transform.any_op) -> !transform.param<i64>
// CHECK-NEXT:     %21 = transform.select "func.func" in %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.apply_patterns to %arg0 {
// CHECK-NEXT:       transform.apply_patterns.canonicalization
// CHECK-NEXT:     } {apply_cse} : !transform.any_op
// CHECK-NEXT:     transform.apply_cse to %arg0 : !transform.any_op
// CHECK-NEXT:     transform.apply_dce to %arg0 : !transform.any_op
// CHECK-NEXT:     transform.apply_licm to %arg0 : !transform.any_op
// CHECK-NEXT:     %22 = transform.apply_registered_pass "cse" to %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %23 = transform.apply_registered_pass "cse" with options = {x = 1 : i64} to %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %24 = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %arg0 {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.bufferization.eliminate_empty_tensors %arg0 : !transform.any_op
// CHECK-NEXT:     %25 = transform.structured.hoist_redundant_vector_transfers %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.loop.hoist_loop_invariant_subsets %arg0 : !transform.any_op
// CHECK-NEXT:     %26 = transform.alternatives %arg0 : !transform.any_op -> !transform.any_op {
// CHECK-NEXT:     ^bb0(%arg3: !transform.any_op):
// CHECK-NEXT:       transform.yield %arg3 : !transform.any_op
// CHECK-NEXT:     }, {
// CHECK-NEXT:     ^bb0(%arg3_1: !transform.any_op):
// CHECK-NEXT:       transform.yield %arg3_1 : !transform.any_op
// CHECK-NEXT:     }
// CHECK-NEXT:     %27 = transform.foreach %arg0 : !transform.any_op -> !transform.any_op {
// CHECK-NEXT:     ^bb0(%arg3_2: !transform.any_op):
// CHECK-NEXT:       transform.yield %arg3_2 : !transform.any_op
// CHECK-NEXT:     }
// CHECK-NEXT:     transform.sequence %arg0 : !transform.any_op failures(propagate) {
// CHECK-NEXT:     ^bb0(%arg3_3: !transform.any_op):
// CHECK-NEXT:     }
// CHECK-NEXT:     %28 = transform.tune.knob<"k"> options = [1 : i64, 2 : i64] -> !transform.any_param
// CHECK-NEXT:     transform.tune.alternatives<"k2"> selected_region = 0 {
// CHECK-NEXT:     }, {
// CHECK-NEXT:     }
// CHECK-NEXT:     %29 = transform.include @t failures(propagate) (%arg0) : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   transform.named_sequence @t2(%arg0: !transform.any_op {transform.readonly}) -> !transform.any_op {
// CHECK-NEXT:     transform.yield %arg0 : !transform.any_op
// CHECK-NEXT:   }
// CHECK-NEXT:   transform.named_sequence @t3(%arg0: !transform.any_op {transform.readonly}) {
// CHECK-NEXT:     transform.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   transform.named_sequence private @t(%arg0: !transform.any_op {transform.readonly}) -> !transform.any_op {
// CHECK-NEXT:     transform.yield %arg0 : !transform.any_op
// CHECK-NEXT:   }
// CHECK-NEXT: }
builtin.module attributes {transform.with_named_sequence} {
  transform.named_sequence @s(%arg0: !transform.any_op, %arg1: !transform.any_param, %arg2: !transform.param<i64>) {
    %transformed, %loops = transform.structured.fuse %arg0 tile_sizes [4, 0] interchange [1, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %0 = transform.structured.split %arg0 after 42 {dimension = 0 : i64} : !transform.any_op
    %1 = transform.structured.split %arg0 after %arg2 {dimension = 0 : i64} : !transform.any_op, !transform.param<i64>
    %init_or_alloc_op, %fill_op, %split_linalg_op, %combining_linalg_op = transform.structured.split_reduction %arg0 {split_factor = 4 : i64} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %2 = transform.structured.generalize %arg0 : (!transform.any_op) -> !transform.any_op
    %3 = transform.structured.interchange %arg0 iterator_interchange = [1, 0] : (!transform.any_op) -> !transform.any_op
    %4 = transform.structured.decompose %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %arg0 vector_sizes [4, 8] : !transform.any_op
    transform.structured.vectorize %arg0 : !transform.any_op
    %5 = transform.structured.vectorize_children_and_apply_patterns %arg0 {vectorize_padding} : (!transform.any_op) -> !transform.any_op
    %tiled_op, %forall_op = transform.structured.tile_using_forall %arg0 tile_sizes [4, %arg1] : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op)
    %tiled_op_1, %forall_op_1 = transform.structured.tile_using_forall %arg0 num_threads [4, 4](mapping = [#gpu.thread<y>, #gpu.block<x>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_linalg_op, %loops_1, %loops_2 = transform.structured.tile_using_for %arg0 tile_sizes [4, %arg1] interchange = [1, 0] : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %padded, %pad, %copy = transform.structured.pad %arg0 pad_to_multiple_of [4, 4] {nofold_flags = [1 : i64, 1 : i64], padding_dimensions = [0 : i64, 1 : i64], padding_values = [0.000000e+00 : f32, 0.000000e+00 : f32]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %img2col_tensor, %transformed_1 = transform.structured.convert_conv2d_to_img2col %arg0 : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %6 = transform.structured.convert_to_loops %arg0 : (!transform.any_op) -> !transform.any_op
    %fused_op, %new_containing_op = transform.structured.fuse_into_containing_op %arg0 into %arg0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %7 = transform.structured.match ops{["a"]} interface{TilingInterface} attributes {x} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll %arg0 {factor = 4 : i64} : !transform.any_op
    %8 = transform.loop.coalesce %arg0 : (!transform.any_op) -> !transform.any_op
    %9 = transform.loop.fuse_sibling %arg0 into %arg0 : (!transform.any_op, !transform.any_op) -> !transform.any_op
    %function, %call = transform.loop.outline %arg0 {func_name = "f"} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %10 = transform.loop.forall_to_for %arg0 : (!transform.any_op) -> !transform.any_op
    %11 = transform.loop.forall_to_parallel %arg0 : (!transform.any_op) -> !transform.any_op
    transform.annotate %arg0 "x" = %arg1 : !transform.any_op, !transform.any_param
    transform.annotate %arg0 "x" : !transform.any_op
    transform.print %arg0 {name = "x"} : !transform.any_op
    transform.debug.emit_remark_at %arg0, "x" : !transform.any_op
    %12 = transform.get_parent_op %arg0 {deduplicate, nth_parent = 2 : i64, op_name = "scf.for"} : (!transform.any_op) -> !transform.any_op
    %13 = transform.get_producer_of_operand %arg0[1] : (!transform.any_op) -> !transform.any_op
    %14 = transform.get_consumers_of_result %arg0[1] : (!transform.any_op) -> !transform.any_op
    %15, %16 = transform.split_handle %arg0 {fail_on_payload_too_small = false, overflow_result = 1 : i64} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %17 = transform.merge_handles deduplicate %arg0, %arg0 : !transform.any_op
    %18 = transform.cast %arg0 : !transform.any_op to !transform.op<"linalg.matmul">
    %19 = transform.param.constant 5 : i64 -> !transform.param<i64>
    %20 = transform.num_associations %arg0 : (!transform.any_op) -> !transform.param<i64>
    %21 = transform.select "func.func" in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.canonicalization
    } {apply_cse} : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    transform.apply_dce to %arg0 : !transform.any_op
    transform.apply_licm to %arg0 : !transform.any_op
    %22 = transform.apply_registered_pass "cse" to %arg0 : (!transform.any_op) -> !transform.any_op
    %23 = transform.apply_registered_pass "cse" with options = {x = 1 : i64} to %arg0 : (!transform.any_op) -> !transform.any_op
    %24 = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %arg0 {bufferize_function_boundaries = true} : (!transform.any_op) -> !transform.any_op
    transform.bufferization.eliminate_empty_tensors %arg0 : !transform.any_op
    %25 = transform.structured.hoist_redundant_vector_transfers %arg0 : (!transform.any_op) -> !transform.any_op
    transform.loop.hoist_loop_invariant_subsets %arg0 : !transform.any_op
    %26 = transform.alternatives %arg0 : !transform.any_op -> !transform.any_op {
    ^bb0(%arg3: !transform.any_op):
      transform.yield %arg3 : !transform.any_op
    }, {
    ^bb0(%arg3_1: !transform.any_op):
      transform.yield %arg3_1 : !transform.any_op
    }
    %27 = transform.foreach %arg0 : !transform.any_op -> !transform.any_op {
    ^bb0(%arg3_2: !transform.any_op):
      transform.yield %arg3_2 : !transform.any_op
    }
    transform.sequence %arg0 : !transform.any_op failures(propagate) {
    ^bb0(%arg3_3: !transform.any_op):
    }
    %28 = transform.tune.knob<"k"> options = [1 : i64, 2 : i64] -> !transform.any_param
    transform.tune.alternatives<"k2"> selected_region = 0 {
    }, {
    }
    %29 = transform.include @t failures(propagate) (%arg0) : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @t2(%arg0: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.yield %arg0 : !transform.any_op
  }
  transform.named_sequence @t3(%arg0: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence private @t(%arg0: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.yield %arg0 : !transform.any_op
  }
}

// CHECK:   transform.named_sequence @packed(%arg0: !transform.any_op, %arg1: !transform.param<i64>) {
// CHECK-NEXT:     %packed_op = transform.structured.pack %arg0 packed_sizes = [4, %arg1] : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
// CHECK-NEXT:     %packed_op_1, %pack_op, %un_pack_op = transform.structured.pack_transpose %arg0 with_compute_op(%packed_op) outer_perm = [1, 0] inner_perm = [0, 1] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
// CHECK-NEXT:     %0 = transform.loop.pipeline %arg0 {iteration_interval = 1 : i64, read_latency = 3 : i64} : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     %1, %2 = transform.foreach_match restrict_root flatten_results in %arg0, %arg1 @matches -> @act, @other -> @act : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
// CHECK-NEXT:     %3 = transform.collect_matching @matches in %arg0 : (!transform.any_op) -> !transform.any_op
// CHECK-NEXT:     transform.match.operation_name %arg0 ["linalg.exp", "linalg.abs"] : !transform.any_op
// CHECK-NEXT:     transform.match.operation_empty %arg0 : !transform.any_op
// CHECK-NEXT:     transform.match.param.cmpi ge %arg1, %arg1 : !transform.param<i64>
// CHECK-NEXT:     %4, %5 = transform.match.structured failures(suppress) %arg0 : (!transform.any_op) -> (!transform.any_op, !transform.param<i64>) {
// CHECK-NEXT:     ^bb0(%arg2: !transform.any_op):
// CHECK-NEXT:       %6 = transform.match.structured.dim %arg2[all] : (!transform.any_op) -> !transform.param<i64>
// CHECK-NEXT:       transform.match.structured.dim %arg2[except(-1, 0)] {parallel} : !transform.any_op
// CHECK-NEXT:       transform.match.structured.dim %arg2[0, -1] {reduction} : !transform.any_op
// CHECK-NEXT:       %7 = transform.match.structured.rank %arg2 : (!transform.any_op) -> !transform.param<i64>
// CHECK-NEXT:       transform.match.structured.body %arg2 {reduction_position = 0 : i64} : !transform.any_op
// CHECK-NEXT:       transform.match.structured.body %arg2 {passthrough} : !transform.any_op
// CHECK-NEXT:       transform.match.structured.yield %arg2, %7 : !transform.any_op, !transform.param<i64>
// CHECK-NEXT:     }
transform.named_sequence @packed(%arg0: !transform.any_op, %arg1: !transform.param<i64>) {
  %packed_op = transform.structured.pack %arg0 packed_sizes = [4, %arg1] : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
  %packed_op_1, %pack_op, %un_pack_op = transform.structured.pack_transpose %arg0 with_compute_op(%packed_op) outer_perm = [1, 0] inner_perm = [0, 1] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %0 = transform.loop.pipeline %arg0 {iteration_interval = 1 : i64, read_latency = 3 : i64} : (!transform.any_op) -> !transform.any_op
  %1, %2 = transform.foreach_match restrict_root flatten_results in %arg0, %arg1 @matches -> @act, @other -> @act : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
  %3 = transform.collect_matching @matches in %arg0 : (!transform.any_op) -> !transform.any_op
  transform.match.operation_name %arg0 ["linalg.exp", "linalg.abs"] : !transform.any_op
  transform.match.operation_empty %arg0 : !transform.any_op
  transform.match.param.cmpi ge %arg1, %arg1 : !transform.param<i64>
  %4:2 = transform.match.structured failures(suppress) %arg0 : (!transform.any_op) -> (!transform.any_op, !transform.param<i64>) {
  ^bb0(%arg2: !transform.any_op):
    %5 = transform.match.structured.dim %arg2[all] : (!transform.any_op) -> !transform.param<i64>
    transform.match.structured.dim %arg2[except(-1, 0)] {parallel} : !transform.any_op
    transform.match.structured.dim %arg2[0, -1] {reduction} : !transform.any_op
    %6 = transform.match.structured.rank %arg2 : (!transform.any_op) -> !transform.param<i64>
    transform.match.structured.body %arg2 {reduction_position = 0 : i64} : !transform.any_op
    transform.match.structured.body %arg2 {passthrough} : !transform.any_op
    transform.match.structured.yield %arg2, %6 : !transform.any_op, !transform.param<i64>
  }
  transform.yield
}
