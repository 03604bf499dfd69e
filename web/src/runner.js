// Runs programs in a page: `const runner = createRunner(); await runner.request({ verb: "run", source })`.
//
// A request (docs/playground.md) is answered by a worker, so the page stays alive whatever the program does. The
// worker is ended and another one started when a request takes longer than `seconds`, when `stop()` is called, or
// when it holds more than `megabytes`; the answer then says so in `stopped` ("time", "user", "memory", "depth").
// `createRunner({ serve })` asks a server instead: `ein explore`.
import { failure } from "./module.js";

// Where the module and the worker are, unless somebody says otherwise (a page that is one file does).
export const places = {
  worker: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }),
  bytes: async () => {
    const response = await fetch(new URL("./ein.wasm", import.meta.url));
    if (!response.ok) throw new Error(`ein.wasm: ${response.status} ${response.statusText}`);
    return response;
  },
};

let compiling = null; // once for all runners of a page
function compiled() {
  compiling ??= (async () => {
    const source = await places.bytes();
    if (!(source instanceof Response)) return WebAssembly.compile(source);
    // Servers that do not know .wasm send another type, which the streaming function refuses.
    if (/application\/wasm/.test(source.headers.get("content-type") ?? "")) return WebAssembly.compileStreaming(source);
    return WebAssembly.compile(await source.arrayBuffer());
  })();
  compiling.catch(() => (compiling = null));
  return compiling;
}

const WHY = {
  time: (seconds) => `stopped: the program ran for more than ${seconds} seconds. Outside of a page it is compiled and ` +
    "much faster: save it and use `ein run FILE`, or `ein explore FILE` for this page with native code",
  user: () => "stopped",
  memory: (seconds, megabytes) => `stopped: the program needs more than ${megabytes} MB. Save it and use \`ein run FILE\``,
};

export function createRunner({ seconds = 10, megabytes = 512, serve = null, onrestart = () => {} } = {}) {
  if (serve) return createServed(serve, onrestart);
  let worker = null; // { port, ready }
  let waiting = []; // requests in order: { request, resolve, timer }
  let last = 0;

  function start() {
    const port = places.worker();
    const state = { port };
    state.ready = compiled().then((module) => new Promise((resolve, reject) => {
      port.onmessage = ({ data }) => {
        if (data.ready) resolve();
        if (data.failed) reject(new Error(data.failed));
        if (data.id !== undefined) answered(state, data);
      };
      port.onerror = (e) => reject(new Error(e.message || "the worker could not be started"));
      port.postMessage({ module });
    }));
    return state;
  }

  function restart() {
    worker?.port.terminate();
    worker = null;
    onrestart();
  }

  function answered(state, { id, answer, broken, bytes }) {
    if (state !== worker || waiting[0]?.id !== id) return; // of a worker that was ended
    const { resolve, timer } = waiting.shift();
    clearTimeout(timer);
    const full = bytes > (megabytes << 20) / 2;
    if (/more memory than there is/.test(answer.error ?? "")) {
      answer.stopped = "memory";
      answer.error = WHY.memory(seconds, megabytes);
      answer.stderr = answer.error + "\n";
    }
    resolve(answer);
    if (broken || full) restart(); // memory of WebAssembly only grows
    next();
  }

  function end(reason) {
    const [current] = waiting;
    if (!current) return;
    clearTimeout(current.timer);
    waiting.shift();
    restart();
    current.resolve(failure(130, WHY[reason](seconds, megabytes), { stopped: reason }));
    next();
  }

  async function next() {
    const current = waiting[0];
    if (!current || current.sent) return;
    current.sent = true;
    worker ??= start();
    const mine = worker;
    try {
      await mine.ready;
    } catch (e) {
      if (waiting[0] !== current) return;
      waiting.shift();
      restart();
      current.resolve(failure(70, `the module cannot be loaded: ${e.message}`));
      return next();
    }
    if (waiting[0] !== current || worker !== mine) return;
    current.timer = setTimeout(() => end("time"), seconds * 1000); // loading does not count
    mine.port.postMessage({ id: current.id, request: current.request });
  }

  return {
    request(request) {
      return new Promise((resolve) => {
        waiting.push({ id: ++last, request, resolve });
        next();
      });
    },
    // Ends what runs; requests behind it are still answered.
    stop: () => end("user"),
    busy: () => waiting.length > 0,
    dispose() {
      for (const w of waiting.splice(0)) {
        clearTimeout(w.timer);
        w.resolve(failure(130, WHY.user(), { stopped: "user" }));
      }
      worker?.port.terminate();
      worker = null;
    },
    backend: "ref",
  };
}

// The same over a server on this machine, which keeps the limits itself.
let lanes = 0; // processes of the server, one for each runner
function createServed({ url, token }, onrestart) {
  let running = 0;
  const lane = lanes++;
  const post = (path, body) =>
    fetch(`${url}${path}?lane=${lane}`, { method: "POST", headers: { "X-Ein-Token": token, "Content-Type": "application/json" }, body });
  return {
    async request(request) {
      running++;
      try {
        const response = await post("answer", JSON.stringify(request));
        if (!response.ok) return failure(70, `\`ein explore\` answered ${response.status}: ${await response.text()}`);
        const answer = await response.json();
        if (answer.stopped) onrestart();
        return answer;
      } catch {
        return failure(70, "`ein explore` does not answer: has it ended?", { gone: true });
      } finally {
        running--;
      }
    },
    stop: () => post("stop", "").catch(() => {}),
    busy: () => running > 0,
    dispose() {},
    backend: "native",
  };
}
