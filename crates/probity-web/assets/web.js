"use strict";
// Makes pages quicker to use. Everything works without it: filters are forms, rows are links.
(() => {
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem("probity-theme");
    } catch {
      return null;
    }
  };
  const theme = read();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const setUpTheme = () => {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = root.dataset.theme || (dark ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("probity-theme", root.dataset.theme);
      } catch {
        // The choice then holds for this page only.
      }
    });
  };

  // Forms are sent when something is chosen, and leave out what is not filled in.
  const setUpForms = () => {
    for (const form of document.querySelectorAll("form[data-auto]")) {
      form.addEventListener("change", (event) => {
        if (event.target.type !== "search") form.requestSubmit();
      });
      form.querySelector("button[type=submit]")?.classList.add("unseen");
    }
    for (const form of document.querySelectorAll("form")) {
      form.addEventListener("submit", () => {
        for (const field of form.elements) {
          if (field.name && !field.value) field.disabled = true;
        }
      });
      // Going back brings the page as it was left.
      addEventListener("pageshow", () => {
        for (const field of form.elements) field.disabled = false;
        tellNeeds();
      });
    }
  };

  // A button that needs some boxes ticked says so by being off.
  const tellNeeds = () => {
    for (const button of document.querySelectorAll("button[data-needs]")) {
      const ticked = button.form.querySelectorAll("input[type=checkbox]:checked").length;
      button.disabled = ticked < Number(button.dataset.needs);
    }
  };

  const setUpCopies = () => {
    for (const button of document.querySelectorAll("button[data-copy]")) {
      if (!navigator.clipboard) continue;
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
    }
  };

  // ---- Keys: j and k walk through rows, Enter opens one, / searches.
  const rows = () => [...document.querySelectorAll("[data-rows] > tr")];
  const mainLink = (row) => row?.querySelector("a[data-main]");
  const walk = (by) => {
    const all = rows();
    const at = all.findIndex((row) => row.contains(document.activeElement));
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
    const link = mainLink(all[next]);
    link?.focus();
    all[next]?.scrollIntoView({ block: "nearest" });
    return Boolean(link);
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    const search = document.querySelector("input[type=search]");
    if (event.key === "Escape" && typing) event.target.blur();
    else if (typing) return;
    else if (event.key === "/" && search) search.focus();
    else if ((event.key === "j" || event.key === "ArrowDown") && rows().length && (event.key === "j" || event.target.closest?.("[data-rows]"))) walk(1);
    else if ((event.key === "k" || event.key === "ArrowUp") && rows().length && (event.key === "k" || event.target.closest?.("[data-rows]"))) walk(-1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const link = document.querySelector(event.key === "ArrowLeft" ? "a[rel=prev]" : ".beside a[rel=next]");
      if (!link || event.target.closest?.("pre, .scroll")) return;
      link.click();
    } else return;
    event.preventDefault();
  };
  // A click anywhere in a row opens it, unless something else was meant.
  const onClick = (event) => {
    const row = event.target.closest("[data-rows] > tr");
    if (!row || event.target.closest("a, input, button, label") || String(getSelection())) return;
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    mainLink(row)?.click();
  };

  addEventListener("DOMContentLoaded", () => {
    setUpTheme();
    setUpForms();
    setUpCopies();
    tellNeeds();
    document.addEventListener("change", tellNeeds);
    // Something is being read that is not known yet.
    if (document.querySelector("[data-reload]")) setTimeout(() => location.reload(), 1000);
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", onClick);
    root.dataset.ready = "";
  });
})();
