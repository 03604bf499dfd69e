// Stands in for the addresses of the playground in the tests of the site.
export const encode = (source) => "0" + btoa(unescape(encodeURIComponent(source))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
