// The page in one file, which works from a file: address: worker and module are read from the page itself.
import { places } from "./runner.js";

places.worker = () => {
  const source = document.getElementById("ein-worker").textContent;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return worker;
};
places.bytes = async () => {
  const text = atob(document.getElementById("ein-module").textContent.trim());
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};

import("./main.js");
