(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  /* Theme: auto, light, dark. Storage may be forbidden; the choice then lasts as long as the page. */
  var themes = ["auto", "light", "dark"];
  var button = document.getElementById("theme");
  function remembered() { try { return localStorage.getItem("kvconform-theme"); } catch (e) { return null; } }
  function setTheme(theme) {
    if (theme === "auto") { delete root.dataset.theme; } else { root.dataset.theme = theme; }
    button.textContent = "Theme: " + theme;
    button.dataset.theme = theme;
    try { localStorage.setItem("kvconform-theme", theme); } catch (e) { /* forbidden */ }
  }
  setTheme(themes.indexOf(remembered()) >= 0 ? remembered() : "auto");
  button.hidden = false;
  button.addEventListener("click", function () {
    setTheme(themes[(themes.indexOf(button.dataset.theme) + 1) % themes.length]);
  });
})();
