"""The page of a report: complete in itself, and no text of a program can break out of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from shown_programs import FUNCTION, GRAPH, SCHEDULE, make_database, report_of

from weft.runtime.kernel_report import MachinePeaks
from weft.tools.show.charts import convergence_chart, roofline_chart, weight_chart
from weft.tools.show.html import html_page
from weft.tools.show.report import LoweringStage, ProgramReport, Roofline
from weft.tools.show.searches import search_report

PEAKS = MachinePeaks(100.0, 10.0, 50.0, 1 << 20)
EVIL = '</script><script>alert("x")</script><img src=//evil.example/x onerror=alert(1)>'
VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """The elements of a page; they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def data(self) -> dict[str, Any]:
        """What the script renders."""
        (text, _) = self.texts["script"]
        return json.loads(text)


def page_of(report: Any) -> Page:
    return Page(html_page(report))


@pytest.fixture(scope="module")
def report() -> ProgramReport:
    found = report_of(GRAPH + FUNCTION + SCHEDULE)
    return replace(found, roofline=replace(found.roofline, peaks=PEAKS))


def test_the_sections(report: ProgramReport) -> None:
    page = page_of(report)
    assert [a["href"] for a in page.all("a")] == [
        *("#content", "#graph", "#kernel", "#schedules", "#passes", "#memory", "#kernels")
    ]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) and {"graph-view", "schedule-view", "pass-view"} <= set(ids)
    assert page.all("html") == [{"lang": "en"}] and len(page.all("h1")) == 1 and len(page.all("main")) == 1
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))
    for section in page.all("section"):
        assert section["aria-labelledby"] in ids
    data = page.data()
    assert [len(graphs) for graphs in data["graphs"]] == [1, 2]
    assert [stage["name"] for stage in data["stages"]] == [stage.name for stage in report.stages]
    places = [place for stage in data["stages"] for _, place in stage["parts"]]
    assert [data["texts"][place] for place in places] == [text for stage in report.stages for _, text in stage.parts]
    assert len(set(data["texts"])) == len(data["texts"])  # a text that no pass changes is stored once


def test_trees_and_buffers_of_the_steps(report: ProgramReport) -> None:
    data = page_of(report).data()
    (schedule,) = [schedule for schedule in data["schedules"] if schedule["title"] == "@add_relu, in the file"]
    last = schedule["positions"][-1]
    depths, places = last["tree"][::2], last["tree"][1::2]
    lines = [(depth, *data["nodes"][place]) for depth, place in zip(depths, places, strict=True)]
    assert lines[0] == (0, "function", "function @add_relu(A: f32[64, 32], B: f32[64, 32])", "")
    assert (3, "loop", "loop j1 in 8", "vectorized") in lines
    assert [data["rows"][row][0] for row in last["buffers"]] == ["A", "B", "Y"]
    assert last["calls"] == ["sch.vectorize(j1)"]


@pytest.mark.parametrize("kind", ["program", "database"])
def test_nothing_comes_from_outside(kind: str, report: ProgramReport, tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db")
    shown = report if kind == "program" else search_report(str(tmp_path / "tune.db"))
    text = html_page(shown)
    page = Page(text)
    assert not {"src", "srcset", "action", "formaction", "poster", "background"} & {
        name for _, attributes in page.elements for name in attributes
    }
    assert page.all("link") == [] and page.all("iframe") == [] and page.all("base") == []
    assert all((attributes["href"] or "").startswith("#") for attributes in page.all("a"))
    assert re.search(r"url\((?!#)", text) is None and "@import" not in text and "import(" not in text
    assert set(re.findall(r"https?://[^\\\"' )<]+", text)) <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'; ")


def test_texts_of_programs_stay_texts(report: ProgramReport, tmp_path: Path) -> None:
    stage = LoweringStage(EVIL, EVIL, 1.0, ((EVIL, f"// {EVIL}\x07\ud800 \u2028"),))
    page = page_of(replace(report, name=EVIL, stages=(stage,), failure=EVIL))
    assert len(page.all("script")) == 2 and page.all("img") == []
    data = page.data()
    assert data["stages"][0]["name"] == EVIL and data["texts"][0].startswith(f"// {EVIL}\\x07\\ud800 \u2028")
    assert EVIL in "".join(page.texts["h1"])
    make_database(tmp_path / "tune.db", name=EVIL)
    page = page_of(search_report(str(tmp_path / "tune.db")))
    assert len(page.all("script")) == 2 and page.all("img") == [] and page.all("crashed") == []
    assert "1 failed: it <crashed>" in page.texts["li"]


def test_names_in_the_ir_stay_texts() -> None:
    text = FUNCTION.replace('tir.block "B"', f'tir.block "{EVIL.replace(chr(34), "")}"')
    page = page_of(report_of(text))
    assert len(page.all("script")) == 2 and page.all("img") == []
    assert any(EVIL.replace('"', "") in part for part in page.data()["texts"])


def test_a_roofline(report: ProgramReport) -> None:
    svg = Page(roofline_chart(report.roofline, "a < b"))
    (chart,) = svg.all("svg")
    assert chart["role"] == "img" and (chart["aria-label"] or "").startswith("Roofline of a < b: 2 kernels with ")
    assert [circle["class"] for circle in svg.all("circle")] == ["limit", "limit"]
    timed = replace(report.roofline, rows=tuple(replace(row, seconds=1e-6) for row in report.roofline.rows))
    assert [c["class"] for c in Page(roofline_chart(timed, "")).all("circle")] == ["measured", "measured"]
    assert roofline_chart(replace(report.roofline, peaks=None), "") == ""
    assert roofline_chart(Roofline((), PEAKS, ""), "") == ""


def test_convergence_and_weights(tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db")
    report = search_report(str(tmp_path / "tune.db"))
    (task,) = report.tasks
    svg = Page(convergence_chart(task))
    (chart,) = svg.all("svg")
    wanted = "Convergence of add_relu: 4 trials, 1 failed; the fastest takes 1 us, the default schedule 3 us."
    assert chart["aria-label"] == wanted
    assert len(svg.all("circle")) == 3
    assert sorted(c for p in svg.all("path") if (c := p["class"]) != "grid") == ["best", "default", "failed"]
    assert convergence_chart(replace(task, trials=task.trials[2:3])) == ""
    assert Page(weight_chart(report)).all("svg")[0]["aria-label"] == "Weights of the tasks: add_relu 100%"
    assert weight_chart(replace(report, tasks=())) == ""
