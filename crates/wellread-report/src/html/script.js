'use strict';
// Sorting, filtering, copying and the theme. The page is whole without it.
(function () {
  const root = document.documentElement;
  const theme = document.getElementById('theme');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
  const label = () => { theme.textContent = isDark() ? 'Light theme' : 'Dark theme'; };
  theme.hidden = false;
  theme.addEventListener('click', () => { root.dataset.theme = isDark() ? 'light' : 'dark'; label(); });
  dark.addEventListener('change', label);
  label();

  // Numbers by size, text by the alphabet, what is missing always last.
  function compare(a, b, down) {
    if (a === '' || b === '') return (a === '') - (b === '');
    const x = Number(a), y = Number(b);
    const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, 'en') : x - y;
    return down ? -order : order;
  }
  const value = (row, i) => (row.cells[i] && row.cells[i].dataset.v) || '';

  for (const table of document.querySelectorAll('table.results')) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, i) => {
      head.querySelector('button').addEventListener('click', () => {
        const now = head.getAttribute('aria-sort');
        const down = now ? now === 'ascending' : head.dataset.first === 'down';
        heads.forEach((h) => h.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        [...body.rows].sort((a, b) => compare(value(a, i), value(b, i), down)).forEach((row) => body.append(row));
      });
    });
  }

  for (const bar of document.querySelectorAll('.filters')) {
    const table = document.getElementById(bar.dataset.for);
    if (!table) continue;
    const rows = [...table.tBodies[0].rows];
    const search = bar.querySelector('input');
    const choices = [...bar.querySelectorAll('select')];
    const count = bar.querySelector('output');
    const all = rows.length + (rows.length === 1 ? ' row' : ' rows');
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word)) &&
          choices.every((c) => c.value === '' || value(row, c.dataset.column) === c.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = shown === rows.length ? all : shown + ' of ' + all;
    };
    bar.hidden = false;
    search.addEventListener('input', filter);
    choices.forEach((c) => c.addEventListener('change', filter));
    filter();
  }

  for (const button of document.querySelectorAll('button.copy')) {
    const code = button.parentElement.querySelector('code');
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
  }
  // Paper cannot be unfolded.
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    for (const one of opened) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of opened) one.open = false;
  });
})();
