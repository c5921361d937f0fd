"use strict";
// Keeps a watched page up to date: polls the current state once per second, and loads a new report when there is one. The reader's position on the page is kept.
(() => {
  const live = document.getElementById("live");
  const holder = () => live.querySelector("[data-report]");
  let number = Number(holder().dataset.report);
  const report = () => document.getElementById("report");
  // Returns a key of a collapsible part that stays the same when a new report is loaded.
  const key = (one) => {
    const inside = one.querySelector("[id]") || one.closest("[id]");
    return (inside ? inside.id : "") + "|" + one.querySelector("summary").textContent.slice(0, 60);
  };
  const open = () => new Set([...report().querySelectorAll("details[open]")].map(key));
  // Returns the id of the last element that starts at or above the top of the screen, and its distance from the top.
  const place = () => {
    const named = [...report().querySelectorAll("section[id], figure[id], details.run > div[id]")];
    const seen = named.filter((one) => one.getBoundingClientRect().height > 0 && one.getBoundingClientRect().top <= 8);
    const last = seen.pop();
    return last && { id: last.id, top: last.getBoundingClientRect().top };
  };
  const take = async () => {
    const answer = await fetch("./", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("report");
    const [opened, where, across] = [open(), place(), scrollX];
    report().replaceWith(document.adoptNode(fresh));
    report().querySelectorAll("details").forEach((one) => (one.open = opened.has(key(one))));
    const there = where && document.getElementById(where.id);
    if (there) scrollTo(across, scrollY + there.getBoundingClientRect().top - where.top);
    document.dispatchEvent(new Event("sweepline-report"));
  };
  const gone = "The command that served this page has ended: this is the last state that it reported.";
  let lost = 0;
  const look = async () => {
    try {
      const answer = await fetch("live", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const now = await answer.json();
      const height = live.offsetHeight;
      holder().innerHTML = now.html;
      // Scrolls so that the content below the current state stays in place.
      if (scrollY > live.offsetTop + height) scrollBy(0, live.offsetHeight - height);
      if (now.report !== number) {
        await take();
        number = now.report;
      }
      lost = 0;
    } catch {
      lost += 1;
      if (lost === 3) {
        const told = document.createElement("p");
        told.className = "tone bad";
        told.textContent = gone;
        holder().prepend(told);
      }
    }
    setTimeout(look, lost > 3 ? 5000 : 1000);
  };
  setTimeout(look, 1000);
})();
