// The picture of a service: a lane for each node, a bar for each activation, and how it went from one to the next.

// word is a reason without what more there is to say, as Go's Reason.Word.
const word = reason => reason.split(';')[0];

// moves tells of each activation what brought it about. past is sorted by time.
function moves(past) {
  return past.map((a, i) => {
    const before = past[i - 1], m = { at: +new Date(a.start), ready: readyAt(a), to: a.node, down: down(a), kind: 'start', words: '', fenced: '', fencing: a.fence_ms || 0 };
    if (a.fenced && a.fenced !== wire.noBreadcrumb) m.fenced = a.fenced;
    if (!before && !m.fenced) return m;
    const how = before ? word(before.reason) : '';
    m.from = before ? before.node : '';
    m.kind = m.fenced ? 'failover' : wire.planned.includes(how) ? 'handover' : how ? 'failover' : 'open';
    m.words = m.fenced ? 'fenced by ' + m.fenced : how;
    m.short = [m.fenced || m.words, a.overlap_ms != null ? m.down : m.down || (m.fencing ? '> ' + lasted(m.fencing) : '')];
    return m;
  });
}

// readyAt is when an activation's programs were ready; null: never. Until they are started it is when they may be.
const readyAt = a => a.ready ? +new Date(a.ready) : a.started ? null : +new Date(a.start) + (a.fence_ms || 0);

// down is how long nothing ran before an activation, by the rule of `understudy history`: from the last proof that the previous program
// ran to ready here. Where nobody wrote the end down, it is bounded.
function down(a) {
  if (a.overlap_ms != null) return 'both ran for ' + lasted(a.overlap_ms);
  if (a.gap_ms != null) return lasted(a.gap_ms);
  return between(a.gap_min_ms, a.gap_max_ms);
}

function between(least, most) {
  if (least == null && most == null) return '';
  if (most == null) return '> ' + lasted(least);
  const to = lasted(most), unit = to.replace(/^[0-9.]+/, ''), from = lasted(least || 0);
  return '~' + (from === to ? to : (from.endsWith(unit) ? from.slice(0, -unit.length) : from) + '-' + to);
}

function tell(m) {
  const kinds = { start: '● first start on ', handover: '○ switchover ', failover: '▲ takeover ', open: '● taken over ' };
  return kinds[m.kind] + (m.from ? m.from + ' → ' : '') + m.to + (m.kind === 'start' ? '' : (m.words ? ': ' + m.words : '') +
    (m.down.startsWith('both') ? ', ' + m.down : m.down ? ', nothing ran for ' + m.down : m.fencing ? ', nothing ran for ' + lasted(m.fencing) + ' of fencing, and before' : '') +
    (m.ready == null ? ', never ready there' : ''));
}

function shape(svg, kind, at, words) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const k in at) e.setAttribute(k, at[k]);
  if (words) { if (kind === 'text') e.textContent = words; else { const t = document.createElementNS('http://www.w3.org/2000/svg', 'title'); t.textContent = words; e.append(t); } }
  svg.append(e);
  return e;
}

const marks = {
  handover: (svg, x, y, words) => shape(svg, 'circle', { cx: x, cy: y, r: 4, class: 'hand' }, words),
  failover: (svg, x, y, words) => shape(svg, 'path', { d: `M${x - 6} ${y + 5}h12l-6 -11z`, class: 'fail' }, words),
  fenced: (svg, x, y, words) => shape(svg, 'path', { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: 'cross' }, words),
};

function lasted(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 120) return Math.round(s) + ' s';
  if (s < 3600) return Math.round(s / 60) + ' min';
  if (s < 172800) return (s < 36000 ? Math.round(s / 360) / 10 : Math.round(s / 3600)) + ' h';
  return Math.round(s / 86400) + ' days';
}

// steps are what lies between two lines of the grid, in seconds.
const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];

function clock(t, step) {
  const d = new Date(t);
  if (step >= 86400) return d.toLocaleDateString(undefined, { month: 'short', day: 'numeric' });
  return d.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: step < 60 ? '2-digit' : undefined, hourCycle: 'h23' });
}

const when = t => new Date(t).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'medium', hourCycle: 'h23' });

