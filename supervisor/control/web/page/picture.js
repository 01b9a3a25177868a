// The picture of a service: a lane for each node, a bar for each activation, and how it went from one to the next.

// word is a reason without what more there is to say, as Go's Reason.Word.
const word = reason => reason.split(';')[0];

// moves tells of each activation what brought it about. past is sorted by time.
function moves(past) {
  return past.map((a, i) => {
    const before = past[i - 1], m = { at: +new Date(a.start), to: a.node, gap: a.gap_ms, kind: 'start', words: '', fenced: '', fencing: a.fence_ms || 0 };
    if (a.fenced && a.fenced !== wire.noBreadcrumb) m.fenced = a.fenced;
    if (!before && !m.fenced) return m;
    const how = before ? word(before.reason) : '';
    m.from = before ? before.node : '';
    m.kind = m.fenced ? 'failover' : wire.planned.includes(how) ? 'handover' : how ? 'failover' : 'open';
    m.words = m.fenced ? 'fenced by ' + m.fenced : how;
    m.short = [m.fenced || m.words, m.gap != null ? lasted(m.gap + m.fencing) : m.fencing ? '> ' + lasted(m.fencing) : ''];
    return m;
  });
}

function tell(m) {
  const kinds = { start: '● first start on ', handover: '○ hand-over ', failover: '▲ failover ', open: '● taken over ' };
  return kinds[m.kind] + (m.from ? m.from + ' → ' : '') + m.to + (m.kind === 'start' ? '' : (m.words ? ': ' + m.words : '') +
    (m.gap != null ? ', nothing ran for ' + lasted(m.gap + m.fencing) : m.fencing ? ', nothing ran for ' + lasted(m.fencing) + ' of fencing, and before' : ''));
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

// picture draws into svg what happened in the last span milliseconds; 0: since the first of the last moves. down is since when
// nobody is known to be active, for what ended without a word.
function picture(svg, width, past, members, span, down) {
  const now = Date.now(), top = 17, tall = 17, pitch = 21, list = moves(past), shown = past.slice(-12);
  if (!span) span = Math.max((now - (shown.length ? new Date(shown[0].start) : now)) * 1.04, 6e4);
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
  const running = past.find(a => a.active), told = [];
  for (const n of nodes) {
    shape(svg, 'line', { x1: left, x2: width, y1: y(n) + tall / 2, y2: y(n) + tall / 2, class: 'lane' });
    const most = Math.max(2, Math.floor((left - 6) / 6.4));
    shape(svg, 'text', { x: 0, y: y(n) + 12.5, class: running && running.node === n ? 'name now' : 'name' }, n.length > most ? n.slice(0, most - 1) + '…' : n);
  }
  const gap = (since, until, words) => shape(svg, 'rect', { x: x(since), y: top - 1.5, width: Math.max(x(until) - x(since), 2.5), height: bottom - top - 1, class: 'gap' }, words);
  past.forEach((a, i) => {
    const next = past[i + 1], m = list[i], start = m.at + m.fencing, last = !next && !a.active;
    const end = a.end ? +new Date(a.end) : a.active ? now : next ? +new Date(next.start) : down || Math.max(start, now - span / 12);
    if (end >= from) {
      const at = x(start), wide = Math.max(x(end) - at, 2), words = lasted(end - start);
      shape(svg, 'rect', { x: at, y: y(a.node), width: wide, height: tall, rx: 2, class: a.active ? 'ran now' : 'ran' },
        `${a.node}, token ${a.token}: ${when(start)}, for ${words}` + (a.reason ? `; ended: ${a.reason}` : ''));
      if (wide > 6.5 * words.length + 8 && (a.end || !last)) shape(svg, 'text', { x: at + 4, y: y(a.node) + 12.5, class: a.active ? 'in now' : 'in' }, words);
    }
    // Where nothing ran: over all lanes. A clean hand-over's is drawn only when it is wide enough to be seen.
    if (m.fencing && start > from) gap(m.at, start, `${a.node} made sure for ${lasted(m.fencing)} that nothing else runs`);
    if (next && next.gap_ms > 0 && list[i + 1].at > from && (list[i + 1].kind !== 'handover' || x(list[i + 1].at) - x(end) > 3)) gap(end, list[i + 1].at, `nothing ran for ${lasted(next.gap_ms)}`);
    if (last) {
      gap(end, now, 'nothing runs');
      told.push({ at: x(end) + 3, left: x(end), tone: 'alarm', tries: ['nothing runs' + (a.end || down ? ' since ' + lasted(now - end) : '')], back: true });
    }
    if (m.at < from || m.kind === 'start') return;
    if (m.from && m.from !== a.node) shape(svg, 'path', { d: `M${x(m.at)} ${y(m.from) + tall / 2}V${y(a.node) + tall / 2}`, class: 'over' });
    if (m.kind === 'open') return;
    const words = when(m.at) + ': ' + tell(m);
    marks[m.kind](svg, x(m.at), 8, words);
    if (m.fenced) marks.fenced(svg, x(m.at) + 12, 8, words);
    told.push({ at: x(m.at) + (m.fenced ? 20 : 9), left: x(m.at) - 7, tone: m.kind === 'failover' ? 'alarm' : 'soft', tries: [m.short.filter(Boolean).join(', '), m.short[1], m.short[0]] });
  });
  // Words stand beside their mark, as many as there is room for.
  told.sort((a, b) => a.left - b.left).forEach((w, i) => {
    const free = i + 1 < told.length ? told[i + 1].left : width, fits = w.tries.find(t => t && w.at + 6.4 * t.length <= free);
    if (fits) shape(svg, 'text', { x: w.at, y: 12, class: w.tone }, fits);
    else if (w.back) shape(svg, 'text', { x: width, y: 12, class: w.tone, 'text-anchor': 'end' }, w.tries[0]);
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
  key('hand-over', svg => marks.handover(svg, 8, 7));
  key('failover', svg => marks.failover(svg, 8, 8));
  key('fenced', svg => marks.fenced(svg, 8, 7));
  key('nothing ran', svg => shape(svg, 'rect', { x: 3, y: 0, width: 10, height: 14, class: 'gap' }));
}
