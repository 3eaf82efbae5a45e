// Sets the colours before anything is drawn: what the reader chose here, else what the system says.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("kraq-theme");
  } catch {
    // A page from a file may have no storage: then the system decides.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