// course is when each activation's programs ran, and when nothing did. past is sorted by time; since is since when nobody is known to be
// active, and guess how long what ended without a word may have run.
function course(past, now, since, guess) {
  const list = moves(past), bars = [], holes = [];
  let before, stopped; // the last bar whose programs ran, and when what was last ended
  past.forEach((a, i) => {
    const next = past[i + 1], m = list[i], ran = m.ready != null, start = ran ? m.ready : +new Date(a.started), last = !next && !a.active;
    const latest = a.end_max || a.end_min || a.end;
    const end = latest ? +new Date(latest) : a.active ? now : next ? +new Date(next.start) : since || Math.max(start, now - guess);
    const bar = { a, m, ran, start, end, sure: a.end_min ? Math.max(+new Date(a.end_min), start) : end, last };
    if (ran && before && a.overlap_ms != null) holes.push({ from: +new Date(a.started), to: before.end, kind: 'both', words: m.down, bar });
    else if (ran && before && m.down) {
      const least = a.gap_ms ?? a.gap_min_ms, from = least != null ? Math.max(start - least, before.start) : before.end;
      before.end = Math.min(before.end, from); // where its node wrote a later end than was proved
      before.sure = Math.min(before.sure, before.end);
      holes.push({ from, to: start, kind: 'gap', words: 'nothing ran for ' + m.down, bar });
    } else if (ran && !m.down && m.fencing) holes.push({ from: m.at, to: start, kind: 'gap', words: `${a.node} made sure for ${lasted(m.fencing)} that nothing else runs`, bar });
    bars.push(bar);
    if (ran) before = bar;
    if (last) { stopped = before ? before.end : end; holes.push({ from: stopped, to: now, kind: 'gap', words: 'nothing runs', bar, open: true, known: !!(a.end || since) }); }
  });
  return { bars, holes, list };
}

// strip draws the last span milliseconds into one line, for all nodes together. since is as in course.
function strip(canvas, wide, tall, ink, past, span, since) {
  const now = Date.now(), from = now - span, scale = window.devicePixelRatio || 1, x = t => Math.max(0, Math.min(1, (t - from) / span)) * wide;
  canvas.width = wide * scale; canvas.height = tall * scale;
  const g = canvas.getContext('2d'), box = (colour, begin, until, top, high, least) => { g.fillStyle = colour; g.fillRect(Math.min(x(begin), wide - least), top, Math.max(x(until) - x(begin), least), high); };
  g.scale(scale, scale);
  box(ink.line, from, now, tall / 2, 1, 0);
  const { bars, holes } = course(past, now, since, span / 12);
  for (const b of bars) if (b.ran && b.end >= from) { box(b.a.active ? ink.bar : ink.past, b.start, b.end, 3, tall - 6, 1); if (b.start > from) box(ink.card, b.start, b.start, 3, tall - 6, 1); }
  for (const h of holes) if (h.to > from && (h.open || h.bar.m.kind !== 'handover' || x(h.to) - x(h.from) > 3)) box(ink.bad, h.from, h.to, 3, tall - 6, 2);
  for (const { m } of bars) if (m.at >= from && m.kind === 'failover') {
    const at = Math.max(4, Math.min(x(m.at), wide - 4));
    g.fillStyle = ink.bad; g.beginPath(); g.moveTo(at - 4, tall); g.lineTo(at + 4, tall); g.lineTo(at, tall - 8); g.fill();
  }
}

