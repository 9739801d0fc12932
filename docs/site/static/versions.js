// Let a reader choose another version of the page. versions.js next to the versions' folders says which there are.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".versions"), versions = window.VERSIONS || [];
  const shown = place.querySelector("span"), present = shown.textContent, { page, root } = place.dataset;
  const address = (version) => {
    const { pages } = versions.find((other) => other.version === version);
    return `${root}${version}/${pages.includes(page) ? page + location.hash : "README.html"}`;
  };

  if (versions.length > 1) {
    const select = document.createElement("select"), label = document.createElement("label");
    select.append(...versions.map(({ version }) => new Option(version, version, false, version === present)));
    select.addEventListener("change", () => location.assign(address(select.value)));
    shown.remove();
    label.append(place.firstChild, select);
    place.replaceChildren(label);
    window.addEventListener("pageshow", () => { select.value = present; });
  }

  const releases = versions.map(({ version }) => version).filter((version) => !version.includes("dev"));
  if (releases.includes(present) && present !== releases[0]) {
    const notice = document.createElement("aside"), link = document.createElement("a");
    link.href = address(releases[0]);
    link.textContent = releases[0];
    notice.className = "older";
    notice.append(`These are the pages of version ${present}. The newest version is `, link, ".");
    document.querySelector("h1")?.after(notice);
  }
});
