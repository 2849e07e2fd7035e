"""Pictures of graph functions: nothing overlaps, every edge goes down and passes no box, texts are escaped."""

import random
from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import weft
from weft.backends.picture.dot import dot_text
from weft.backends.picture.graph_model import Cluster, Edge, GraphModel, NodeKind, PictureNode, graph_models
from weft.backends.picture.layout import (
    GAP,
    Drawing,
    Item,
    Layering,
    Link,
    Point,
    Rectangle,
    longest_path_layers,
    nearest_with_gaps,
)
from weft.backends.picture.svg import svg_text
from weft.dialects.graph import CallDpsOp
from weft.support.errors import CompileError


def random_graph(seed: int, size: int) -> GraphModel:
    """Constants, operations of up to four operands and results, and outputs, in up to three nested or separate
    clusters that hold a stretch of the program each, as dataflow regions do."""
    draw = random.Random(seed)
    clusters: list[Cluster] = []
    cluster_of: list[int | None] = [None] * size
    for _ in range(draw.randrange(4)):
        start, end = sorted(draw.sample(range(size + 1), 2))
        parents = {*cluster_of[start:end]}
        if len(parents) == 1:  # regions nest
            clusters.append(Cluster("dataflow", parents.pop()))
            cluster_of[start:end] = [len(clusters) - 1] * (end - start)
    nodes: list[PictureNode] = []
    edges: list[Edge] = []
    for number, cluster in enumerate(cluster_of):
        givers = [n for n, node in enumerate(nodes) if node.outputs]
        inputs = draw.choice((0, 1, 1, 2, 2, 3, 4)) if givers else 0
        kind = NodeKind.OPERATION if inputs else NodeKind.CONSTANT
        outputs = draw.choice((0, 1, 1, 1, 2, 3)) if inputs else 1
        nodes.append(PictureNode(kind, "op", (), "", inputs, outputs, cluster))
        for operand in range(inputs):
            source = draw.choice(givers[-8:]) if draw.random() < 0.8 else draw.choice(givers)
            edges.append(Edge(source, draw.randrange(nodes[source].outputs), number, operand, ""))
    return GraphModel("f", tuple(nodes), tuple(edges), tuple(clusters))


def drawing_of(graph: GraphModel, seed: int = 0) -> Drawing:
    draw = random.Random(seed)
    sizes = [(draw.uniform(20, 200), draw.uniform(20, 70)) for _ in graph.nodes]
    return Drawing(graph, sizes, [60.0] * len(graph.clusters))


def apart(a: Rectangle, b: Rectangle) -> bool:
    """Whether two boxes share nothing but, rounded to the hundredth as the points of edges are, a border."""
    x, y = min(a.x + a.width, b.x + b.width) - max(a.x, b.x), min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
    return x < 0.02 or y < 0.02


def contains(a: Rectangle, b: Rectangle) -> bool:
    return a.x <= b.x and a.y <= b.y and b.x + b.width <= a.x + a.width and b.y + b.height <= a.y + a.height


def scopes(graph: GraphModel, cluster: int | None) -> list[int]:
    found: list[int] = []
    while cluster is not None:
        found.append(cluster)
        cluster = graph.clusters[cluster].parent
    return found


def stretches(points: Sequence[Point]) -> list[Rectangle]:
    """The boxes around the parts of an edge, a pixel wider on each side: a curve stays between its ends."""
    return [Rectangle(min(x0, x1) - 1, y0, abs(x1 - x0) + 2, y1 - y0) for (x0, y0), (x1, y1) in pairwise(points)]


def check(graph: GraphModel, drawing: Drawing) -> None:
    everything = Rectangle(-0.01, -0.01, drawing.width + 0.02, drawing.height + 0.02)
    boxes = drawing.nodes
    for number, box in enumerate(boxes):
        assert contains(everything, box)
        assert all(apart(box, other) for other in boxes[number + 1 :])
        around = scopes(graph, graph.nodes[number].cluster)
        for cluster, border in enumerate(drawing.clusters):
            if border is not None:
                assert contains(border, box) if cluster in around else apart(border, box)
    for number, border in enumerate(drawing.clusters):
        for other in range(number):
            outer = drawing.clusters[other]
            if border is not None and outer is not None:
                assert contains(outer, border) if other in scopes(graph, number) else apart(outer, border)
    for edge, points in zip(graph.edges, drawing.edges, strict=True):
        source, target = boxes[edge.source], boxes[edge.target]
        assert source.x < points[0][0] < source.x + source.width
        assert target.x < points[-1][0] < target.x + target.width
        assert points[0][1] == pytest.approx(source.y + source.height, abs=0.02)
        assert points[-1][1] == pytest.approx(target.y, abs=0.02)
        assert all(y0 < y1 for (_, y0), (_, y1) in pairwise(points)), "goes down"
        for stretch in stretches(points):
            assert all(apart(stretch, box) for n, box in enumerate(boxes) if n not in (edge.source, edge.target))


