"use strict";
// Renders what stands as JSON in the page: graphs, schedules step by step, and the IR after each pass. Only what is
// looked at is in the document: the IR view holds the rows on screen, whatever the length of the text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROW = 18; // pixels of a row of IR, as in the style sheet
  const LONGEST = 2000; // characters of a row that are shown
  const CONTEXT = 3; // unchanged rows around changed ones

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") element.className = value;
      else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (typeof value === "boolean") element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  function labelled(text, control) {
    return make("label", {}, text, control);
  }

  function options(select, names) {
    select.replaceChildren(...names.map((name, at) => make("option", { value: String(at) }, name)));
  }

  // Differences. Lines that are the same at both ends are cut off, then lines that stand once in both texts anchor the
  // rest (patience diff), and between anchors small parts are compared exactly.

  function difference(a, b) {
    const edits = []; // [index in a or -1, index in b or -1]
    const pending = [[0, a.length, 0, b.length]];
    while (pending.length) {
      let [a0, a1, b0, b1] = pending.pop();
      while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) edits.push([a0++, b0++]);
      let same = 0;
      while (a0 < a1 - same && b0 < b1 - same && a[a1 - 1 - same] === b[b1 - 1 - same]) same++;
      const tail = [a1 - same, a1, b1 - same, b1];
      a1 -= same;
      b1 -= same;
      const parts = a0 === a1 || b0 === b1 ? [] : anchored(a, a0, a1, b, b0, b1);
      if (parts.length) {
        if (same) pending.push(tail);
        for (const part of parts.reverse()) pending.push(part); // too many for the arguments of one call
        continue;
      }
      for (const edit of compared(a, a0, a1, b, b0, b1)) edits.push(edit);
      for (let at = 0; at < same; at++) edits.push([a1 + at, b1 + at]);
    }
    return edits;
  }

  function anchored(a, a0, a1, b, b0, b1) {
    const places = new Map(); // line -> [count in a, place in a, count in b, place in b]
    for (let at = a0; at < a1; at++) {
      const found = places.get(a[at]);
      if (found) found[0]++;
      else places.set(a[at], [1, at, 0, -1]);
    }
    for (let at = b0; at < b1; at++) {
      const found = places.get(b[at]);
      if (found) {
        found[2]++;
        found[3] = at;
      }
    }
    const unique = [...places.values()].filter((found) => found[0] === 1 && found[2] === 1);
    if (!unique.length) return [];
    // The longest sequence of anchors in the order of both texts.
    const ends = [], before = new Array(unique.length);
    unique.forEach(([, , , place], at) => {
      let low = 0, high = ends.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (unique[ends[middle]][3] < place) low = middle + 1;
        else high = middle;
      }
      before[at] = low ? ends[low - 1] : -1;
      ends[low] = at;
    });
    const chain = [];
    for (let at = ends[ends.length - 1]; at >= 0; at = before[at]) chain.push(unique[at]);
    chain.reverse();
    const parts = [];
    let [pa, pb] = [a0, b0];
    for (const [, inA, , inB] of chain) {
      if (inA > pa || inB > pb) parts.push([pa, inA, pb, inB]);
      parts.push([inA, inA + 1, inB, inB + 1]);
      [pa, pb] = [inA + 1, inB + 1];
    }
    if (pa < a1 || pb < b1) parts.push([pa, a1, pb, b1]);
    return parts;
  }

  function compared(a, a0, a1, b, b0, b1) {
    const rows = a1 - a0, columns = b1 - b0, edits = [];
    if (rows * columns > 1e6 || !rows || !columns) {
      for (let at = a0; at < a1; at++) edits.push([at, -1]);
      for (let at = b0; at < b1; at++) edits.push([-1, at]);
      return edits;
    }
    const width = columns + 1, common = new Uint16Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) {
        common[i * width + j] = a[a0 + i] === b[b0 + j]
          ? common[(i + 1) * width + j + 1] + 1
          : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
      }
    }
    let i = 0, j = 0;
    while (i < rows || j < columns) {
      if (i < rows && j < columns && a[a0 + i] === b[b0 + j]) edits.push([a0 + i++, b0 + j++]);
      else if (i < rows && (j === columns || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
        edits.push([a0 + i++, -1]);
      } else edits.push([-1, b0 + j++]);
    }
    return edits;
  }

  // Trees

  function linesOf(flat) {
    const lines = [];
    for (let at = 0; at < flat.length; at += 2) lines.push({ depth: flat[at], node: flat[at + 1] });
    return lines;
  }

  function treeView(lines, signs, sign, word) {
    const top = make("ul"), lists = [top];
    for (const [at, { depth, node }] of lines.entries()) {
      const [kind, label, note] = data.nodes[node];
      const line = make("span", { class: signs.has(at) ? `line ${word}` : "line" });
      if (signs.has(at)) line.append(make("span", { class: "sign", "aria-hidden": "true" }, sign), make("span", { class: "hidden" }, `${word}: `));
      line.append(make("span", { class: kind }, label));
      if (note) line.append(make("span", { class: "note" }, `  ${note}`));
      const item = make("li", {}, line);
      lists.length = depth + 1;
      lists[depth].append(item);
      lists.push({
        append(child) { // a list below the item, when it gets its first child
          const list = make("ul");
          item.append(list);
          lists[depth + 1] = list;
          list.append(child);
        },
      });
    }
    return make("div", { class: "tree", tabindex: "0" }, top);
  }

  function compareTrees(before, after) {
    const a = linesOf(before), b = linesOf(after);
    const removed = new Set(), added = new Set();
    for (const [i, j] of difference(a.map((line) => line.node), b.map((line) => line.node))) {
      if (j < 0) removed.add(i);
      else if (i < 0) added.add(j);
    }
    return [treeView(a, removed, "-", "removed"), treeView(b, added, "+", "added")];
  }

  function tableOf(columns, allRows, names) {
    const used = columns.map((_, at) => at < names || allRows.some((row) => row[at] !== "-"));
    columns = columns.filter((_, at) => used[at]);
    const rows = allRows.map((row) => row.filter((_, at) => used[at]));
    const head = make("tr", {}, ...columns.map((name, at) => make("th", at < names ? { scope: "col" } : { scope: "col", class: "number" }, name)));
    const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, at) =>
      at === 0 ? make("th", { scope: "row" }, cell) : make("td", at < names ? {} : { class: "number" }, cell))));
    return make("div", { class: "scroll", tabindex: "0" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  }

  // Views lead to each other: `open.kernel(name)`, `open.graph(name)`, `open.schedule(place)`, `open.passes(stage, name)`.

  const open = {};

  function goTo(section) {
    document.getElementById(section).scrollIntoView();
    const title = document.getElementById(`${section}-title`);
    title.tabIndex = -1;
    title.focus({ preventScroll: true });
  }

  const kernelOf = (name) => (data.kernels || []).findIndex((kernel) => kernel.names.includes(name));

  function kernelView(host) {
    const { kernels, stages, texts } = data;
    const choice = make("select", { id: "kernel-choice" });
    const search = make("input", { type: "search", id: "kernel-search", placeholder: "name or operator" });
    const found = make("span", { "aria-live": "polite" }), about = make("p");
    const links = make("div", { class: "controls" }), panes = make("div", { class: "columns" });
    let shown = kernels.map((_, at) => at);

    function filter() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      shown = kernels.map((_, at) => at).filter((at) => {
        const text = `${kernels[at].names.join(" ")} ${kernels[at].holds}`.toLowerCase();
        return words.every((word) => text.includes(word));
      });
      options(choice, shown.map((at) => `${kernels[at].title}: ${kernels[at].holds}`));
      found.textContent = words.length ? `${shown.length} of ${kernels.length} kernels` : `${kernels.length} kernels`;
      draw();
    }

    function partOf(stage, names) {
      return stage.parts.find(([name]) => names.includes(name.replace(/^@/, "")));
    }

    function draw() {
      const kernel = kernels[shown[choice.value]];
      links.replaceChildren();
      panes.replaceChildren();
      about.textContent = kernel ? `@${kernel.names.join(", @")}: ${kernel.facts}` : "";
      if (!kernel) return;
      const link = (text, act) => links.append(make("button", { type: "button", onclick: act }, text));
      if (open.graph && open.graph(kernel.names, false)) link("In the graph", () => open.graph(kernel.names, true));
      for (const place of kernel.schedules) {
        const schedule = data.schedules[place], last = schedule.positions[schedule.positions.length - 1];
        link(`Schedule: ${schedule.positions.length - 1} steps`, () => open.schedule(place));
        panes.append(make("div", {}, make("h3", {}, "Loops"), treeView(linesOf(last.tree), new Set(), "", "")));
        const calls = schedule.positions.slice(1).flatMap((position) => position.calls).join("\n");
        panes.append(make("div", {}, make("h3", {}, "Schedule"), make("pre", { tabindex: "0" }, calls || "# no steps")));
      }
      const holding = stages.map((stage, at) => [at, partOf(stage, kernel.names)]).filter(([, part]) => part);
      if (holding.length) link("IR after each pass", () => open.passes(holding[0][0], holding[0][1][0]));
      const [at, part] = holding[holding.length - 1] || [];
      if (part && stages[at].name === "assembly") {
        link("Assembly", () => open.passes(at, part[0]));
        const view = irView();
        panes.append(make("div", {}, make("h3", {}, "Assembly"), view.element));
        view.show(texts[part[1]].split("\n").map((text, row) => ({ sign: " ", number: String(row + 1), text })));
      }
      if (document.getElementById("kernels")) link("Roofline", () => goTo("kernels"));
    }

    choice.addEventListener("change", draw);
    search.addEventListener("input", filter);
    host.append(
      make("div", { class: "controls" }, labelled("Find", search), found, labelled("Kernel", choice)), about, links, panes,
    );
    open.kernel = (name) => {
      search.value = "";
      filter();
      choice.value = String(kernelOf(name));
      draw();
      goTo("kernel");
    };
    open.drawKernel = filter; // after all views are there
  }

  function toKernel(names) {
    return make("button", { type: "button", onclick: () => open.kernel(names()) }, "Kernel");
  }

  // Schedules

  function scheduleView(host) {
    const choice = make("select", { id: "schedule" });
    const slider = make("input", { type: "range", id: "step", min: "0", step: "1", "aria-label": "Step of the schedule" });
    const back = make("button", { type: "button" }, "Previous step"), next = make("button", { type: "button" }, "Next step");
    const where = make("span", { class: "where", "aria-live": "polite" });
    const calls = make("pre", { tabindex: "0", "aria-label": "The step" }), columns = make("div", { class: "columns" });
    const buffers = make("div"), texts = make("div");
    const base = make("select", { id: "base" });
    options(choice, data.schedules.map((schedule) => schedule.title));
    options(base, ["the step before", "the function as written"]);
    let drawn = -1;

    function show() {
      const { positions } = data.schedules[choice.value], at = Number(slider.value), position = positions[at];
      const text = at ? `step ${at} of ${positions.length - 1}: ${position.name}` : `${position.name}, ${positions.length - 1} steps follow`;
      where.textContent = text;
      slider.setAttribute("aria-valuetext", text);
      back.disabled = at === 0;
      next.disabled = at === positions.length - 1;
      calls.textContent = position.calls.join("\n") || "# no step yet";
      const isFirst = base.value === "1";
      const [before, after] = compareTrees(positions[isFirst ? 0 : Math.max(at - 1, 0)].tree, position.tree);
      columns.replaceChildren(
        make("div", {}, make("h3", {}, at && !isFirst ? "Before the step" : "As written"), before),
        ...(at ? [make("div", {}, make("h3", {}, "After the step"), after)] : []),
      );
      buffers.replaceChildren(tableOf(data.columns, position.buffers.map((row) => data.rows[row]), 3));
    }

    function choose() {
      const schedule = data.schedules[choice.value];
      if (drawn === choice.value) return;
      drawn = choice.value;
      slider.max = String(schedule.positions.length - 1);
      slider.value = slider.max;
      texts.replaceChildren(
        ...(schedule.failure ? [make("h3", {}, "The next step is refused"), make("pre", { tabindex: "0" }, schedule.failure)] : []),
        make("details", {}, make("summary", {}, "The schedule as Python"), make("pre", { tabindex: "0" }, schedule.python)),
        make("details", {}, make("summary", {}, "The schedule as IR"), make("pre", { tabindex: "0" }, schedule.ir)),
      );
      show();
    }

    function move(by) {
      slider.value = String(Number(slider.value) + by);
      show();
    }

    choice.addEventListener("change", choose);
    base.addEventListener("change", show);
    slider.addEventListener("input", show);
    back.addEventListener("click", () => move(-1));
    next.addEventListener("click", () => move(1));
    const kernel = () => (data.kernels || []).find((one) => one.schedules.includes(Number(choice.value)));
    const toIts = toKernel(() => kernel().names[0]);
    choice.addEventListener("change", () => { toIts.disabled = !kernel(); });
    toIts.disabled = !kernel();
    toIts.hidden = !(data.kernels || []).length;
    open.schedule = (place) => {
      choice.value = String(place);
      choice.dispatchEvent(new Event("change"));
      goTo("schedules");
    };
    host.append(
      make("div", { class: "controls" }, labelled("Schedule", choice), labelled("Compare with", base), toIts),
      make("div", { class: "controls" }, back, slider, next, where),
      calls, columns,
      make("h3", {}, "Buffers after the step"), buffers,
      make("p", { class: "note" }, "Loaded and stored: bytes of all executions. From a cache or memory: by a model in which the largest part of a nest that fits in a cache moves its data there once."),
      texts,
    );
    choose();
  }

  // Graphs. A picture has styles of its own, so it stands in a shadow tree.

  function graphView(host) {
    const titles = ["Before fusion", "After fusion"];
    const columns = make("div", { class: "columns" });
    const search = make("input", { type: "search", id: "graph-search", placeholder: "operator, name or type" });
    const found = make("span", { "aria-live": "polite" });
    const drawings = new Map(); // column -> its boxes: text, element, whether it is a call, its kernel
    let word = "", matches = [], match = -1;

    function boxesOf(drawn, kernels) {
      return [...drawn.querySelectorAll("g")].filter((g) => g.querySelector(":scope > rect") && g.querySelector(":scope > title")).map((box, place) => {
        const hover = box.querySelector("title").textContent;
        const called = hover.split("\n")[0].match(/@(\S+)/);
        return { element: box, text: `${hover}\n${box.textContent}`.toLowerCase(), isCall: called !== null, name: called ? called[1] : kernels[place] || "" };
      });
    }

    function find() {
      word = search.value.toLowerCase();
      matches = [];
      match = -1;
      for (const boxes of drawings.values()) {
        for (const box of boxes) {
          const isFound = word !== "" && box.text.includes(word);
          box.element.classList.toggle("found", isFound);
          if (isFound) matches.push(box.element);
        }
      }
      found.textContent = word ? `${matches.length} found` : "";
    }

    function step(by) {
      if (!matches.length) return;
      match = match < 0 && by < 0 ? matches.length - 1 : (match + by + matches.length) % matches.length;
      matches[match].scrollIntoView({ block: "center", inline: "center" });
      found.textContent = `${match + 1} of ${matches.length}`;
    }
    data.graphs.forEach((graphs, at) => {
      if (!graphs.length) return;
      const choice = make("select", { id: `graph-${at}` }), place = make("div");
      options(choice, graphs.map((graph) => `@${graph.name}`));
      const show = () => {
        const graph = graphs[choice.value], lines = linesOf(graph.tree);
        const parts = [];
        if (graph.svg) {
          const picture = make("div", { class: "picture", tabindex: "0", role: "region", "aria-label": `Picture of @${graph.name}` });
          const parsed = new DOMParser().parseFromString(graph.svg, "image/svg+xml").documentElement;
          const drawn = document.importNode(parsed, true);
          const style = make("style", {}, ".to-kernel { cursor: pointer; } .to-kernel:focus-visible > rect, .to-kernel:hover > rect, .chosen > rect { stroke: #ea580c; stroke-width: 3; } .found > rect { fill: #fde68a; }");
          picture.attachShadow({ mode: "open" }).append(style, drawn);
          const boxes = boxesOf(drawn, graph.kernels);
          drawings.set(at, boxes);
          for (const { element, name } of boxes.filter((box) => kernelOf(box.name) >= 0)) {
            element.classList.add("to-kernel");
            element.setAttribute("role", "link");
            element.setAttribute("tabindex", "0");
            element.addEventListener("click", () => open.kernel(name));
            element.addEventListener("keydown", (event) => event.key === "Enter" && open.kernel(name));
          }
          const fit = make("input", { type: "checkbox", onchange: () => {
            drawn.style.cssText = fit.checked ? "max-width: 100%; height: auto" : "";
          } });
          parts.push(make("div", { class: "controls" }, labelled(fit, " fit to width")), picture);
        }
        const tree = treeView(lines, new Set(), "", "");
        parts.push(make("details", { open: !graph.svg }, make("summary", {}, `@${graph.name} as text`), tree));
        place.replaceChildren(...parts);
        find();
      };
      choice.addEventListener("change", show);
      columns.append(make("div", {}, make("h3", {}, titles[at]), make("div", { class: "controls" }, labelled("Function", choice)), place));
      show();
    });
    search.addEventListener("input", find);
    search.addEventListener("keydown", (event) => event.key === "Enter" && step(event.shiftKey ? -1 : 1));
    const button = (text, act) => make("button", { type: "button", onclick: act }, text);
    const hint = (data.kernels || []).length ? make("span", { class: "note" }, "A box leads to its kernel.") : "";
    host.append(
      make("div", { class: "controls" }, labelled("Search", search), button("Previous", () => step(-1)), button("Next", () => step(1)), found, hint),
      columns,
    );
    open.graph = (names, isShown) => {
      const boxes = [...drawings.values()].flat();
      const chosen = boxes.filter((box) => names.includes(box.name));
      if (isShown && chosen.length) {
        for (const box of boxes) box.element.classList.toggle("chosen", chosen.includes(box));
        goTo("graph");
        const { element } = chosen.find((box) => box.isCall) || chosen[0];
        element.scrollIntoView({ block: "center", inline: "center" });
        element.focus({ preventScroll: true });
      }
      return chosen.length > 0;
    };
  }

  // The IR after each pass

  const TOKEN = /\/\/.*|"(?:[^"\\]|\\.)*"|%[\w$.-]+|@[\w$.-]+|\b[a-z_]+\.[a-z_][\w.]*/g;

  function painted(text) {
    const parts = [];
    let place = 0;
    for (const match of text.matchAll(TOKEN)) {
      const token = match[0], first = token[0];
      const kind = first === "/" ? "comment" : first === '"' ? "string" : first === "%" ? "value" : first === "@" ? "symbol" : "operation";
      if (match.index > place) parts.push([text.slice(place, match.index), ""]);
      parts.push([token, kind]);
      place = match.index + token.length;
    }
    if (place < text.length) parts.push([text.slice(place), ""]);
    return parts;
  }

  function irView() {
    const rows = make("div", { class: "rows" }), spacer = make("div");
    const view = make("div", { class: "ir", tabindex: "0", role: "region", "aria-label": "IR" }, spacer, rows);
    let lines = [], word = "", current = -1, planned = false;

    function draw() {
      planned = false;
      const first = Math.max(0, Math.floor(view.scrollTop / ROW) - 20);
      const last = Math.min(lines.length, first + Math.ceil(view.clientHeight / ROW) + 40);
      rows.style.transform = `translateY(${first * ROW}px)`;
      rows.replaceChildren(...lines.slice(first, last).map((line, at) => rowOf(line, first + at)));
    }

    function rowOf({ sign, number, text }, at) {
      const kind = { "+": " added", "-": " removed" }[sign] || "";
      const row = make("div", { class: `row${kind}${at === current ? " current" : ""}` }, make("span", { class: "number" }, number));
      row.append(make("span", { class: "sign" }, sign));
      const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)} ... ${text.length - LONGEST} characters more` : text;
      for (const [part, style] of painted(shown)) row.append(marked(part, style));
      return row;
    }

    function marked(text, style) {
      const span = make("span", style ? { class: style } : {});
      let place = 0;
      if (word) {
        const lower = text.toLowerCase();
        for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, place)) {
          span.append(text.slice(place, at), make("mark", {}, text.slice(at, at + word.length)));
          place = at + word.length;
        }
      }
      span.append(text.slice(place));
      return span;
    }

    view.addEventListener("scroll", () => {
      if (!planned) {
        planned = true;
        requestAnimationFrame(draw);
      }
    });
    return {
      element: view,
      show(newLines) {
        lines = newLines;
        current = -1;
        spacer.style.height = `${lines.length * ROW}px`;
        view.scrollTop = 0;
        draw();
      },
      highlight(newWord) {
        word = newWord;
        draw();
      },
      go(at) {
        current = at;
        view.scrollTop = Math.max(0, at * ROW - view.clientHeight / 2);
        draw();
      },
      lines: () => lines,
    };
  }

  function passView(host) {
    const { stages, texts } = data;
    const known = new Map(); // place of a text -> its lines
    const linesAt = (place) => {
      if (!known.has(place)) known.set(place, texts[place].split("\n"));
      return known.get(place);
    };
    const before = stages.map((_, at) => new Map(at ? stages[at - 1].parts : []));
    const changed = stages.map((stage, at) => stage.parts.filter(([name, text]) => before[at].get(name) !== text).length);
    const widest = Math.max(...stages.map((stage) => stage.name.length));
    const list = make("select", { id: "stage", size: String(Math.min(Math.max(stages.length, 2), 32)) });
    options(list, stages.map((stage, at) => {
      const count = at && changed[at] ? `${changed[at]} changed` : "";
      return `${String(at).padStart(2)} ${stage.name.padEnd(widest)} ${count}`.replaceAll(" ", "\u00a0");
    }));
    const part = make("select", { id: "part" }), summary = make("p", { id: "summary" });
    const differs = make("input", { type: "checkbox", id: "diff", checked: true });
    const short = make("input", { type: "checkbox", id: "short" });
    const search = make("input", { type: "search", id: "search", placeholder: "text in the IR" });
    const found = make("span", { id: "found", "aria-live": "polite" }), counts = make("span", { id: "counts", "aria-live": "polite" });
    const view = irView(), plain = make("details", {}, make("summary", {}, "Plain text"));
    let matches = [], match = -1, changes = [], change = -1;
    let followed = null; // the part that was chosen last: it stays from stage to stage, as long as there is one

    function chooseStage() {
      const stage = stages[list.value], at = Number(list.value);
      summary.textContent = stage.summary;
      options(part, stage.parts.map(([name, text]) => {
        const old = before[at].get(name);
        return at && old !== text ? `${name} (${old === undefined ? "new" : "changed"})` : name;
      }));
      let first = stage.parts.findIndex(([name]) => name === followed);
      if (first < 0) first = stage.parts.findIndex(([name, text]) => before[at].get(name) !== text);
      part.value = String(Math.max(first, 0));
      choosePart();
    }

    function choosePart() {
      const at = Number(list.value), chosen = stages[at].parts[part.value];
      const after = chosen ? linesAt(chosen[1]) : [];
      const old = chosen && before[at].get(chosen[0]);
      let lines;
      if (differs.checked && at && old !== chosen?.[1] && old !== undefined) {
        const a = linesAt(old);
        lines = difference(a, after).map(([i, j]) => j < 0
          ? { sign: "-", number: "", text: a[i] }
          : { sign: i < 0 ? "+" : " ", number: String(j + 1), text: after[j] });
      } else lines = after.map((text, number) => ({ sign: " ", number: String(number + 1), text }));
      const added = lines.filter((line) => line.sign === "+").length, removed = lines.filter((line) => line.sign === "-").length;
      const total = lines.length;
      if (short.checked && (added || removed)) lines = onlyChanges(lines);
      changes = [];
      lines.forEach((line, row) => {
        if (line.sign !== " " && (!row || lines[row - 1].sign === " ")) changes.push(row);
      });
      change = -1;
      const unchanged = at && old === chosen?.[1] ? ", unchanged" : "";
      counts.textContent = added || removed ? `${added} lines added, ${removed} removed` : `${total} lines${unchanged}`;
      view.show(lines);
      plain.open = false;
      while (plain.childNodes.length > 1) plain.lastChild.remove();
      find();
    }

    function onlyChanges(lines) {
      const kept = new Set();
      lines.forEach((line, at) => {
        if (line.sign !== " ") for (let near = at - CONTEXT; near <= at + CONTEXT; near++) kept.add(near);
      });
      const result = [];
      lines.forEach((line, at) => {
        if (kept.has(at)) result.push(line);
        else if (kept.has(at - 1)) result.push({ sign: " ", number: "", text: "..." });
      });
      return result;
    }

    function find() {
      const word = search.value.toLowerCase();
      matches = [];
      match = -1;
      if (word) view.lines().forEach((line, at) => line.text.toLowerCase().includes(word) && matches.push(at));
      view.highlight(word);
      found.textContent = word ? `${matches.length} lines found` : "";
    }

    function goMatch(by) {
      if (!matches.length) return;
      match = match < 0 && by < 0 ? matches.length - 1 : (match + by + matches.length) % matches.length;
      found.textContent = `${match + 1} of ${matches.length} lines`;
      view.go(matches[match]);
    }

    function goChange(by) {
      if (!changes.length) return;
      change = change < 0 && by < 0 ? changes.length - 1 : (change + by + changes.length) % changes.length;
      view.go(changes[change]);
    }

    let waiting = 0;
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(find, 120);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(waiting);
      if (match < 0) find();
      goMatch(event.shiftKey ? -1 : 1);
    });
    plain.addEventListener("toggle", () => {
      if (plain.open && plain.childNodes.length === 1) {
        const text = view.lines().map((line) => (line.sign === " " ? line.text : `${line.sign} ${line.text}`)).join("\n");
        const area = make("textarea", { readonly: "", "aria-label": "IR as plain text" });
        area.value = text;
        plain.append(area);
      }
    });
    list.addEventListener("change", chooseStage);
    part.addEventListener("change", () => {
      followed = stages[list.value].parts[part.value][0];
      choosePart();
    });
    differs.addEventListener("change", choosePart);
    short.addEventListener("change", choosePart);
    const button = (text, act) => make("button", { type: "button", onclick: act }, text);
    const partName = () => (stages[list.value].parts[part.value] || [""])[0].replace(/^@/, "");
    const toIts = toKernel(partName);
    toIts.hidden = !(data.kernels || []).length;
    const check = () => { toIts.disabled = kernelOf(partName()) < 0; };
    list.addEventListener("change", check);
    part.addEventListener("change", check);
    open.passes = (stage, name) => {
      followed = name;
      list.value = String(stage);
      chooseStage();
      check();
      goTo("passes");
    };
    host.append(make("div", { class: "passes" },
      make("div", {}, make("label", { for: "stage" }, "IR after the pass"), list),
      make("div", {},
        summary,
        make("div", { class: "controls" }, labelled("Part", part), labelled(differs, " changes"), labelled(short, " only changes"), counts, toIts,
          button("Previous change", () => goChange(-1)), button("Next change", () => goChange(1))),
        make("div", { class: "controls" }, labelled("Search", search), button("Previous", () => goMatch(-1)), button("Next", () => goMatch(1)), found),
        view.element, plain)));
    list.value = String(Math.max(changed.findIndex((count, at) => at && count), 0));
    chooseStage();
    check();
  }

  for (const [id, render] of [["graph-view", graphView], ["kernel-view", kernelView], ["schedule-view", scheduleView], ["pass-view", passView]]) {
    const host = document.getElementById(id);
    if (host) render(host);
  }
  if (open.drawKernel) open.drawKernel();
  document.documentElement.dataset.ready = "yes";
})();
