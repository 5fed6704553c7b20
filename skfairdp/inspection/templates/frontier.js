// Plain JavaScript over one SVG: no library, so the file stays small enough to mail and works without a network.
(function () {
  "use strict";
  var DATA = JSON.parse(document.getElementById("data").textContent);
  var SVG = "http://www.w3.org/2000/svg";
  var FIELDS = {
    gap: { name: "Fairness gap", better: -1, text: decimal },
    epsilon: { name: "Privacy cost ε", better: -1, text: number },
    accuracy: { name: "Accuracy", better: 1, text: percent },
    coverage: { name: "Coverage", better: 1, text: percent }
  };
  // Predicted amounts are judged by R², which is no share.
  if (DATA.amounts) FIELDS.accuracy = { name: "R²", better: 1, text: decimal };
  function isShare(field) { return FIELDS[field].text === percent; }

  // How γ is held: by the student alone, by the student and by refusing to answer, or by refusing alone.
  var KINDS = { no: "answers everyone", top: "IDP3 on top of a fair student", alone: "IDP3 alone: refuses more" };

  // Corners of the shapes of a second, third and fourth estimator, around a circle of radius 1; the first is a circle.
  var CORNERS = [null, [[0, -1], [0.9, 0.75], [-0.9, 0.75]], [[0, 1], [0.9, -0.75], [-0.9, -0.75]],
    [[0.5, -0.85], [1, 0], [0.5, 0.85], [-0.5, 0.85], [-1, 0], [-0.5, -0.85]]];

  function percent(v) { return v === null ? "–" : (100 * v).toFixed(1) + " %"; }
  function decimal(v) { return v === null ? "–" : v.toFixed(3); }
  // Rounded up: an upper bound rounded down would no longer be one.
  function number(v) {
    if (v === null) return "∞";
    if (v <= 0) return "0";
    var unit = Math.pow(10, Math.floor(Math.log10(v)) - 2);
    var near = Number(v.toPrecision(3));
    return String(Number((near < v ? near + unit : near).toPrecision(6)));
  }
  function gammaText(p) { return p.gamma === null ? "none" : String(p.gamma); }

  function el(tag, attributes, children) {
    var node = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (key) {
      if (key === "text") node.textContent = attributes[key];
      else if (key.slice(0, 2) === "on") node.addEventListener(key.slice(2), attributes[key]);
      else if (attributes[key] !== null) node.setAttribute(key, attributes[key]);
    });
    (children || []).forEach(function (child) { node.append(child); });
    return node;
  }
  function shape(tag, attributes, text) {
    var node = document.createElementNS(SVG, tag);
    Object.keys(attributes).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    if (text !== undefined) node.textContent = text;
    return node;
  }
  function dot(panel, p) {
    var node = el("span", { class: "dot " + (p.idp3 ? p.kind : "maker" + panel.maker(p) % CORNERS.length), "aria-hidden": "true" });
    node.style.background = panel.color(p);
    return node;
  }

  // ---------------------------------------------------------------- colours: a ramp over the ε of this panel
  function dark() { return document.documentElement.dataset.theme === "dark"; }

  // ---------------------------------------------------------------- axes
  function ticks(low, high, wanted) {
    var span = high - low || 1, raw = span / wanted, power = Math.pow(10, Math.floor(Math.log10(raw)));
    var step = [1, 2, 2.5, 5, 10].map(function (m) { return m * power; }).find(function (s) { return s >= raw; });
    var out = [];
    for (var i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(i * step);
    return { values: out, step: step };
  }
  function tickText(field, value, step) {
    var share = isShare(field);
    var digits = decimals(step * (share ? 100 : 1));
    return share ? (100 * value).toFixed(digits) + " %" : value.toFixed(digits);
  }
  // As many as the step has: 0.025 needs three, or 0.075 would be written as 0.08.
  function decimals(step) {
    var digits = 0;
    while (digits < 8 && Math.abs(step * Math.pow(10, digits) - Math.round(step * Math.pow(10, digits))) > 1e-6) digits++;
    return digits;
  }
  function range(values, field) {
    if (!values.length) return [0, 1];
    var low = Math.min.apply(null, values), high = Math.max.apply(null, values);
    var pad = (high - low) * 0.08 || Math.abs(high) * 0.05 || 0.05;
    var top = high + pad, bottom = low - pad;
    if (field === "gap" || field === "epsilon") bottom = Math.max(0, Math.min(bottom, low < 0.35 * high ? 0 : bottom));
    if (isShare(field)) top = Math.min(top, 1.005);
    return [bottom, top];
  }

  // ---------------------------------------------------------------- one panel: one kind of guarantee
  function Panel(data, index) {
    this.data = data;
    this.id = "panel" + index;
    this.points = data.points;
    this.x = "gap";
    this.y = "accuracy";
    this.limits = { epsilon: Infinity, gap: Infinity, coverage: -Infinity };
    this.show = { plain: true, idp3: true, dominated: true };
    this.sort = { key: "epsilon", sign: 1 };
    this.chosen = null;
    this.build();
    this.choose(this.suggest(), false);
    this.refresh();
  }

  // Which of the panel's estimators made it; 0 where there is one only.
  Panel.prototype.maker = function (p) { return Math.max(0, this.data.makers.indexOf(p.estimator)); };

  Panel.prototype.color = function (p) {
    return this.data.colors[dark() ? "dark" : "light"][p.level];
  };

  Panel.prototype.visible = function () {
    var self = this, limits = this.limits;
    return this.points.filter(function (p) {
      return (p.epsilon === null ? limits.epsilon === Infinity : p.epsilon <= limits.epsilon + 1e-9) &&
        (p.gap === null ? limits.gap === Infinity : p.gap <= limits.gap + 1e-9) &&
        p.coverage >= limits.coverage - 1e-9 &&
        (p.idp3 ? self.show.idp3 : self.show.plain) && (p.best || self.show.dominated);
    });
  };

  // Where to start reading: the most accurate efficient model that answers everyone and has at most half the largest gap.
  Panel.prototype.suggest = function () {
    var good = this.points.filter(function (p) { return p.best && p.gap !== null; });
    if (!good.length) return this.points[0] || null;
    var half = Math.max.apply(null, good.map(function (p) { return p.gap; })) / 2;
    var fair = good.filter(function (p) { return p.gap <= half && p.coverage > 0.999; });
    return (fair.length ? fair : good).slice().sort(function (a, b) { return b.accuracy - a.accuracy; })[0];
  };

  Panel.prototype.build = function () {
    var self = this, d = this.data;
    var label = d.heading ? el("h2", { class: "eyebrow", text: d.heading }) : "";
    var total = el("section", { class: "guarantee card", "aria-label": "What publishing the whole table costs" }, [
      el("div", { class: "figure" }, ["ε = " + number(d.total), el("small", { text: "the whole table, at δ = " + d.delta })]),
      el("div", {}, [
        el("p", { text: d.sentence }),
        d.meaning ? el("p", { class: "meaning" }, [el("b", { text: d.question + " " }), d.meaning]) : "",
        el("p", { text: d.detail }), self.notes()
      ])
    ]);
    this.svg = shape("svg", { role: "group", "aria-label": "Models by fairness gap and accuracy. Use the arrow keys to move between models, Enter to choose one." });
    this.tip = el("div", { class: "tip", role: "status", hidden: "" });
    this.legend = el("div", { class: "legend" });
    this.apart = el("p", { class: "hint apart", role: "status" });
    var axes = ["x", "y"].map(function (axis) {
      var select = el("select", { "aria-label": "Quantity on the " + (axis === "x" ? "horizontal" : "vertical") + " axis", onchange: function () { self[axis] = select.value; self.refresh(); } },
        Object.keys(FIELDS).map(function (f) { return el("option", { value: f, text: FIELDS[f].name }); }));
      select.value = self[axis];
      return el("label", {}, [axis === "x" ? "across" : "up", select]);
    });
    var plot = el("section", { class: "plot card", "aria-label": "Plot" }, [
      el("div", { class: "plotbar" }, [el("h2", { text: d.subject }), el("span", { class: "axes" }, [axes[1], axes[0]])]),
      el("div", { class: "stage" }, [this.svg, this.tip]), this.apart, this.legend
    ]);

    this.count = el("span", { class: "hint", role: "status" });
    var refused = d.points.some(function (p) { return p.idp3; }), varied = d.points.some(function (p) { return p.coverage < 1; });
    var filters = el("section", { class: "filters card", "aria-label": "Filters" }, [
      el("h2", { text: "What is acceptable?" }),
      this.slider("epsilon", "Privacy cost ε at most", true),
      this.slider("gap", "Fairness gap at most", true),
      varied ? this.slider("coverage", "Coverage at least", false) : "",
      refused ? this.check("plain", "answers everyone") : "",
      refused ? this.check("idp3", "may refuse to answer (IDP3)") : "",
      this.check("dominated", "also models that another one beats"),
      el("div", { class: "foot" }, [this.count, el("button", { type: "button", text: "Reset", onclick: function () { self.reset(); } })])
    ]);
    this.detail = el("section", { class: "chosen card", "aria-label": "Chosen model", "aria-live": "polite" });
    this.body = el("tbody");
    this.headers = {};
    var columns = [["epsilon", "ε"], ["gamma", "γ"], ["idp3", "IDP3"], ["gap", "Gap"], ["accuracy", FIELDS.accuracy.name], ["coverage", "Coverage"], ["best", "Not beaten"], ["params", "Parameters"]]
      .filter(function (column) { return column[0] === "idp3" ? refused : column[0] === "coverage" ? varied : true; });
    this.columns = columns.map(function (column) { return column[0]; });
    var head = el("tr", {}, columns.map(function (column) {
      var key = column[0];
      self.headers[key] = el("th", { scope: "col", class: key === "params" ? "left" : null }, [
        el("button", { type: "button", text: column[1], onclick: function () {
          self.sort = { key: key, sign: self.sort.key === key ? -self.sort.sign : 1 };
          self.refresh();
        } })
      ]);
      return self.headers[key];
    }));
    var table = el("section", { class: "table card", "aria-label": "Table" }, [
      el("div", { class: "bar" }, [el("h2", { text: "Models" }), el("span", { class: "hint", text: d.protection })]),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Models that satisfy the filters" }, [
        el("table", {}, [el("caption", { class: "sr", text: "Models that satisfy the filters. " + d.protection }), el("thead", {}, [head]), this.body])
      ])
    ]);
    this.root = el("section", { class: "panel", id: this.id }, [label, total,
      el("div", { class: "board" }, [plot, el("aside", {}, [filters, this.detail])]), table]);
    document.getElementById("content").append(this.root);
    this.svg.addEventListener("keydown", function (event) { self.key(event); });
    if (window.ResizeObserver) new ResizeObserver(function () { self.draw(); }).observe(plot);
  };

  // What the fits warned of.
  Panel.prototype.notes = function () {
    var notes = this.data.notes;
    if (!notes.length) return "";
    return el("details", {}, [
      el("summary", { text: notes.length === 1 ? "A warning about these models" : notes.length + " warnings about these models" }),
      el("ul", {}, notes.map(function (note) { return el("li", { text: note }); }))
    ]);
  };

  // A slider that stops at the values that occur, so that every position means something.
  Panel.prototype.slider = function (field, text, upper) {
    var self = this, id = this.id + "-" + field;
    var values = field === "epsilon" ? this.data.levels : this.points.map(function (p) { return p[field]; });
    var stops = Array.from(new Set(values.filter(function (v) { return v !== null; }))).sort(function (a, b) { return a - b; });
    var output = el("output", { for: id });
    var input = el("input", { type: "range", id: id, min: 0, max: Math.max(stops.length - 1, 0), step: 1 });
    function apply() {
      var at = Number(input.value), end = upper ? stops.length - 1 : 0;
      self.limits[field] = at === end || !stops.length ? (upper ? Infinity : -Infinity) : stops[at];
      var shown = stops.length ? FIELDS[field].text(stops[at]) : "–";
      output.textContent = shown;
      input.setAttribute("aria-valuetext", shown);
    }
    input.addEventListener("input", function () { apply(); self.refresh(); });
    (this.resets = this.resets || []).push(function () { input.value = upper ? stops.length - 1 : 0; apply(); });
    input.value = upper ? stops.length - 1 : 0;
    apply();
    return el("div", { class: "row" }, [el("label", { for: id }, [el("span", { text: text }), output]), input]);
  };

  Panel.prototype.check = function (key, text) {
    var self = this;
    var input = el("input", { type: "checkbox", onchange: function () { self.show[key] = input.checked; self.refresh(); } });
    input.checked = true;
    this.resets.push(function () { input.checked = true; self.show[key] = true; });
    return el("label", { class: "check" }, [input, text]);
  };

  Panel.prototype.reset = function () {
    this.resets.forEach(function (f) { f(); });
    this.refresh();
  };

  Panel.prototype.refresh = function () {
    this.draw();
    this.tabulate();
  };

  // ---------------------------------------------------------------- drawing
  Panel.prototype.placed = function (p) { return p[this.x] !== null && p[this.y] !== null; };

  // The values along an axis of all that is drawn whatever the sliders say: a model without a place stretches no axis.
  Panel.prototype.shown = function (axis) {
    var self = this, field = this[axis], compared = this.x !== "coverage" && this.y !== "coverage";
    return this.points.filter(function (p) { return self.placed(p); })
      .concat(compared ? this.data.references.filter(function (one) { return one[self.y] !== null; }) : [])
      .map(function (p) { return p[field]; }).filter(function (v) { return v !== null; });
  };

  // A circle; with several estimators a shape for each; a square or a diamond for who refuses.
  Panel.prototype.mark = function (p, r, cx, cy) {
    if (p.idp3) return shape("rect", { x: cx - r * 0.86, y: cy - r * 0.86, width: r * 1.72, height: r * 1.72, rx: 1.5,
      transform: "rotate(" + (p.kind === "top" ? 45 : 0) + " " + cx + " " + cy + ")" });
    var corners = CORNERS[this.maker(p) % CORNERS.length];
    if (!corners) return shape("circle", { cx: cx, cy: cy, r: r });
    return shape("polygon", { points: corners.map(function (c) { return (cx + 1.25 * r * c[0]) + "," + (cy + 1.25 * r * c[1]); }).join(" ") });
  };

  Panel.prototype.draw = function () {
    var self = this, svg = this.svg;
    var width = Math.max(320, svg.parentNode.clientWidth || 780), height = Math.round(Math.min(660, Math.max(340, width * 0.8)));
    var m = { left: 62, right: 16, top: 22, bottom: 48 };
    var held = document.activeElement && svg.contains(document.activeElement) ? document.activeElement.dataset.point : null;
    svg.replaceChildren();
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    var fx = FIELDS[this.x], fy = FIELDS[this.y];
    var rx = range(this.shown("x"), this.x), ry = range(this.shown("y"), this.y);
    function px(v) { return m.left + (v - rx[0]) / (rx[1] - rx[0]) * (width - m.left - m.right); }
    function py(v) { return height - m.bottom - (v - ry[0]) / (ry[1] - ry[0]) * (height - m.top - m.bottom); }

    // What the sliders rule out.
    [["x", this.x], ["y", this.y]].forEach(function (pair) {
      var limit = self.limits[pair[1]];
      if (limit === undefined || !isFinite(limit)) return;
      var along = pair[0] === "x", at = along ? px(limit) : py(limit);
      var right = width - m.right, bottom = height - m.bottom, upper = FIELDS[pair[1]].better < 0;
      var box = along
        ? (upper ? [at, m.top, right - at, bottom - m.top] : [m.left, m.top, at - m.left, bottom - m.top])
        : (upper ? [m.left, m.top, right - m.left, at - m.top] : [m.left, at, right - m.left, bottom - at]);
      svg.append(shape("rect", { class: "out", x: box[0], y: box[1], width: Math.max(0, box[2]), height: Math.max(0, box[3]) }));
      svg.append(shape("line", along
        ? { class: "limit", x1: at, x2: at, y1: m.top, y2: bottom }
        : { class: "limit", x1: m.left, x2: right, y1: at, y2: at }));
    });

    var tx = ticks(rx[0], rx[1], width < 520 ? 4 : 7), ty = ticks(ry[0], ry[1], 6);
    tx.values.forEach(function (v) {
      svg.append(shape("line", { class: "grid", x1: px(v), x2: px(v), y1: m.top, y2: height - m.bottom }));
      svg.append(shape("text", { x: px(v), y: height - m.bottom + 18, "text-anchor": "middle" }, tickText(self.x, v, tx.step)));
    });
    ty.values.forEach(function (v) {
      svg.append(shape("line", { class: "grid", x1: m.left, x2: width - m.right, y1: py(v), y2: py(v) }));
      svg.append(shape("text", { x: m.left - 9, y: py(v) + 4, "text-anchor": "end" }, tickText(self.y, v, ty.step)));
    });
    svg.append(shape("text", { class: "title", x: width - m.right, y: height - 8, "text-anchor": "end" },
      fx.name + (fx.better < 0 ? "  ← less is better" : "  more is better →")));
    svg.append(shape("text", { class: "title", x: 2, y: 12 }, fy.name + (fy.better < 0 ? "  ↓ less is better" : "  ↑ more is better")));

    this.data.references.forEach(function (one) { self.reference(one, px, py, width, m); });
    var kept = this.visible(), visible = kept.filter(function (p) { return self.placed(p); });
    this.apart.textContent = visible.length === kept.length ? "" : this.without(kept);
    this.steps(visible, px, py);
    this.whiskers(visible, px, py, width - m.right, m.top);
    var order = visible.slice().sort(function (a, b) { return a.best - b.best || a.coverage - b.coverage; });
    this.marks = [];
    order.forEach(function (p) {
      var r = 4 + 4 * p.coverage * p.coverage, cx = px(p[self.x]), cy = py(p[self.y]);
      var node = self.mark(p, r, cx, cy);
      node.setAttribute("class", "mark" + (p.best ? "" : " faded") + (p === self.chosen ? " on" : ""));
      node.setAttribute("fill", self.color(p));
      node.setAttribute("role", "button");
      node.setAttribute("tabindex", "-1");
      node.setAttribute("aria-label", self.describe(p));
      node.setAttribute("aria-pressed", String(p === self.chosen));
      node.dataset.point = p.id;
      node.addEventListener("mouseenter", function () { self.hover(p, cx, cy, width); });
      node.addEventListener("focus", function () { self.hover(p, cx, cy, width); });
      node.addEventListener("mouseleave", function () { self.tip.hidden = true; });
      node.addEventListener("blur", function () { self.tip.hidden = true; });
      node.addEventListener("click", function () { self.choose(p, false); self.refresh(); });
      svg.append(node);
      self.marks.push({ node: node, p: p, cx: cx, cy: cy });
    });
    this.marks.sort(function (a, b) { return a.cx - b.cx || b.cy - a.cy; });
    // One stop in the tab order; the arrow keys move inside the plot.
    var entry = this.marks.find(function (k) { return k.p === self.chosen; }) || this.marks[0];
    if (entry) entry.node.setAttribute("tabindex", "0");
    if (held !== null) {
      var again = this.marks.find(function (k) { return String(k.p.id) === held; });
      if (again) this.focus(again);
    }
    if (!visible.length) svg.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No model satisfies the filters."));
    this.key_();
  };

  // Who has no place in the plot, and why.
  Panel.prototype.without = function (kept) {
    var self = this, fields = [this.x, this.y].filter(function (f) { return kept.some(function (p) { return p[f] === null; }); });
    var n = kept.filter(function (p) { return !self.placed(p); }).length;
    return n + " of " + kept.length + " models " + (n === 1 ? "is" : "are") + " in the table only: no " +
      fields.map(function (f) { return FIELDS[f].name.toLowerCase().replace("ε", "").trim(); }).join(" or ") + " is known. " +
      (fields.indexOf("gap") < 0 ? "" : this.data.unknown);
  };

  // What to compare with: a cross where both quantities are known, else a line across.
  Panel.prototype.reference = function (one, px, py, width, m) {
    var x = one[this.x], y = one[this.y];
    if (y === null || this.y === "coverage" || this.x === "coverage") return;
    var text = one.name + ": " + FIELDS[this.y].text(y) + (x === null ? "" : ", " + FIELDS[this.x].name.toLowerCase() + " " + FIELDS[this.x].text(x));
    var group = shape("g", { class: "ref" + (one.private ? "" : " bare"), role: "img", "aria-label": text });
    group.append(shape("title", {}, text));
    if (x === null) group.append(shape("line", { x1: m.left, x2: width - m.right, y1: py(y), y2: py(y) }));
    else group.append(shape("path", { d: "M" + (px(x) - 6) + " " + (py(y) - 6) + "l12 12m0 -12l-12 12" }));
    var left = x === null ? m.left + 4 : px(x) + 10, turned = left > width * 0.6;
    // To the left of a mark lie other marks: there the name stands above it.
    group.append(shape("text", { x: turned ? px(x) + 7 : left, y: py(y) + (x === null ? -5 : turned ? -11 : 4), "text-anchor": turned ? "end" : "start" }, one.name));
    this.svg.append(group);
  };

  // The best that each ε reaches in the two quantities shown: a staircase, because nothing between two models was made.
  Panel.prototype.steps = function (visible, px, py) {
    var self = this, sx = FIELDS[this.x].better, sy = FIELDS[this.y].better;
    if (this.x === this.y || this.x === "epsilon" || this.y === "epsilon") return;
    this.data.levels.forEach(function (epsilon, level) {
      self.data.makers.forEach(function (name, maker) {
        var mine = visible.filter(function (p) { return p.level === level && p.kind === "no" && self.maker(p) === maker; })
          .sort(function (a, b) { return sx * (b[self.x] - a[self.x]) || sy * (b[self.y] - a[self.y]); });
        var path = "", best = -Infinity;
        mine.forEach(function (p) {
          var x = px(p[self.x]), y = py(p[self.y]);
          if (sy * p[self.y] > best) path += path ? "H" + x + "V" + y : "M" + x + " " + y;
          best = Math.max(best, sy * p[self.y]);
        });
        if (!/H/.test(path)) return;
        self.svg.append(shape("path", {
          class: "steps", d: path, stroke: self.data.colors[dark() ? "dark" : "light"][level]
        }));
      });
    });
  };

  // From a gap to what it is at most in the population, with 95 % confidence; cut off at the edge of the plot.
  Panel.prototype.whiskers = function (visible, px, py, right, top) {
    var self = this, along = this.x === "gap";
    if (!along && this.y !== "gap") return;
    visible.forEach(function (p) {
      if (p.bound === null || p.bound <= p.gap) return;
      var x = px(p[self.x]), y = py(p[self.y]);
      self.svg.append(shape("line", {
        class: "whisker", x1: x, y1: y, stroke: self.color(p),
        x2: along ? Math.min(px(p.bound), right) : x, y2: along ? y : Math.max(py(p.bound), top)
      }));
    });
  };

  Panel.prototype.key_ = function () {
    var self = this, colors = this.data.colors[dark() ? "dark" : "light"];
    this.legend.replaceChildren(el("b", { text: "ε protecting one " + this.data.protects }));
    this.data.levels.forEach(function (epsilon, level) {
      var mark = el("i", { class: "dot" });
      mark.style.background = colors[level];
      self.legend.append(el("span", {}, [mark, number(epsilon)]));
    });
    var kinds = Object.keys(KINDS).filter(function (kind) {
      return self.points.some(function (p) { return p.kind === kind; });
    }).map(function (kind) { return [" " + kind, KINDS[kind]]; });
    if (kinds.length === 1 && kinds[0][0] === " no") kinds = [];  // nobody refuses: nothing to tell apart
    if (this.data.makers.length > 1) kinds = this.data.makers.map(function (name, j) { return [" maker" + j % CORNERS.length, name]; })
      .concat(kinds.filter(function (kind) { return kind[0] !== " no"; }));
    if (!this.points.every(function (p) { return p.best; })) kinds.push([" pale", "beaten by another model"]);
    if (this.points.some(function (p) { return p.bound !== null; })) kinds.push([" whisker", "line: the gap is at most, 95 % confidence"]);
    if (this.x !== "epsilon" && this.y !== "epsilon") kinds.push([" step", "steps: best at one ε, answering every row"]);
    if (this.data.references.length) kinds.push([" cross", "to compare with: no model of this page"]);
    kinds.forEach(function (kind) {
      var mark = el("i", { class: "dot" + kind[0] });
      mark.style.background = "var(--soft)";
      self.legend.append(el("span", {}, [mark, kind[1]]));
    });
  };

  Panel.prototype.describe = function (p) {
    return "ε " + number(p.epsilon) + " protecting one " + this.data.protects + ", γ " + gammaText(p) + (p.kind === "no" ? "" : p.kind === "top" ? ", IDP3 on top" : ", IDP3 alone") + ", gap " + decimal(p.gap) +
      ", " + FIELDS.accuracy.name.toLowerCase() + " " + FIELDS.accuracy.text(p.accuracy) + ", coverage " + percent(p.coverage) + (p.best ? ", not beaten by another model" : "");
  };

  Panel.prototype.facts = function (p) {
    return el("dl", {}, [["Fairness gap", decimal(p.gap)]].concat(p.bound === null ? [] : [["at most (95 % confidence)", decimal(p.bound)]], [[FIELDS.accuracy.name, FIELDS.accuracy.text(p.accuracy)], ["Coverage", percent(p.coverage)],
      ["γ (gap let through)", gammaText(p)], ["Answers", p.kind === "no" ? "everyone" : p.kind === "top" ? "IDP3 on top" : "IDP3 alone"],
      ["Not beaten by another", p.best ? "yes" : "no"]]).reduce(function (all, pair) {
      return all.concat([el("dt", { text: pair[0] }), el("dd", { text: pair[1] })]);
    }, []));
  };
  Panel.prototype.head = function (p) {
    return el("div", { class: "head" }, [dot(this, p), el("span", { text: p.estimator }), el("span", { class: "eps", text: "ε\u00a0=\u00a0" + number(p.epsilon) })]);
  };

  Panel.prototype.hover = function (p, cx, cy, width) {
    var tip = this.tip, scale = this.svg.clientWidth / width || 1;
    tip.replaceChildren(this.head(p), el("div", { class: "what", text: this.data.protection }), this.facts(p), el("code", { text: p.params }));
    tip.hidden = false;
    var x = cx * scale + 16, y = cy * scale - tip.offsetHeight / 2;
    if (x + tip.offsetWidth > this.svg.clientWidth) x = cx * scale - tip.offsetWidth - 16;
    tip.style.left = Math.max(0, x) + "px";
    tip.style.top = Math.max(-8, Math.min(y, this.svg.clientHeight - tip.offsetHeight)) + "px";
  };

  Panel.prototype.focus = function (mark) {
    this.marks.forEach(function (k) { k.node.setAttribute("tabindex", k === mark ? "0" : "-1"); });
    mark.node.focus();
  };
  Panel.prototype.key = function (event) {
    var at = this.marks.findIndex(function (k) { return k.node === event.target; });
    if (at < 0) return;
    var here = this.marks[at], next = null;
    if (event.key === "ArrowRight") next = this.marks[at + 1];
    else if (event.key === "ArrowLeft") next = this.marks[at - 1];
    else if (event.key === "Home") next = this.marks[0];
    else if (event.key === "End") next = this.marks[this.marks.length - 1];
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      var sign = event.key === "ArrowUp" ? -1 : 1;
      var beyond = this.marks.filter(function (k) { return sign * (k.cy - here.cy) > 0.5; });
      next = beyond.sort(function (a, b) {
        function far(k) { return Math.abs(k.cy - here.cy) + 0.6 * Math.abs(k.cx - here.cx); }
        return far(a) - far(b);
      })[0];
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(here.p, false);
      this.refresh();
      return;
    } else if (event.key === "Escape") { this.tip.hidden = true; return; }
    else return;
    event.preventDefault();
    if (next) this.focus(next);
  };

  // ---------------------------------------------------------------- the chosen model and the table
  Panel.prototype.choose = function (p, scroll) {
    this.chosen = p;
    if (!p) return;
    var code = el("pre", { tabindex: "0", "aria-label": "Python code" }, [el("code", { text: p.code })]);
    var button = el("button", { type: "button", class: "copy", text: "Copy code" });
    button.addEventListener("click", function () { copy(p.code, button, code); });
    this.detail.replaceChildren(el("h2", { text: "Chosen model" }), this.head(p),
      el("div", { class: "hint", text: this.data.protection }), this.facts(p), code, button);
    if (scroll) this.detail.scrollIntoView({ block: "nearest" });
  };

  function copy(text, button, block) {
    function done(ok) {
      button.textContent = ok ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(function () { button.textContent = "Copy code"; }, 1800);
    }
    function fallback() {  // file:// pages have no clipboard in some browsers
      var chosen = window.getSelection(), area = document.createRange();
      area.selectNodeContents(block);
      chosen.removeAllRanges();
      chosen.addRange(area);
      var ok = false;
      try { ok = document.execCommand("copy"); } catch (error) { ok = false; }
      done(ok);
    }
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(function () { done(true); }, fallback);
    else fallback();
  }

  Panel.prototype.cell = function (column, p) {
    if (column === "epsilon") return el("td", {}, [dot(this, p), number(p.epsilon)]);
    if (column === "params") return el("td", { class: "left", text: p.params });
    return el("td", { text: {
      gamma: gammaText, gap: function () { return decimal(p.gap); }, accuracy: function () { return FIELDS.accuracy.text(p.accuracy); },
      idp3: function () { return p.kind === "no" ? "" : p.kind === "top" ? "on top" : "alone"; },
      coverage: function () { return percent(p.coverage); }, best: function () { return p.best ? "✓" : ""; }
    }[column](p) });
  };

  Panel.prototype.tabulate = function () {
    var self = this, key = this.sort.key, sign = this.sort.sign;
    var rows = this.visible().sort(function (a, b) {
      var u = a[key], v = b[key];
      if (u === v) return a.id - b.id;
      if (u === null) return sign;
      if (v === null) return -sign;
      return (u < v ? -1 : 1) * sign;
    });
    Object.keys(this.headers).forEach(function (name) {
      self.headers[name].setAttribute("aria-sort", name === key ? (sign > 0 ? "ascending" : "descending") : "none");
    });
    this.count.textContent = rows.length + " of " + this.points.length + " models";
    this.body.replaceChildren.apply(this.body, rows.map(function (p) {
      function pick() { self.choose(p, false); self.refresh(); }
      return el("tr", {
        class: (p === self.chosen ? "on" : "") + (p.best ? "" : " faded"), "aria-selected": String(p === self.chosen), onclick: pick,
        tabindex: "0", "data-row": p.id, onkeydown: function (event) {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            pick();
            var again = self.body.querySelector('[data-row="' + p.id + '"]');
            if (again) again.focus();
          } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            var other = event.key === "ArrowDown" ? event.currentTarget.nextSibling : event.currentTarget.previousSibling;
            if (other) { event.preventDefault(); other.focus(); }
          }
        }
      }, self.columns.map(function (column) { return self.cell(column, p); }));
    }));
    if (!rows.length) this.body.replaceChildren(el("tr", {}, [el("td", { colspan: this.columns.length, class: "empty", text: "No model satisfies the filters." })]));
  };

  // ---------------------------------------------------------------- start
  var root = document.documentElement, prefers = window.matchMedia("(prefers-color-scheme: dark)");
  var panels = [];
  function paint(theme) {
    root.dataset.theme = theme;
    panels.forEach(function (panel) { panel.refresh(); panel.choose(panel.chosen, false); });
  }
  paint(prefers.matches ? "dark" : "light");
  prefers.addEventListener("change", function (event) { paint(event.matches ? "dark" : "light"); });
  var shown = "light";  // on a screen: paper is white
  window.matchMedia("print").addEventListener("change", function (event) {
    if (event.matches) shown = root.dataset.theme;
    paint(event.matches ? "light" : shown);
  });
  document.getElementById("theme").addEventListener("click", function () { paint(dark() ? "light" : "dark"); });
  panels = DATA.panels.map(function (data, index) { return new Panel(data, index); });
  root.dataset.ready = "yes";
})();