// picture draws into svg what happened in the last span milliseconds; 0: since the first of the last moves. since is as in course.
function picture(svg, width, past, members, span, since) {
  const now = Date.now(), top = 17, tall = 17, pitch = 21, shown = past.slice(-12);
  if (!span) span = Math.max((now - (shown.length ? new Date(shown[0].start) : now)) * 1.04, 6e4);
  const { bars, holes, list } = course(past, now, since, span / 12);
  const nodes = [...new Set(members.concat(past.filter(a => !a.end || now - new Date(a.end) < span).map(a => a.node)))].sort();
  const from = now - span, left = Math.min(Math.max(...nodes.map(n => n.length), 2) * 7 + 8, width / 4), bottom = top + nodes.length * pitch;
  const x = t => left + Math.max(0, Math.min(1, (t - from) / span)) * (width - left - 1), y = node => top + nodes.indexOf(node) * pitch;
  svg.setAttribute('viewBox', `0 0 ${width} ${bottom + 14}`); svg.setAttribute('height', bottom + 14);
  svg.replaceChildren();
  const step = steps.find(s => s * 1000 / span * (width - left) >= 74) || steps[steps.length - 1], first = new Date(from);
  first.setHours(0, 0, 0, 0);
  for (let t = first.getTime() + Math.ceil((from - first) / step / 1000) * step * 1000; t < now; t += step * 1000) {
    shape(svg, 'line', { x1: x(t), x2: x(t), y1: top - 3, y2: bottom, class: 'grid' });
    if (x(t) < width - 62 && x(t) > left + 20) shape(svg, 'text', { x: x(t), y: bottom + 11, 'text-anchor': 'middle' }, clock(t, step));
  }
  shape(svg, 'text', { x: width, y: bottom + 11, 'text-anchor': 'end' }, 'now');
  const running = past.find(a => a.active), told = [], tried = []; // bars that stand in a hole
  for (const n of nodes) {
    shape(svg, 'line', { x1: left, x2: width, y1: y(n) + tall / 2, y2: y(n) + tall / 2, class: 'lane' });
    const most = Math.max(2, Math.floor((left - 6) / 6.4));
    shape(svg, 'text', { x: 0, y: y(n) + 12.5, class: running && running.node === n ? 'name now' : 'name' }, n.length > most ? n.slice(0, most - 1) + '…' : n);
  }
  for (const { a, ran, start, end, sure, last } of bars) {
    if (end < from) continue;
    const at = x(start), wide = Math.max(x(end) - at, 2), words = ran ? (sure < end ? between(sure - start, end - start) : lasted(end - start)) : 'never ready';
    const bar = shape(svg, 'rect', { x: at, y: y(a.node), width: ran && sure < end ? Math.max(x(sure) - at, 2) : wide, height: tall, rx: 2, class: !ran ? 'tried' : a.active ? 'ran now' : 'ran' },
      `${a.node}, token ${a.token}: ${when(start)}, ` + (ran ? 'for ' + words : words) + (a.reason ? `; ended: ${a.reason}` : ''));
    if (!ran) tried.push(bar);
    if (ran && sure < end) shape(svg, 'rect', { x: x(sure), y: y(a.node), width: Math.max(x(end) - x(sure), 1), height: tall, class: 'perhaps' }, `its last heartbeat was between ${when(sure)} and ${when(end)}`);
    if (ran && !a.active && wide > 6.5 * words.length + 8 && (a.end || !last)) shape(svg, 'text', { x: at + 4, y: y(a.node) + 12.5, class: 'in' }, words); // the row has the active one's age
  }
  // Where nothing ran: over all lanes. A clean switchover's is drawn only when it is wide enough to be seen.
  for (const h of holes) {
    if (h.to <= from || h.bar.m.kind === 'handover' && !h.open && x(h.to) - x(h.from) <= 3) continue;
    shape(svg, 'rect', { x: Math.min(x(h.from), width - 2.5), y: top - 1.5, width: Math.max(x(h.to) - x(h.from), 2.5), height: bottom - top - 1, class: h.kind }, h.words);
    if (h.open) told.push({ at: x(h.from) + 3, left: x(h.from), tone: 'alarm', tries: ['nothing runs' + (h.known ? ' since ' + lasted(now - h.from) : '')], back: true });
  }
  for (const { a, m } of bars) {
    if (m.at < from || m.kind === 'start') continue;
    if (m.from && m.from !== a.node) shape(svg, 'path', { d: `M${x(m.at)} ${y(m.from) + tall / 2}V${y(a.node) + tall / 2}`, class: 'over' });
    if (m.kind === 'open') continue;
    const words = when(m.at) + ': ' + tell(m);
    marks[m.kind](svg, x(m.at), 8, words);
    if (m.fenced) marks.fenced(svg, x(m.at) + 12, 8, words);
    told.push({ at: x(m.at) + (m.fenced ? 20 : 9), left: x(m.at) - 7, tone: m.kind === 'failover' ? 'alarm' : 'soft', tries: [m.short.filter(Boolean).join(', '), m.short[1], m.short[0]] });
  }
  svg.append(...tried);
  // Words stand beside their mark, as many as there is room for.
  for (const w of told) if (w.back && w.at + 6.4 * w.tries[0].length > width) w.at = w.left = Math.max(0, width - 6.4 * w.tries[0].length);
  told.sort((a, b) => a.left - b.left).forEach((w, i) => {
    const free = i + 1 < told.length ? told[i + 1].left : width, fits = w.tries.find(t => t && w.at + 6.4 * t.length <= free);
    const last = w.back && told.slice(0, i + 1).every(o => o === w || !o.end || o.end <= width - 6.4 * w.tries[0].length);
    if (fits) { shape(svg, 'text', { x: w.at, y: 12, class: w.tone }, fits); w.end = w.at + 6.4 * fits.length; }
    else if (last) shape(svg, 'text', { x: width, y: 12, class: w.tone, 'text-anchor': 'end' }, w.tries[0]);
  });
  svg.setAttribute('aria-label', list.length ? 'Activations of the last ' + lasted(span) + '. The newest: ' + tell(list[list.length - 1]) : 'No activation is known.');
}

function legend(box) {
  const key = (words, draw) => {
    const item = document.createElement('span'), svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('viewBox', '0 0 16 14'); svg.setAttribute('class', 'key');
    draw(svg); item.append(svg, words); box.append(item);
  };
  key('active', svg => shape(svg, 'rect', { x: 0, y: 2, width: 16, height: 10, rx: 2, class: 'ran now' }));
  key('was active', svg => shape(svg, 'rect', { x: 0, y: 2, width: 16, height: 10, rx: 2, class: 'ran' }));
  key('switchover', svg => marks.handover(svg, 8, 7));
  key('takeover', svg => marks.failover(svg, 8, 8));
  key('fenced', svg => marks.fenced(svg, 8, 7));
  key('not sure', svg => shape(svg, 'rect', { x: 0, y: 2, width: 16, height: 10, class: 'perhaps' }));
  key('never ready', svg => shape(svg, 'rect', { x: 0.5, y: 2.5, width: 15, height: 9, rx: 2, class: 'tried' }));
  key('nothing ran', svg => shape(svg, 'rect', { x: 3, y: 0, width: 10, height: 14, class: 'gap' }));
}
