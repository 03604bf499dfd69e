// The worker of a runner: one instance of the module, one request after the other. The runner ends this worker when a
// request takes too long or memory is short; a fresh one costs some milliseconds, because the module is compiled once.
import { failure, instantiate } from "./module.js";

let ready = null;
let module = null;

self.onmessage = async ({ data }) => {
  if (data.module) {
    module = data.module;
    ready = instantiate(module, (text) => console.warn(text));
    ready.then(() => self.postMessage({ ready: true }), (e) => self.postMessage({ failed: String(e.message ?? e) }));
    return;
  }
  const { id, request } = data;
  let answer;
  let instance = null;
  try {
    instance = await ready;
    answer = instance.answer(request);
  } catch (e) {
    answer = failure(70, `the module does not run here: ${e.message ?? e}`);
  }
  self.postMessage({ id, answer, broken: !instance || instance.broken(), bytes: instance?.bytes() ?? 0 });
};
