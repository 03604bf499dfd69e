// A program in the address of a page, after `#`: the digit 1, then its text in UTF-8, deflated (raw), in base64url.
// Nothing is sent anywhere: what stands after `#` stays in the browser.

const VERSION = "1";
const LONGEST = 1 << 20; // of a program, in bytes

async function through(stream, bytes, most = Infinity) {
  const writer = stream.writable.getWriter();
  const done = writer.write(bytes).then(() => writer.close());
  done.catch(() => {}); // reading reports it
  const parts = [];
  let size = 0;
  for (const reader = stream.readable.getReader(); ; ) {
    const { value, done: end } = await reader.read();
    if (end) break;
    size += value.length;
    if (size > most) throw new Error("the program in the address is longer than 1 MiB");
    parts.push(value);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// `#1…` for a program.
export async function encode(source) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(source));
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return "#" + VERSION + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// The program of `location.hash`; null where there is none. Throws an Error, in words, where it is damaged.
export async function decode(hash) {
  const text = hash.replace(/^#/, "");
  if (!text) return null;
  if (text[0] !== VERSION) {
    throw new Error(
      /^\d/.test(text) ? "the program in the address was written by a newer playground"
                       : "the address does not hold a program");
  }
  try {
    const plain = atob(text.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(plain, (c) => c.charCodeAt(0));
    const source = await through(new DecompressionStream("deflate-raw"), bytes, LONGEST);
    return new TextDecoder("utf-8", { fatal: true }).decode(source);
  } catch (e) {
    if (/MiB/.test(e.message)) throw e;
    throw new Error("the program in the address is damaged: perhaps a part of it was cut off");
  }
}
