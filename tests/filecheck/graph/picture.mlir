// RUN: weft-opt %s -t dot | filecheck %s --check-prefix=DOT
// RUN: weft-opt %s -t 'dot{func=second}' | filecheck %s --check-prefix=ONE
// RUN: weft-opt %s -t svg | filecheck %s --check-prefix=SVG
// RUN: xdsl-opt %s -t dot | filecheck %s --check-prefix=DOT
// RUN: not weft-opt %s -t 'svg{func=secnd}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not weft-opt %s -t 'dot{func=copy}' 2>&1 | filecheck %s --check-prefix=COPY
// RUN: not weft-opt %S/../../../examples/mm_relu.mlir -t svg 2>&1 | filecheck %s --check-prefix=NONE
// RUN: weft-opt %S/../../../examples/mlp.mlir -t dot | filecheck %s --check-prefix=MLP
// Graph functions as pictures. Constants show no data, edges come in operand order, dataflow regions are clusters
// without nodes of their own, an empty one is not drawn; functions over buffers are left out.

// DOT:      digraph {
// DOT:      node [shape=box, {{.*}}ordering=in]
// DOT:      subgraph cluster_0 {
// DOT-NEXT:   label="@main"
// DOT-NEXT:   n0_0 [label="x\nf32[n, 4]", tooltip="%x : tensor<?x4xf32, #graph.dims<n>>", style="rounded,filled"
// DOT-NEXT:   n0_1 [label="k\nf32[4]", tooltip="graph.constant\n%[[K:\w+]] : tensor<4xf32>", style="rounded,filled", {{.*}}fontsize=9
// DOT-NEXT:   n0_8 [label="subtract\nd: f32[n, 4]"
// DOT-NEXT:   n0_9 [label="output 0\nd: f32[n, 4]"{{.*}}penwidth=2]
// DOT-NEXT:   n0_10 [label="output 1\nk: f32[4]"{{.*}}penwidth=2]
// DOT-NEXT:   subgraph cluster_0_0 {
// DOT-NEXT:     label="dataflow"
// DOT-NEXT:     n0_2 [label="call_tir @copy\nc: f32[n, 4]", tooltip="graph.call_tir @copy\n%[[C:\w+]] : tensor<?x4xf32, #graph.dims<n>>"
// DOT-NEXT:     n0_3 [label="call_dps \"a<b> &amp; \\N\"\na: f32[n, 4]\nb: f32[n, 4]"
// DOT-NEXT:     n0_4 [label="make_tuple\nt: (f32[n, 4], f32[n, 4])"
// DOT-NEXT:     n0_5 [label="tuple_get\nposition = 1\ng: f32[n, 4]"
// DOT-NEXT:     subgraph cluster_0_1 {
// DOT-NEXT:       label="dataflow"
// DOT-NEXT:       n0_6 [label="transpose\naxes = [1, 0]\nf32[4, n]"
// DOT-NEXT:       n0_7 [label="transpose\nf32[n, 4]", tooltip="graph.transpose\ntensor<?x4xf32, #graph.dims<n>>"
// DOT-NEXT:     }
// DOT-NEXT:   }
// DOT-NEXT:   n0_0 -> n0_2 [tooltip="%x : tensor<?x4xf32, #graph.dims<n>>\nx to call_tir @copy, operand 0"]
// DOT-NEXT:   n0_2 -> n0_3
// DOT-NEXT:   n0_3 -> n0_4 [tooltip="%[[A:\w+]] : {{.*}} to make_tuple, operand 0"]
// DOT-NEXT:   n0_3 -> n0_4 [tooltip="%[[B:\w+]] : {{.*}} to make_tuple, operand 1"]
// DOT-NEXT:   n0_4 -> n0_5
// DOT-NEXT:   n0_5 -> n0_6
// DOT-NEXT:   n0_6 -> n0_7
// DOT-NEXT:   n0_7 -> n0_8 [tooltip="%[[Z:\w+]] : {{.*}} to subtract, operand 0"]
// DOT-NEXT:   n0_1 -> n0_8 [tooltip="%[[K]] : tensor<4xf32>\nk to subtract, operand 1"]
// DOT-NEXT:   n0_8 -> n0_9
// DOT-NEXT:   n0_1 -> n0_10
// DOT-NEXT: }
// DOT-NEXT: subgraph cluster_1 {
// DOT-NEXT:   label="@second"
// DOT-NEXT:   n1_0 [label="argument 0\nf32[4]"
// DOT-NEXT:   n1_1 [label="output\nf32[4]"
// DOT-NEXT:   n1_0 -> n1_1 [tooltip="tensor<4xf32>\nargument 0 to output, operand 0"]
// DOT-NEXT: }
// DOT-NEXT: }

