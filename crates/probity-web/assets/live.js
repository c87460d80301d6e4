"use strict";
// Shows how far a run has come while it goes on. What comes is a part of the page that the server made and escaped.
(() => {
  const section = document.getElementById("live");
  let source = null;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    if (source) return;
    source = new EventSource(section.dataset.live);
    source.addEventListener("progress", (event) => {
      section.innerHTML = event.data;
      section.dataset.updates = Number(section.dataset.updates || 0) + 1;
    });
    source.addEventListener("end", () => {
      stop();
      location.reload();
    });
  };
  // Browsers allow few connections to a server, and a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  if (!document.hidden) start();
})();
