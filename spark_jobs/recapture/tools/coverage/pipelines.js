// Without scripts, all pipelines are shown, and there is nothing to search with.
const search = document.getElementById("search");
if (search) {
  const cards = [...document.querySelectorAll("#pipelines > li")];
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const card of cards) card.hidden = !words.every((word) => card.textContent.toLowerCase().includes(word));
    const shown = cards.filter((card) => !card.hidden).length;
    document.getElementById("shown").textContent = `${shown} of ${cards.length} pipelines`;
  };
  search.addEventListener("input", show);
  search.closest("p").hidden = false;
  show();
}
