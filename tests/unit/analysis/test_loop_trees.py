"""Trees of the loops of functions, at all levels, as text and in notebooks."""

from html.parser import HTMLParser

import pytest
from shown_programs import FUNCTION, GRAPH, split_by

import weft
from weft.analysis.loop_tree import loop_trees
from weft.driver.pipeline import Pipeline
from weft.driver.stages import lower
from weft.support.build_options import BuildOptions
from weft.support.names import one_line, printable
from weft.support.target import Target
from weft.support.trees import Tree


def text_of(module: object) -> str:
    return "\n".join(map(str, loop_trees(module)))  # pyright: ignore[reportArgumentType]


def test_block_loops() -> None:
    assert text_of(weft.parse(FUNCTION)) == (
        "function @add_relu(A: f32[64, 32], B: f32[64, 32])\n"
        "├─ buffer Y: f32[64, 32]  memref.alloc, global\n"
        "├─ loop i in 64\n"
        "│  └─ loop j in 32\n"
        "│     └─ block Y  vi = i, vj = j; reads A; writes Y\n"
        "└─ loop i in 64\n"
        "   └─ loop j in 32\n"
        "      └─ block B  vi = i, vj = j; reads Y; writes B"
    )


def test_scheduled_loops() -> None:
    sch = weft.Schedule(weft.parse(FUNCTION))
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.annotate(j, "pragma", 1)
    sch.split(j, [None, 5])
    text = text_of(sch.mod)
    assert "loop i in 64  parallel" in text
    assert "block B  vi = i, vj = 5*j0 + j1; where 5*j0 + j1 < 32; reads Y; writes B" in text
    gpu = weft.Schedule(weft.parse(FUNCTION))
    gpu.bind(gpu.get_loops("B")[0], "blockIdx.x")
    assert "loop i in 64  blockIdx.x" in text_of(gpu.mod)


def test_graphs_and_tensor_expressions() -> None:
    assert text_of(weft.parse(GRAPH)) == (
        "function @main(x: f32[2, 8], w: f32[8, 4]) -> f32[2, 4]\n"
        "├─ h = matmul x, w  f32[2, 4]\n"
        "└─ y = relu h  f32[2, 4]"
    )


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("llvm -num-threads=2", ("loop i in 64  parallel",)),
        ("cuda", ("launch @add_relu_kernel", "blocks of")),
    ],
)
def test_low_functions(target: str, wanted: tuple[str, ...]) -> None:
    sch = weft.Schedule(weft.parse(FUNCTION))
    for block in ("Y", "B"):
        i, j = sch.get_loops(block)
        if target == "cuda":
            sch.bind(i, "blockIdx.x")
            sch.bind(j, "threadIdx.x")
        else:
            sch.parallel(i)
    options = BuildOptions(default_schedule=False)
    lower(Pipeline(sch.mod, Target.parse(target), options))
    text = text_of(sch.mod)
    assert all(part in text for part in wanted), text


class Lists(HTMLParser):
    """The text of each item, with the number of lists around it."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.open, self.items = 0, list[str](), list[tuple[int, str]]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.depth += tag == "ul"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.depth -= tag == "ul"

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.items.append((self.depth, data.strip()))


def test_notebooks_show_nested_lists() -> None:
    sch = split_by(8)
    (parsed := Lists()).feed(sch._repr_html_())
    assert parsed.open == []
    assert parsed.items[0] == (1, "function @add_relu(A: f32[64, 32], B: f32[64, 32])")
    assert (
        (3, "loop j0 in 4") in parsed.items
        and (4, "loop j1 in 8") in parsed.items
        and (4, "vectorized") in parsed.items
    )
    assert any("sched.vectorize" in text for _, text in parsed.items)
    assert [str(tree) for tree in sch.loop_trees()] == [text_of(sch.mod)]


def test_labels_are_text_alone() -> None:
    tree = Tree("block", "block <b>\n\x1b[31m", "a & b", (Tree("loop", "x"),))
    assert str(tree) == "block <b>\\n\\x1b[31m  a & b\n└─ x"
    page = tree._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;\\n\\x1b[31m" in page and "a &amp; b" in page
    assert one_line("a\nb") == "a\\nb" and printable("a\nb\x07") == "a\nb\\x07"
