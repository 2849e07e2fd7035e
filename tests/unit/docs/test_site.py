"""The site: pages of forges as MkDocs reads them, the pages of the API, the blocks of the gallery."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from api_pages import api_pages
from gallery import GALLERY, ExampleError, blocks_of, executed

ROOT = Path(__file__).parents[3]


def test_links_and_lists() -> None:
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: pip install 'weft[docs]'")
    sys.modules.pop("site_hooks", None)
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("site_hooks", ROOT / "docs/generators/site.py")
    assert spec is not None and spec.loader is not None
    site = module_from_spec(spec)
    spec.loader.exec_module(site)

    page = ROOT / "docs/models.md"
    assert site.adapted("[a\nb](graphs.md#x) [c](../examples)", page) == "[a\nb](graphs.md#x) c"
    result = next(path for path in site.included() if path.startswith("sources/benchmarks/results/"))
    outside = f"[t](../{result.removeprefix('sources/')})"
    assert site.adapted(outside, page) == f"[t]({result})"
    readme = site.adapted("[graphs](docs/graphs.md)", ROOT / "README.md")
    assert readme == "[graphs](graphs.md)"
    assert site.adapted("text:\n- one\n  more\n  - inner\n", page) == "text:\n\n- one\n    more\n    - inner\n"
    fenced = "```\n- no list\n[x](../examples)\n```\n"
    assert site.adapted(fenced, page) == fenced
    assert site.adapted("B[l][s] and `B[l][s]`", page) == r"B\[l\][s] and `B[l][s]`"


def test_each_public_name_is_on_one_page() -> None:
    pages = api_pages()
    assert "::: weft.driver.build.build\n    options:\n      heading: weft.build\n" in pages["api/build.md"]
    assert (
        "heading: weft.te.compute" in pages["api/te.md"] and "heading: weft.graph.BlockBuilder" in pages["api/graph.md"]
    )


def test_the_gallery_lists_its_pages() -> None:
    listed = (GALLERY / "README.md").read_text()
    pages = sorted(page.name for page in GALLERY.glob("*.md") if page.name != "README.md")
    assert len(pages) == 10 and all(f"({name})" in listed for name in pages)
    config = (ROOT / "mkdocs.yml").read_text()
    assert all(f"gallery/{name}" in config for name in pages)
    for name in pages:
        outputs = [block for block in blocks_of((GALLERY / name).read_text()) if block.language == "text"]
        assert outputs and all(block.text.strip() for block in outputs), name


def test_outputs_replace_those_of_the_page(tmp_path: Path) -> None:
    text = '```python\nx = 2\nprint(x)\n```\n\n```text\nold\n```\n\n```python title="m.py"\ny = 3\n```\n\n'
    text += "```python\nfrom m import y\nprint(x * y)\n```\n\n```text\n```\n\n"
    text += "```console\n$ echo done\n```\n\n```text\n```\n"
    found = [block.text for block in blocks_of(executed(text, tmp_path / "page.md")) if block.language == "text"]
    assert found == ["2\n", "6\n", "done\n"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nprint(1)\n```\n", "prints '1"),
        ("```python\nx = 1\n```\n\n```text\nold\n```\n", "prints ''"),
    ],
)
def test_examples_that_fail(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=message):
        executed(text, tmp_path / "page.md")