// ONE-NOT: main
// ONE:     label="@second"

// SVG:      <svg xmlns="http://www.w3.org/2000/svg"
// SVG-NEXT: <title>@main, @second</title>
// SVG:      <text class="name"{{.*}}>@main</text>
// SVG:      <rect class="cluster"
// SVG-NEXT: <text class="cluster-title"{{.*}}>dataflow</text>
// SVG-NEXT: <rect class="cluster"
// SVG-NEXT: <text class="cluster-title"{{.*}}>dataflow</text>
// SVG-NEXT: <g class="edge-group"><title>%x : tensor&lt;?x4xf32, #graph.dims&lt;n&gt;&gt;
// SVG:      <rect class="parameter"{{.*}}>x</text>{{.*}}>f32[n, 4]</text>
// SVG:      <rect class="constant"{{.*}}>k</text>{{.*}}>f32[4]</text>
// SVG:      <rect class="call"{{.*}}>call_tir @copy</text>
// SVG:      <rect class="call"{{.*}}>call_dps &quot;a&lt;b&gt; &amp; \N&quot;</text>
// SVG:      <rect class="operation"{{.*}}>subtract</text>{{.*}}>d: f32[n, 4]</text>
// SVG:      <rect class="output"{{.*}}>output 0</text>
// SVG:      <text class="name"{{.*}}>@second</text>
// SVG:      </svg>

// NAME: error: the module holds no graph function 'secnd', did you mean 'second'?
// COPY: error: the module holds no graph function 'copy' (known: 'main', 'second')
// NONE: error: there is nothing to picture: the module holds no graph function (a function with operations of the graph dialect); draw the graph before it is lowered

// MLP-NOT: 016D893C
// MLP:     [label="x\nf32[1, 784]"
// MLP:     subgraph cluster_0_0 {
// MLP:       [label="w0\nf32[128, 784]"
// MLP:       [label="transpose\nw0t: f32[784, 128]"
// MLP:       [label="matmul\nh: f32[1, 128]"
// MLP:       [label="relu\nlv1: f32[1, 128]"
// MLP:     }
// MLP-COUNT-12: ->
// MLP-NOT: ->

func.func @main(%x: tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>) {
  %k = graph.constant dense<1.0> : tensor<4xf32>
  %z = graph.dataflow -> tensor<?x4xf32, #graph.dims<n>> {
    %c = graph.call_tir @copy(%x) : (tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>>
    %a, %b = graph.call_dps "a<b> & \\N"(%c) : (tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>)
    %t = graph.make_tuple %a, %b : tuple<tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>>
    %g = graph.tuple_get %t[1] : tuple<tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>>
    %y = graph.dataflow -> tensor<?x4xf32, #graph.dims<n>> {
      %0 = graph.transpose %g {axes = array<i64: 1, 0>} : tensor<?x4xf32, #graph.dims<n>>
      %1 = graph.transpose %0 : tensor<4x?xf32, #graph.dims<n>>
      graph.output %1 : tensor<?x4xf32, #graph.dims<n>>
    }
    graph.output %y : tensor<?x4xf32, #graph.dims<n>>
  }
  %e = graph.dataflow -> tensor<4xf32> {
    graph.output %k : tensor<4xf32>
  }
  %d = graph.subtract %z, %k : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>
  func.return %d, %k : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>
}
func.func @copy(%A: memref<?x4xf32>, %B: memref<?x4xf32>) {
  func.return
}
func.func @second(%0: tensor<4xf32>) -> tensor<4xf32> {
  func.return %0 : tensor<4xf32>
}
