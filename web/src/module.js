// The compiled module: loading it, and its one function. Used by the worker of a page and, in Node, by the tests.

// What the module asks of its surroundings (WASI): the time, and a place for last words. It opens no files.
function surroundings(memory, report) {
  const ERRNO_BADF = 8;
  const view = () => new DataView(memory().buffer);
  return {
    environ_get: () => 0,
    environ_sizes_get: (count, bytes) => {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    clock_time_get: (id, precision, out) => {
      const now = id === 0 ? Date.now() : performance.now();
      view().setBigUint64(out, BigInt(Math.round(now * 1e6)), true);
      return 0;
    },
    fd_close: () => ERRNO_BADF,
    fd_seek: () => ERRNO_BADF,
    fd_write: (fd, parts, count, written) => {
      let total = 0;
      let text = "";
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(parts + 8 * i, true);
        const length = view().getUint32(parts + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory().buffer, at, length));
        total += length;
      }
      view().setUint32(written, total, true);
      report(text);
      return 0;
    },
    proc_exit: (status) => {
      throw new Error(`the module ended with status ${status}`);
    },
  };
}

const TOO_DEEP =
  "the program nests too deeply for this page: its stack is the browser's. Save the program and run it with " +
  "`ein run`, whose stack is as deep as the program is long.";

// What an answer has in common, for those that are made outside the module.
export function failure(status, why, more = {}) {
  return { status, stdout: "", stderr: why + "\n", error: why, diagnostics: [], files: [], ...more };
}

// `answer(request)` of a fresh instance. After a fault the instance is broken: `broken()` says so.
export async function instantiate(module, report = () => {}) {
  let instance = null;
  const imports = { wasi_snapshot_preview1: surroundings(() => instance.exports.memory, report) };
  instance = await WebAssembly.instantiate(module, imports);
  const { memory, ein_take, ein_web, ein_answer, _initialize } = instance.exports;
  _initialize();
  let broken = false;
  function answer(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    try {
      const at = ein_take(bytes.length);
      if (at === 0) {
        broken = true;
        return failure(3, "there is not enough memory for the request");
      }
      new Uint8Array(memory.buffer).set(bytes, at);
      const length = ein_web(at, bytes.length);
      return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, ein_answer(), length)));
    } catch (fault) {
      broken = true;
      const deep = fault instanceof RangeError || /out of bounds|stack/i.test(fault.message);
      return deep ? failure(3, TOO_DEEP, { stopped: "depth" })
                  : failure(70, `a fault in the compiler: ${fault.message}`);
    }
  }
  return { answer, broken: () => broken, bytes: () => memory.buffer.byteLength };
}