@pytest.mark.parametrize("seed", range(60))
def test_nothing_overlaps_and_all_edges_go_down(seed: int) -> None:
    graph = random_graph(seed, size=5 + seed)
    check(graph, drawing_of(graph, seed))


def test_operands_arrive_from_left_to_right() -> None:
    for seed in range(10):
        graph = random_graph(seed, 30)
        drawing = drawing_of(graph)
        for target in range(len(graph.nodes)):
            ends = [p[-1][0] for e, p in zip(graph.edges, drawing.edges, strict=True) if e.target == target]
            assert ends == sorted(ends)
            assert len(set(ends)) == len(ends)


def test_a_hundred_nodes_of_a_model_are_readable() -> None:
    """A chain of blocks with weights and residual edges is drawn without a crossing and no wider than it must be."""
    nodes: list[PictureNode] = [PictureNode(NodeKind.PARAMETER, "x", (), "", 0, 1, None)]
    edges: list[Edge] = []
    last = 0

    def add(kind: NodeKind, *operands: int) -> int:
        nodes.append(PictureNode(kind, "op", (), "", len(operands), 1, None))
        edges.extend(Edge(source, 0, len(nodes) - 1, i, "") for i, source in enumerate(operands))
        return len(nodes) - 1

    for _ in range(20):
        weight = add(NodeKind.CONSTANT)
        transposed = add(NodeKind.OPERATION, weight)
        product = add(NodeKind.OPERATION, last, transposed)
        bias = add(NodeKind.CONSTANT)
        last = add(NodeKind.OPERATION, last, add(NodeKind.OPERATION, product, bias))
    graph = GraphModel("f", tuple(nodes), tuple(edges), ())
    assert len(nodes) > 100
    sizes = [(100.0, 40.0)] * len(nodes)
    drawing = Drawing(graph, sizes, [])
    check(graph, drawing)
    assert drawing.width < 5 * 100
    links = [Link(e.source, e.target, 0.0, (e.operand - 0.5) * 30) for e in edges]
    assert Layering([Item(*size) for size in sizes], links).crossings() == 0


def test_layers() -> None:
    """0 feeds 1, 1 feeds 2, 2 feeds 3; 4 feeds 5 and 5 feeds 3: the tree 4, 5 hangs above its use."""
    items = [Item(1, 1)] * 6
    links = [Link(0, 1), Link(0, 2), Link(1, 2), Link(2, 3), Link(4, 5), Link(5, 3)]
    assert longest_path_layers(items, links) == ([0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 1, 2])
    ports = [Item(1, 0, at_top=True), *items[1:5], Item(1, 0, at_bottom=True)]
    assert longest_path_layers(ports, [Link(0, 1), Link(0, 2), Link(1, 5), Link(3, 4)])[1] == [0, 1, 1, 1, 2, 3]


def test_the_order_of_layers_takes_crossings_away() -> None:
    """Two complete swaps: 0 to 3, 1 to 2, and 2 to 5, 3 to 4."""
    links = [Link(0, 3), Link(1, 2), Link(2, 5), Link(3, 4)]
    layering = Layering([Item(10, 10)] * 6, links)
    assert layering.crossings() == 0
    # K(2, 2) has one crossing whatever the order.
    assert Layering([Item(10, 10)] * 4, [Link(0, 2), Link(0, 3), Link(1, 2), Link(1, 3)]).crossings() == 1


def test_nearest_with_gaps_is_the_least_squares_optimum() -> None:
    assert nearest_with_gaps([0, 10, 50], [1, 1, 1], [5, 5]) == [0, 10, 50]
    assert nearest_with_gaps([0, 0, 0], [1, 1, 1], [4, 4]) == [-4, 0, 4]
    assert nearest_with_gaps([0, 0], [3, 1], [8]) == [-2, 6]
    draw = random.Random(0)
    for _ in range(50):
        count = draw.randrange(2, 7)
        wanted = [draw.uniform(0, 50) for _ in range(count)]
        weights = [draw.uniform(0.1, 5) for _ in range(count)]
        gaps = [draw.uniform(1, 20) for _ in range(count - 1)]
        found = nearest_with_gaps(wanted, weights, gaps)
        assert all(b - a >= gap - 1e-9 for (a, b), gap in zip(pairwise(found), gaps, strict=True))
        cost = sum(w * (x - t) ** 2 for x, t, w in zip(found, wanted, weights, strict=True))
        for _ in range(100):  # no other feasible point is better: one nearby, pushed apart from left to right
            other = [x + draw.uniform(-1, 1) for x in found]
            for i, gap in enumerate(gaps):
                other[i + 1] = max(other[i + 1], other[i] + gap)
            assert cost <= sum(w * (x - t) ** 2 for x, t, w in zip(other, wanted, weights, strict=True)) + 1e-9


