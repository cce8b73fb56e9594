// Bars between panels side by side: dragged, or moved by the arrow keys.

import { make } from "./dom.js";

export const divide = (main, sections) => {
  const widths = [9, 7, 11];
  const apply = () => main.style.setProperty("--columns", widths.map((width) => `minmax(0, ${width.toFixed(2)}fr)`).join(" 0.75rem "));
  const move = (i, by) => {
    const most = widths[i] + widths[i + 1] - 4;
    widths[i] = Math.min(Math.max(4, widths[i] + by), most);
    widths[i + 1] = most + 4 - widths[i];
    bars[i].setAttribute("aria-valuenow", String(Math.round((100 * widths[i]) / (widths[i] + widths[i + 1]))));
    apply();
  };
  const bars = sections.slice(1).map((_, i) => {
    const bar = make("div", { class: "divider", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": `Width of the panel ${sections[i].id}`, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "50" });
    bar.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -0.5, ArrowRight: 0.5 }[event.key];
      if (by) move(i, by);
    });
    bar.addEventListener("pointerdown", (event) => {
      bar.setPointerCapture(event.pointerId);
      const total = widths.reduce((sum, width) => sum + width, 0);
      let last = event.clientX;
      const drag = (next) => {
        move(i, ((next.clientX - last) * total) / main.clientWidth);
        last = next.clientX;
      };
      bar.addEventListener("pointermove", drag);
      bar.addEventListener("pointerup", () => bar.removeEventListener("pointermove", drag), { once: true });
    });
    sections[i].after(bar);
    return bar;
  });
  apply();
};
