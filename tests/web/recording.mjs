// What a page shows while a test uses it, as an animated PNG: no program is needed to make it or to see it.
import fs from "node:fs";
import zlib from "node:zlib";

const LONGEST = 2000; // milliseconds that a picture stays: nobody watches a test wait
const LAST = 1500;
const SIGNATURE = 8;

function* chunks(png) {
  for (let at = SIGNATURE; at < png.length;) {
    const size = png.readUInt32BE(at);
    yield { type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + size) };
    at += size + 12;
  }
}

function chunk(type, ...parts) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), ...parts]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(body.length - 4);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});
const crc = zlib.crc32 ?? ((bytes) => {
  let c = 0xffffffff;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
});

const numbers = (...sized) => Buffer.concat(sized.map(([size, value]) => {
  const out = Buffer.alloc(size);
  out.writeUIntBE(value, 0, size);
  return out;
}));

// Pictures of one size, each shown for `ms`.
function animated(pictures) {
  const [header] = chunks(pictures[0].png);
  const [width, height] = [header.data.readUInt32BE(0), header.data.readUInt32BE(4)];
  const out = [pictures[0].png.subarray(0, SIGNATURE), chunk("IHDR", header.data), chunk("acTL", numbers([4, pictures.length], [4, 0]))];
  let order = 0;
  pictures.forEach(({ png, ms }, k) => {
    out.push(chunk("fcTL", numbers([4, order++], [4, width], [4, height], [4, 0], [4, 0], [2, Math.round(ms)], [2, 1000], [1, 0], [1, 0])));
    const data = [...chunks(png)].filter((c) => c.type === "IDAT").map((c) => c.data);
    out.push(k === 0 ? chunk("IDAT", ...data) : chunk("fdAT", numbers([4, order++]), ...data));
  });
  return Buffer.concat([...out, chunk("IEND")]);
}

// Begins a recording of a page; the function that it gives ends it, and writes the file.
export async function record(page, file) {
  const session = await page.context().newCDPSession(page);
  const frames = [];
  session.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
    frames.push({ png: Buffer.from(data, "base64"), at: 1000 * metadata.timestamp });
    session.send("Page.screencastFrameAck", { sessionId }).catch(() => {});
  });
  await session.send("Page.startScreencast", { format: "png", everyNthFrame: 1 });
  return async () => {
    await page.waitForTimeout(200);
    await session.send("Page.stopScreencast");
    frames.sort((a, b) => a.at - b.at);  // on a busy machine a frame may come before an older one
    const header = (f) => f.png.toString("latin1", SIGNATURE, SIGNATURE + 25);
    const same = frames.filter((f) => header(f) === header(frames.at(-1)));
    if (same.length < 2) throw new Error(`${file}: nothing moved`);
    fs.writeFileSync(file, animated(same.map((f, k) => ({ png: f.png, ms: k + 1 < same.length ? Math.min(LONGEST, same[k + 1].at - f.at) : LAST }))));
    return same.length;
  };
}
