"""Pages in a real browser: they load without errors, by themselves, and stay quick with 5 MB of IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, Page, chromium
from shown_programs import FUNCTION, GRAPH, SCHEDULE, make_database, report_of

import weft
from weft.runtime.kernel_report import MachinePeaks
from weft.support.build_options import BuildOptions
from weft.support.target import Target
from weft.tools.show.html import html_page
from weft.tools.show.lowering import assembly_parts, program_report
from weft.tools.show.report import LoweringStage, ProgramReport
from weft.tools.show.roofline import NO_KERNELS
from weft.tools.show.searches import search_report

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium (Debian: apt-get install chromium)")

ELEMENTS = "document.querySelectorAll('*').length"
EVIL = '</script><script>document.title = "broken"</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


def opened(browser: Page, folder: Path, report: Any) -> Page:
    """The page of a report, which loaded without errors and without anything else."""
    (file := folder / "page.html").write_text(html_page(report))
    browser.open(file)
    assert browser.problems == []
    assert browser.requests == [file.as_uri()]
    assert browser.run("document.documentElement.dataset.ready") == "yes"
    return browser


def text(page: Page, selector: str) -> str:
    return page.run(f"document.querySelector({selector!r}).innerText")


def choose(page: Page, name: str, value: int) -> None:
    page.run(f"{name}.value = '{value}'; {name}.dispatchEvent(new Event('change'))")


def test_a_program(browser: Page, tmp_path: Path) -> None:
    report = report_of(GRAPH + FUNCTION + SCHEDULE)
    peaks = MachinePeaks(100.0, 10.0, 50.0, 1 << 20)
    page = opened(browser, tmp_path, replace(report, roofline=replace(report.roofline, peaks=peaks)))
    drawn = "document.querySelector('.picture').shadowRoot.querySelectorAll('rect').length"
    assert page.run(drawn) == 5  # two parameters, two operators, a result

    # The slider, by the keyboard: the loops before and after each step.
    assert page.run("step.getAttribute('aria-valuetext')") == "step 3 of 3: vectorize"
    assert "sch.vectorize(j1)" in text(page, "#schedule-view pre")
    changes = "[...document.querySelectorAll('.line.added, .line.removed')].map(line => line.textContent)"
    assert page.run(changes) == ["-removed: loop j1 in 8", "+added: loop j1 in 8  vectorized"]
    page.run("step.focus()")
    page.press("ArrowLeft")
    assert page.run("step.getAttribute('aria-valuetext')") == "step 2 of 3: compute_at"
    page.press("Home")
    assert page.run("step.getAttribute('aria-valuetext')") == "as written, 3 steps follow"
    assert "loop j in 32" in text(page, "#schedule-view .tree")

    # The IR after each pass, compared with the one before.
    names = page.run("[...document.querySelector('#stage').options].map(option => option.text)")
    (flatten,) = [at for at, name in enumerate(names) if "tir-flatten" in name]
    choose(page, "stage", flatten)
    assert "lines added" in text(page, "#counts")
    assert page.run("document.querySelectorAll('.ir .added .sign').length") > 0
    page.run("diff.click()")
    assert page.run("document.querySelectorAll('.ir .added').length") == 0

    # Search, by the keyboard.
    page.run("search.focus(); search.value = 'func.func'; search.dispatchEvent(new Event('input'))")
    page.press("Enter")
    assert text(page, "#found") == "1 of 1 lines"
    assert page.run("document.querySelector('.ir mark').innerText") == "func.func"
    assert page.problems == []


def test_a_database(browser: Page, tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db")
    page = opened(browser, tmp_path, search_report(str(tmp_path / "tune.db")))
    assert page.run("document.querySelectorAll('svg.chart').length") == 2
    assert "loop j1 in 8" in text(page, "#schedule-view")


def test_light_and_dark(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, report_of(FUNCTION))
    colours: list[tuple[float, float]] = []
    for scheme in ("light", "dark"):
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        both = page.run("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
        ink, ground = (sum(map(int, colour[4:-1].split(","))) / 765 for colour in both)
        colours.append((ink, ground))
    page.send("Emulation.setEmulatedMedia", features=[])
    (light_ink, light), (dark_ink, dark) = colours
    assert light - light_ink > 0.7 and dark_ink - dark > 0.7


def test_controls_have_names(browser: Page, tmp_path: Path) -> None:
    """As a screen reader finds them: in the accessibility tree."""
    page = opened(browser, tmp_path, report_of(GRAPH))
    page.send("Accessibility.enable")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    controls = ("combobox", "listbox", "slider", "button", "searchbox", "checkbox", "link", "image", "region")
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in controls
    ]
    assert {"slider", "listbox", "searchbox"} <= {role for role, _ in found}
    assert [role for role, name in found if not name] == []
    reached: set[str] = set()
    page.run("document.activeElement.blur()")
    for _ in range(60):
        page.press("Tab")
        reached.add(page.run("document.activeElement.id"))
    assert {"step", "stage", "part", "search", "diff"} <= reached


def test_no_text_breaks_out(browser: Page, tmp_path: Path) -> None:
    stage = LoweringStage("input", EVIL, 1.0, ((EVIL, f"// {EVIL}"),))
    report = ProgramReport(EVIL, "llvm", "", (stage,), (), (), (), (), (), NO_KERNELS, EVIL)
    page = opened(browser, tmp_path, report)
    assert page.run("document.title").startswith(EVIL) and page.run("document.scripts.length") == 2
    assert f"// {EVIL}" in text(page, ".ir")


def test_differences_are_exact(browser: Page, tmp_path: Path) -> None:
    """Lines that are not added are those of the text before, in order, and the others those of the text after."""
    before = ["a", "b", "same", "same", "c", "}", "}", "d", "tail"]
    after = ["new", "b", "same", "c", "}", "x", "}", "same", "d", "d", "tail"]
    stages = tuple(
        LoweringStage(name, "", 1.0, (("@f", "\n".join(lines)),))
        for name, lines in (("input", before), ("pass", after))
    )
    page = opened(browser, tmp_path, ProgramReport("f", "", "", stages, (), (), (), (), (), NO_KERNELS))
    choose(page, "stage", 1)
    shown = "[row.querySelector('.sign').textContent, row.lastChild.textContent]"
    rows = page.run(f"[...document.querySelectorAll('.ir .row')].map(row => {shown})")
    assert [line for sign, line in rows if sign != "+"] == before
    assert [line for sign, line in rows if sign != "-"] == after
    assert sum(sign == " " for sign, _ in rows) >= 7


@pytest.mark.slow
def test_five_megabytes_stay_quick(browser: Page, tmp_path: Path) -> None:
    """The document holds the rows on screen alone, however long the text is, and any change is shown at once."""
    lines = [f"  %v{at} = arith.addf %v{at - 1}, %a : f32  // {'x' * (at % 40)}" for at in range(90_000)]
    texts = (
        lines,
        [line.replace("addf", "mulf") if at % 50 == 0 else line for at, line in enumerate(lines)],
        [line.replace("%v", "%w") for line in lines],
        ["  same" if at % 3 else "  other" for at in range(90_000)],
    )
    names = ("input", "one", "two", "three")
    stages = tuple(
        LoweringStage(name, "", 1.0, (("@f", "\n".join(text)),)) for name, text in zip(names, texts, strict=True)
    )
    assert len(stages[0].parts[0][1]) > 5_000_000
    page = opened(browser, tmp_path, ProgramReport("big", "", "", stages, (), (), (), (), (), NO_KERNELS))
    assert page.run(ELEMENTS) < 3000
    wanted = ("1800 lines added, 1800 removed", "90000 lines added, 90000 removed", "lines added")
    for at, counts in enumerate(wanted, 1):
        choose(page, "stage", at)
        assert counts in text(page, "#counts")
        assert page.run(ELEMENTS) < 3000
    choose(page, "stage", 0)
    page.run("search.value = '%v89999 '; search.dispatchEvent(new Event('input')); search.focus()")
    page.press("Enter")
    assert text(page, "#found") == "1 of 1 lines"
    assert "%v89999" in text(page, ".ir .current")
    assert page.run(ELEMENTS) < 3000
    assert page.problems == []


def test_nodes_lead_to_their_kernels_and_back(browser: Page, tmp_path: Path) -> None:
    """A box of the graph leads to its kernel, that to its box, schedule, IR and assembly, and those back."""
    program, target = weft.parse(GRAPH + FUNCTION + SCHEDULE), Target.parse("llvm -mcpu=x86-64-v3 -num-threads=1")
    report = program_report(program, "program.mlir", target, BuildOptions(), with_peaks=True)
    page = opened(browser, tmp_path, report)
    boxes = "[...document.querySelectorAll('.picture')].pop().shadowRoot.querySelectorAll('.to-kernel')"
    assert page.run(f"{boxes}.length") == 1
    page.run(f"{boxes}[0].focus()")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "kernel-title"
    kernel = page.run("document.getElementById('kernel-choice').selectedOptions[0].text")
    name = kernel.partition(":")[0]
    assert "add" in kernel or "relu" in kernel or "matmul" in kernel
    buttons = "[...document.querySelectorAll('#kernel-view button')]"
    words = page.run(f"{buttons}.map(button => button.textContent)")
    assert words[0] == "In the graph" and words[1].startswith("Schedule: ") and words[2:] == [
        "IR after each pass", "Assembly", "Roofline",
    ]  # fmt: skip
    assert f"function @{name}" in text(page, "#kernel-view .tree")
    assert "ret" in page.run("document.querySelector('#kernel-view .ir').textContent")

    page.run(f"{buttons}[0].click()")
    assert (
        page.run(f"{boxes}[0].classList.contains('chosen')")
        and page.run("document.activeElement.className") == "picture"
    )
    page.run(f"{buttons}[1].click()")
    assert page.run("document.activeElement.id") == "schedules-title"
    assert page.run("document.getElementById('schedule').selectedOptions[0].text").startswith(f"@{name}")
    page.run(f"{buttons}[3].click()")
    assert "assembly" in page.run("stage.selectedOptions[0].text") and f"@{name}" in page.run(
        "part.selectedOptions[0].text"
    )

    # Back to another kernel from its schedule and its IR.
    page.run("document.getElementById('kernel-choice').value = '1'")
    for section in ("schedule", "pass"):
        back = f"[...document.querySelectorAll('#{section}-view button')].find(one => one.textContent === 'Kernel')"
        page.run(f"{back}.click()")
        assert page.run("document.getElementById('kernel-choice').selectedOptions[0].text") == kernel

    # Operators before fusion lead to the kernel that holds them.
    before = "document.querySelector('.picture').shadowRoot.querySelectorAll('.to-kernel')"
    assert page.run(f"[...{before}].map(box => box.querySelector('.title').textContent)") == ["matmul", "relu"]
    for at in range(2):
        page.run("document.getElementById('graph').scrollIntoView()")
        page.run(f"{before}[{at}].dispatchEvent(new MouseEvent('click'))")
        assert page.run("document.activeElement.id") == "kernel-title"
        assert page.run("document.getElementById('kernel-choice').selectedOptions[0].text").startswith("fused_matmul")

    # Search.
    def enter(field: str, value: str) -> None:
        page.run(f"{{ const field = document.getElementById('{field}'); field.value = '{value}'; "
                 "field.dispatchEvent(new Event('input')); }")  # fmt: skip

    enter("kernel-search", "no such")
    assert text(page, "#kernel-view .controls span").startswith("0 of ")
    assert page.run("document.querySelectorAll('#kernel-view .tree').length") == 0
    enter("graph-search", "relu")
    assert " found" in text(page, "#graph-view .controls")
    assert page.run(f"[...{boxes}].some(box => box.classList.contains('found'))")
    assert page.problems == []


def test_assembly_by_function() -> None:
    """Labels within functions, directives and data belong to no part of their own."""
    lines = [".text", ".globl f", ".type f,@function", "f:", ".cfi_startproc", "  movl $1, %eax", ".LBB0_1:", "  retq"]
    lines += [".Lfunc_end0:", ".size f, .Lfunc_end0-f", "# -- End function", ".section .rodata", "table:", ".long 1"]
    parts = dict(assembly_parts("\n".join(lines)))
    assert parts["@f"] == "f:\n  movl $1, %eax\n.LBB0_1:\n  retq\n.Lfunc_end0:"
    assert list(parts) == ["@f", "@table"]
