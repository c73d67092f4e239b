(function () {
  "use strict";
  /* Steps through a drawn trace. The frames come packed, in data-trace or in the address: #trace=...&step=3. */
  var SVG = "http://www.w3.org/2000/svg";

  function unpack(text) {
    var bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json().then(function (told) {
      if (!told || told.v !== 1 || !Array.isArray(told.frames) || !told.frames.length) { throw new Error("no trace"); }
      return told;
    });
  }
  function make(tag, attributes, children) {
    var element = document.createElement(tag);
    return fill(element, attributes, children);
  }
  function draw(tag, attributes, children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }
  function fill(element, attributes, children) {
    Object.keys(attributes || {}).forEach(function (name) { element.setAttribute(name, attributes[name]); });
    (children || []).forEach(function (child) { element.append(child); });
    return element;
  }

  /* A cell is [text, kind, index, position, marks]. */
  function classes(cell, fresh) {
    return [cell[1] || "row", /d/.test(cell[4] || "") ? "off" : "", fresh ? "new" : ""].join(" ").trim();
  }
  function line(strip, known) {
    return make("ul", { "class": "line" }, strip.cells.map(function (cell) {
      var fresh = known && cell[0] && !cell[1] && known.indexOf(cell[0]) < 0;
      return make("li", { "class": classes(cell, fresh) }, [cell[1] === "gap" ? "… " + cell[0] + " …" : cell[0] || "\u00a0"]);
    }));
  }
  /* The ring as a circle: slot 0 at the top, then clockwise; outside the index, inside the position. */
  function circle(strip, known, label) {
    var n = strip.cells.length, r = 15, big = Math.max(52, n * 36 / (2 * Math.PI)), c = big + r + 18;
    var svg = draw("svg", { width: 2 * c, height: 2 * c, viewBox: [0, 0, 2 * c, 2 * c].join(" "), role: "img", "aria-label": label });
    svg.append(draw("circle", { "class": "track", cx: c, cy: c, r: big }));
    strip.cells.forEach(function (cell, i) {
      var turn = 2 * Math.PI * i / n, sin = Math.sin(turn), cos = Math.cos(turn);
      function at(radius) { return { x: (c + radius * sin).toFixed(1), y: (c - radius * cos).toFixed(1) }; }
      var fresh = known && !cell[1] && known.indexOf(cell[0]) < 0, place = at(big);
      var parts = [draw("circle", { "class": "slot", cx: place.x, cy: place.y, r: r }), draw("text", place, [cell[0] || ""])];
      if (cell[2] !== undefined && cell[2] !== null) { parts.push(draw("text", Object.assign({ "class": "small" }, at(big + r + 9)), [String(cell[2])])); }
      if (cell[3] !== undefined && cell[3] !== null) { parts.push(draw("text", Object.assign({ "class": "small" }, at(big - r - 9)), [String(cell[3])])); }
      svg.append(draw("g", { "class": classes(cell, fresh) }, parts));
      if (/s/.test(cell[4] || "")) {
        var seam = 2 * Math.PI * (i - 0.5) / n;
        svg.append(draw("line", {
          "class": "seam", x1: (c + (big - r) * Math.sin(seam)).toFixed(1), y1: (c - (big - r) * Math.cos(seam)).toFixed(1),
          x2: (c + (big + r) * Math.sin(seam)).toFixed(1), y2: (c - (big + r) * Math.cos(seam)).toFixed(1)
        }));
      }
    });
    return svg;
  }
  function rows(frame, what) {
    var all = [];
    (frame ? frame.strips : []).forEach(function (s) {
      if (s.what === what) { s.cells.forEach(function (c) { all.push(c[0]); }); }
    });
    return all;
  }
  var WHO = { both: "expected and found", expected: "expected", found: "found" };
  function shown(told, i) {
    var frame = told.frames[i], before = told.frames[i - 1];
    return frame.strips.map(function (strip) {
      var known = /^query/.test(strip.what) ? null : rows(before, strip.what);
      var name = strip.what + ", " + (WHO[strip.who] || strip.who) + (strip.note ? ": " + strip.note : "");
      var wheel = told.round && strip.what === "slots" && strip.cells.length > 1 && strip.cells.length < 33;
      var body = wheel ? circle(strip, known, name + ": " + strip.cells.map(function (c) { return c[0] || "nothing"; }).join(" "))
        : line(strip, known);
      return make("figure", {}, [make("figcaption", {}, [name]), body]);
    });
  }
  function facts(frame) {
    var p = make("p", { "class": "facts-of" });
    frame.facts.forEach(function (fact) {
      p.append(fact[0] + " " + fact[1] + " ");
      if (fact[2] !== null && fact[2] !== undefined) { p.append(make("span", { "class": "amiss" }, ["≠ found " + fact[2] + " "])); }
    });
    return p;
  }

  function Player(told, text, drawing) {
    var last = told.frames.length - 1, now = 0;
    var count = make("output", {}), range = make("input", { type: "range", min: 0, max: last, value: 0, "aria-label": "Step" });
    var title = make("h4", { "aria-live": "polite" }), cites = make("p", { "class": "cites" }), said = make("div"), body = make("div", { "class": "player-shown" });
    var link = make("a", { "class": "player-link" }, ["Link to this step"]);
    function button(label, sign, to) {
      var b = make("button", { type: "button", "aria-label": label, title: label }, [sign]);
      b.addEventListener("click", function () { go(to()); });
      return b;
    }
    var controls = make("div", { "class": "player-controls" }, [
      button("First step", "⇤", function () { return 0; }), button("Step back", "←", function () { return now - 1; }),
      button("Step on", "→", function () { return now + 1; }), button("Last step", "⇥", function () { return last; }), range, count, link
    ]);
    var root = make("div", { "class": "player", role: "group", tabindex: 0, "aria-label": "Trace player, arrow keys step: " + told.title },
      [controls, title, cites, said, body]);
    function go(to) {
      now = Math.max(0, Math.min(last, to));
      var frame = told.frames[now];
      range.value = now;
      range.setAttribute("aria-valuetext", "step " + (now + 1) + " of " + (last + 1) + ": " + frame.do);
      count.textContent = "step " + (now + 1) + " of " + (last + 1);
      title.textContent = frame.do;
      title.className = frame.differs ? "amiss" : "";
      cites.textContent = frame.cites.length ? "exercises " + frame.cites.join(", ") : "";
      said.replaceChildren(facts(frame));
      body.replaceChildren.apply(body, shown(told, now));
      link.href = home() + "#trace=" + text + "&step=" + (now + 1);
      if (drawing) { mark(drawing); }
    }
    function mark(svg) {
      Array.from(svg.children).forEach(function (part, i) {
        part.classList.toggle("now", i === now);
        part.classList.toggle("later", i > now);
      });
    }
    root.addEventListener("keydown", function (event) {
      var to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
      if (to === undefined || event.target === range || event.altKey || event.ctrlKey || event.metaKey) { return; }
      event.preventDefault();
      go(to);
    });
    range.addEventListener("input", function () { go(Number(range.value)); });
    go(0);
    return { root: root, go: go, clear: function () {
      if (drawing) { Array.from(drawing.children).forEach(function (p) { p.classList.remove("now", "later"); }); }
    } };
  }
  function home() {
    var page = document.body.dataset.player;
    return page === undefined ? location.href.split("#")[0] : page;
  }

  /* Beside each drawing a button that opens its player. Without a script the drawing shows it all. */
  Array.from(document.querySelectorAll(".trace[data-trace]")).forEach(function (figure) {
    if (typeof DecompressionStream === "undefined") { return; }
    var open = make("button", { type: "button", "aria-expanded": "false" }, ["Step through"]), player = null;
    figure.prepend(make("div", { "class": "trace-tools" }, [open]));
    open.addEventListener("click", function () {
      if (player) {
        player.clear(); player.root.remove(); player = null;
        open.setAttribute("aria-expanded", "false"); open.textContent = "Step through";
        return;
      }
      unpack(figure.dataset.trace).then(function (told) {
        player = Player(told, figure.dataset.trace, figure.querySelector("svg.drawing"));
        open.parentNode.after(player.root);
        open.setAttribute("aria-expanded", "true"); open.textContent = "Close the player";
        player.root.focus();
      });
    });
  });

  /* A link carries a trace: it is opened at the top of the page. The page of the player has one to begin with. */
  function carried() {
    var here = document.getElementById("player-here"), place = here || document.querySelector("main");
    var found = /^#trace=([\w-]+)(?:&step=(\d+))?$/.exec(location.hash) || (here && here.dataset.trace ? ["", here.dataset.trace] : null);
    if (!found || !place) { return; }
    ["carried", "drawn-here"].forEach(function (id) { var old = document.getElementById(id); if (old) { old.remove(); } });
    var section = make("section", { id: "carried", "aria-label": location.hash ? "The trace in the address" : "An example" });
    place.prepend(section);
    unpack(found[1]).then(function (told) {
      var player = Player(told, found[1], null);
      section.append(make("h2", {}, [told.title]), player.root);
      player.go(Number(found[2] || 1) - 1);
      if (location.hash) { player.root.focus(); }
    }).catch(function () {
      section.append(make("p", { "class": "warn", role: "alert" }, ["The address carries no trace that can be read. Was it cut off?"]));
    });
  }
  /* A link that is pasted is opened, or the part of it behind #trace=; a clause leads to its examples. */
  var pasted = document.getElementById("pasted");
  if (pasted) {
    pasted.hidden = false;
    pasted.addEventListener("submit", function (event) {
      event.preventDefault();
      var text = pasted.elements.trace.value.trim(), found = /trace=([\w-]+)(?:&step=(\d+))?/.exec(text) || /^([\w-]{20,})$/.exec(text);
      var clause = /^([a-z]+-\d+)(?:\.\d+)?$/i.exec(text);
      if (clause) { location.href = pasted.dataset.clause.replace("RING-19", clause[1].toUpperCase()); return; }
      document.getElementById("pasted-told").textContent = found ? "" : "No trace is in this text: paste a link that has #trace= in it, or name a clause. A trace in words is drawn by kvconform replay TRACE --draw.";
      if (found) { location.hash = "trace=" + found[1] + (found[2] ? "&step=" + found[2] : ""); }
    });
  }
  window.addEventListener("hashchange", carried);
  carried();
})();
