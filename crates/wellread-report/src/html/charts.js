// Reading a figure's values by pointer and keyboard, hiding series, changing the scale. Every drawing is already in
// the page, made as the printed one is: nothing is drawn here.
(function () {
  // Farthest that a pointer may be from a mark, in units of the drawing.
  const NEAR = 14;

  // Tooltips of the browser would come late and on top of ours: the words move into a property.
  function prepare(svg) {
    const title = svg.querySelector(':scope > title');
    if (title) {
      svg.removeAttribute('aria-labelledby');
      svg.setAttribute('aria-label', title.textContent);
      const words = svg.querySelector(':scope > desc');
      if (words) svg.setAttribute('aria-describedby', words.id);
      title.remove();
    }
    for (const mark of svg.querySelectorAll('g.mark')) {
      const own = mark.querySelector(':scope > title');
      if (!own) continue;
      mark.dataset.words = own.textContent;
      own.remove();
    }
    return svg;
  }

  for (const plot of document.querySelectorAll('.plot')) {
    const figure = plot.querySelector('figure');
    const tools = plot.querySelector('.tools');
    const readout = plot.querySelector('.readout output');
    const hint = readout.textContent;
    const boxes = [...tools.querySelectorAll('input[type=checkbox]')];
    const scales = [...tools.querySelectorAll('input[type=radio]')];
    const drawings = { '': prepare(figure.querySelector('svg')) };
    for (const other of plot.querySelectorAll('template')) {
      drawings[other.dataset.scale] = other.content.querySelector('svg');
    }
    const tip = document.createElement('div');
    tip.className = 'tip';
    tip.hidden = true;
    tip.setAttribute('aria-hidden', 'true');
    plot.append(tip);
    let svg = drawings[''];
    let marks = [];
    let places = null;
    let at = -1;

    function clear() {
      if (at >= 0) marks[at].classList.remove('on');
      at = -1;
      svg.classList.remove('reading');
      tip.hidden = true;
      readout.textContent = hint;
    }

    function show(i) {
      if (i === at) return;
      if (at >= 0) marks[at].classList.remove('on');
      at = i;
      const mark = marks[i];
      mark.classList.add('on');
      svg.classList.add('reading');
      tip.textContent = readout.textContent = mark.dataset.words;
      tip.hidden = false;
      // At the sign itself, not at the value that is written beside it.
      const sign = mark.querySelector('circle, polygon, rect') || mark;
      const of = sign.getBoundingClientRect(), frame = plot.getBoundingClientRect();
      const left = (of.left + of.right) / 2 - frame.left - tip.offsetWidth / 2;
      tip.style.left = Math.max(0, Math.min(left, frame.width - tip.offsetWidth)) + 'px';
      const above = of.top - frame.top - tip.offsetHeight - 8;
      tip.style.top = (above > -frame.top ? above : of.bottom - frame.top + 8) + 'px';
    }

    // What of the drawing is to be seen, after a switch.
    function update() {
      clear();
      const off = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
      for (const part of svg.querySelectorAll('[data-s]')) part.classList.toggle('off', off.has(part.dataset.s));
      marks = [...svg.querySelectorAll('g.mark:not(.off)')];
      places = null;
    }

    // The mark nearest to a point of the window.
    function nearest(x, y) {
      if (!places) places = marks.map((mark) => mark.getBBox());
      const on = svg.getBoundingClientRect();
      const unit = svg.viewBox.baseVal.width / on.width;
      const px = (x - on.left) * unit, py = (y - on.top) * unit;
      let best = -1, least = NEAR * NEAR;
      places.forEach((box, i) => {
        const dx = Math.max(box.x - px, 0, px - box.x - box.width);
        const dy = Math.max(box.y - py, 0, py - box.y - box.height);
        // Among those the pointer is on, the one whose middle is nearest.
        const far = dx * dx + dy * dy +
          1e-3 * Math.hypot(box.x + box.width / 2 - px, box.y + box.height / 2 - py);
        if (far < least) { best = i; least = far; }
      });
      return best;
    }

    const point = (event) => {
      const i = nearest(event.clientX, event.clientY);
      if (i >= 0) show(i); else if (at >= 0) clear();
    };
    figure.addEventListener('pointermove', point);
    figure.addEventListener('pointerdown', point);
    figure.addEventListener('pointerleave', () => { if (at >= 0) clear(); });
    figure.addEventListener('blur', clear);
    figure.addEventListener('keydown', (event) => {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      const last = marks.length - 1;
      let to;
      if (event.key in steps) to = at < 0 ? 0 : Math.max(0, Math.min(last, at + steps[event.key]));
      else if (event.key === 'Home') to = 0;
      else if (event.key === 'End') to = last;
      else if (event.key === 'Escape') return clear();
      else return;
      if (last < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      marks[to].scrollIntoView({ block: 'nearest', inline: 'nearest' });
      show(to);
    });

    boxes.forEach((box) => box.addEventListener('change', update));
    for (const button of tools.querySelectorAll('button[data-all]')) {
      button.addEventListener('click', () => {
        boxes.forEach((box) => { box.checked = button.dataset.all !== ''; });
        update();
      });
    }
    scales.forEach((scale) => scale.addEventListener('change', () => {
      clear();
      svg = prepare(drawings[scale.value]);
      figure.replaceChildren(svg);
      update();
    }));
    // A browser that reloads a page may keep the switches as they were.
    boxes.forEach((box) => { box.checked = true; });
    if (scales.length) scales[0].checked = true;
    if (boxes.length || scales.length) tools.hidden = false;
    readout.parentElement.hidden = false;
    update();
  }
})();
