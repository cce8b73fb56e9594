// To the studio and back: changes go out one request at a time, the newest of each kind; what is new is asked for.

const snapshot = document.getElementById("snapshot");
export const offline = snapshot !== null;
export const client = offline ? "" : Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");

export const ask = async (path, body = {}) => {
  const response = await fetch(`api/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({ error: `the studio answered ${response.status}` }));
  if (!response.ok) throw new Error(answer.error ?? `the studio answered ${response.status}`);
  return answer;
};

let waiting = {};
let sending = null;
let seen = 0; // the version of what is shown
let due = 0; // the version that has the last change
let working = true;

// Whether what is shown may still change: something is on its way to the studio or back, or worked out there.
const mark = () => { document.getElementById("studio").dataset.busy = sending || seen < due || working ? "yes" : "no"; };
const failures = new Set();
export const onFailure = (hear) => failures.add(hear);

// Later changes of one kind take the place of earlier ones that were not sent yet; a bar that is dragged is a kind.
export const change = (what) => {
  if (offline) return Promise.resolve();
  for (const [kind, value] of Object.entries(what)) {
    const key = kind === "drag" && value ? `drag ${value[0]}` : kind === "param" || kind === "input" ? `${kind} ${value[0]}` : kind;
    delete waiting[key];
    waiting[key] = { [kind]: value };
  }
  if (Object.keys(waiting).length) sending ??= send();
  mark();
  return sending ?? Promise.resolve();
};

const send = async () => {
  while (Object.keys(waiting).length) {
    const changes = Object.values(waiting);
    waiting = {};
    for (const one of changes) {
      try {
        due = Math.max(due, (await ask("change", one)).version);
      } catch (error) {
        failures.forEach((hear) => hear(error.message));
      }
    }
  }
  sending = null;
  mark();
};

// Calls `show(views)` with the views that are new, for as long as the page is open; `alive(yes)` where that changes.
export const follow = async (show, alive) => {
  if (offline) {
    show(JSON.parse(snapshot.textContent));
    return;
  }
  for (;;) {
    let news;
    try {
      const response = await fetch(`api/views?since=${seen}`);
      if (!response.ok) throw new Error(String(response.status));
      news = await response.json();
    } catch {
      alive(false);
      await new Promise((go) => setTimeout(go, 1000));
      continue;
    }
    if (news.version < seen) location.reload(); // another studio has taken the address
    alive(true);
    try {
      show(news.views);
    } catch (error) {
      console.error(error); // a fault of the page: the next views are shown still
    }
    seen = news.version;
    if ("doing" in news.views) working = news.views.doing !== null;
    mark();
  }
};
