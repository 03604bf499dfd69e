// The page of `ein explore`: the file it shows, as it changes on disk.

// `place`: { url, token, name }. The server holds a request for the file until it changes.
export async function follow(place, { open, text, notice }) {
  const label = document.getElementById("file");
  label.textContent = place.name;
  label.hidden = false;
  document.title = `${place.name} – Einlang`;
  let version = "";
  let shown = null; // the text of the file when it was last put into the editor
  for (;;) {
    let file;
    try {
      const response = await fetch(`${place.url}file?after=${version}`, { headers: { "X-Ein-Token": place.token } });
      if (!response.ok) throw new Error();
      file = await response.json();
    } catch {
      notice("`ein explore` has ended: this page shows what it had.".replaceAll("`", ""));
      return;
    }
    if (file.version === version) continue; // nothing happened for a while
    version = file.version;
    if (file.text === text()) continue;
    // What was changed here is not on disk: the file stands before it, as its editor is where programs are written.
    if (shown !== null && text() !== shown) notice(`${place.name} changed: the page shows it again, without your changes here`);
    shown = file.text;
    await open(file.text);
  }
}