CALL = """
func.func @main(%x: tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>> {
  %y = graph.call_dps "name"(%x, %x) :
    (tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>>
  func.return %y : tensor<?xf32, #graph.dims<n>>
}
"""
STRANGE = 'a<b>&amp;"\\N\n\t\x00\x1b é 日本 \U0001f600 \ud800 </title>]]>'


def strange_call() -> GraphModel:
    """A graph whose name and title have what XML or DOT treat specially, or forbid."""
    from xdsl.dialects.builtin import StringAttr

    module = weft.parse(CALL)
    (call,) = [op for op in module.walk() if isinstance(op, CallDpsOp)]
    call.callee = StringAttr(STRANGE)
    function = call.parent_op()
    assert function is not None
    function.properties["sym_name"] = StringAttr(STRANGE)
    (graph,) = graph_models(module)
    return graph


def test_svg_escapes_and_is_ascii() -> None:
    text = svg_text([strange_call()])
    assert text.isascii()
    shown = {e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")}
    assert any(s is not None and s.startswith('call_dps "a<b>&amp;"\\N\\n\\t\\x00\\x1b é 日本') for s in shown)


def test_dot_escapes_and_is_ascii() -> None:
    text = dot_text([strange_call()])
    assert text.isascii()
    assert 'n0_1 [label="call_dps \\"a<b>&amp;amp;\\"\\\\N\\\\n\\\\t\\\\x00\\\\x1b &#233; &#26085;' in text


def test_pictures_are_deterministic_and_stand_alone() -> None:
    graphs = graph_models(weft.parse(CALL))
    assert svg_text(graphs) == svg_text(graph_models(weft.parse(CALL)))
    assert dot_text(graphs) == dot_text(graph_models(weft.parse(CALL)))
    text = svg_text(graphs)
    assert text.count("http") == 1, "the namespace alone"
    assert "<script" not in text and "url(" in text.replace("url(#weft-arrow)", "url(", 1)
    root = ElementTree.fromstring(text)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert (root.attrib["width"], root.attrib["height"]) == (f"{width:g}", f"{height:g}")


def test_edges_of_one_value_have_their_own_hover_text() -> None:
    text = svg_text(graph_models(weft.parse(CALL)))
    for operand in (0, 1):
        assert (
            f"%x : tensor&lt;?xf32, #graph.dims&lt;n&gt;&gt;\nx to call_dps &quot;name&quot;, operand {operand}" in text
        )


def test_values_that_regions_capture_are_operands() -> None:
    (graph,) = graph_models(
        weft.parse("""
func.func @f(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.relu %x : tensor<4xf32>
  %r = scf.if %c -> (tensor<4xf32>) {
    %s = graph.add %y, %a : tensor<4xf32>, tensor<4xf32>
    %t = graph.add %s, %a : tensor<4xf32>, tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
""")
    )
    titles = [node.title for node in graph.nodes]
    assert titles == ["c", "x", "y", "relu", "if", "output"]
    assert [titles[e.source] for e in graph.edges if titles[e.target] == "if"] == ["c", "y", "relu", "x"]


def test_long_lines_are_cut_in_the_box_and_whole_on_hover() -> None:
    name = "a_very_long_name_of_a_function_" * 3
    (graph,) = graph_models(weft.parse(CALL.replace("name", name)))
    node = graph.nodes[1]
    assert node.title.endswith("...") and len(node.title) < 50
    assert name in node.hover


def test_a_function_of_several_blocks_is_refused() -> None:
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  "cf.br"()[^bb1] : () -> ()
^bb1:
  func.return %y : tensor<4xf32>
}
"""
    with pytest.raises(CompileError, match="@f has 2 blocks, functions at the levels of weft have one"):
        graph_models(weft.parse(text))


def test_gap_between_boxes() -> None:
    """Boxes side by side keep the gap, not less."""
    nodes = tuple(PictureNode(NodeKind.CONSTANT, "k", (), "", 0, 1, None) for _ in range(3))
    use = PictureNode(NodeKind.OPERATION, "concat", (), "", 3, 1, None)
    graph = GraphModel("f", (*nodes, use), tuple(Edge(i, 0, 3, i, "") for i in range(3)), ())
    boxes = Drawing(graph, [(50.0, 20.0)] * 4, []).nodes
    assert [b.x for b in boxes[:3]] == pytest.approx([0, 50 + GAP, 2 * (50 + GAP)])
    assert boxes[3].x == pytest.approx(50 + GAP)
