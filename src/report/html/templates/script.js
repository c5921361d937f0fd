"use strict";
// Saves figures, and opens parts that links point to. The page is complete without this script.
(() => {
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // Returns a drawing as an SVG document with its title and a background, in the colours of the light theme.
  const svg = (figure) => {
    const copy = figure.querySelector("svg").cloneNode(true);
    const [, , width, height] = copy.getAttribute("viewBox").split(" ");
    copy.setAttribute("width", width / 2);
    copy.setAttribute("height", height / 2);
    ["class", "aria-labelledby", "aria-describedby"].forEach((name) => copy.removeAttribute(name));
    const ground = document.createElementNS(copy.namespaceURI, "rect");
    Object.entries({ width, height, fill: "#FFFFFF" }).forEach(([name, value]) => ground.setAttribute(name, value));
    const title = document.createElementNS(copy.namespaceURI, "title");
    title.textContent = figure.querySelector("h3, h4").textContent;
    copy.prepend(title, ground);
    if (figure.classList.contains("strip")) {
      // The page's style for strips, in light colours.
      const style = document.createElementNS(copy.namespaceURI, "style");
      style.textContent = "text{font:14px sans-serif;fill:#1B1F24}path{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}" +
        ".w{fill:#D8DEE4;fill-opacity:.4}.p{fill:#D8DEE4}.q{fill:#6E7781;fill-opacity:.6}.m{fill:#0072B2}.z{stroke:#6E7781;stroke-width:1}" +
        ".a{stroke:#0072B2}.b{stroke:#C85500}.f{stroke:#B42318;stroke-width:3;stroke-linecap:butt}.t{fill-opacity:0}";
      copy.prepend(style);
    }
    return new XMLSerializer().serializeToString(copy);
  };
  // Returns a table cell as a CSV field. Numbers are exact, and empty if unknown; a text that a spreadsheet would execute gets a leading apostrophe.
  const field = (cell) => {
    const data = cell.querySelector("data");
    const text = data ? data.value : cell.textContent.trim().replace(/^n\/a\b.*/, "");
    const inert = !data && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(inert) ? '"' + inert.replaceAll('"', '""') + '"' : inert;
  };
  // On a page with many runs, the numbers of a run over time are lines of text: converts them to the table and the hover texts on demand.
  const unfold = (figure) => {
    const pre = figure.querySelector("details.numbers pre");
    if (!pre) return;
    const [heads, ...rows] = pre.textContent.split("\n").map((line) => line.split(","));
    const add = (parent, name, text) => {
      const child = parent.appendChild(document.createElementNS(parent.namespaceURI, name));
      child.textContent = text || "";
      return child;
    };
    const region = document.createElement("div");
    region.className = "table";
    Object.entries({ role: "region", tabindex: "0", "aria-label": pre.getAttribute("aria-label") }).forEach(([name, value]) => region.setAttribute(name, value));
    const table = add(region, "table");
    add(table, "caption", pre.getAttribute("aria-label"));
    const head = add(add(table, "thead"), "tr");
    heads.forEach((text) => Object.assign(add(head, "th", text), { scope: "col", className: "n" }));
    const body = add(table, "tbody");
    const strips = figure.querySelector("svg");
    const [, , width, height] = strips.getAttribute("viewBox").split(" ").map(Number);
    rows.forEach((row, at) => {
      const line = add(body, "tr");
      row.forEach((text) => (add(line, "td", text || "n/a").className = "n"));
      const mark = add(strips, "rect");
      Object.entries({ class: "t", x: (at * width) / rows.length, y: 0, width: width / rows.length, height }).forEach(([name, value]) => mark.setAttribute(name, value));
      add(mark, "title", heads.map((name, column) => name + " " + (row[column] || "n/a")).join("; "));
    });
    pre.replaceWith(region);
  };
  const unfoldUnder = (part) => part.querySelectorAll("figure.strip").forEach(unfold);
  document.addEventListener("toggle", (event) => event.target.matches?.("details.run[open]") && unfoldUnder(event.target), true);
  const csv = (figure) => {
    unfold(figure);
    const rows = [...figure.querySelectorAll("details tr")];
    return rows.map((row) => [...row.children].map(field).join(",")).join("\r\n") + "\r\n";
  };
  const bind = () => document.querySelectorAll("p.save").forEach((bar) => {
    bar.hidden = false;
    bar.addEventListener("click", (event) => {
      const kind = event.target.dataset.save;
      const figure = bar.closest("figure");
      const name = figure.id || figure.dataset.name;
      if (kind === "svg") save(name + ".svg", "image/svg+xml", svg(figure));
      if (kind === "csv") save(name + ".csv", "text/csv", csv(figure));
    });
  });
  bind();
  // Sent when a watched page has loaded a new report.
  document.addEventListener("sweepline-report", bind);
  // Collapsed parts cannot be opened on paper, so they are opened before printing.
  addEventListener("beforeprint", () => document.querySelectorAll("details:not(.run, .numbers)").forEach((one) => (one.open = true)));
  // Opens the collapsed part that the address points into, for browsers that do not do this themselves.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = target && target.closest("details.run");
    if (part && !part.open) {
      part.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
