const $ = id => document.getElementById(id);
// A browser that comes by a link with a password in it (http://me:TOKEN@node/) may not fetch addresses relative to that link.
const api = location.origin + location.pathname.replace(/[^/]*$/, '') + 'api/v1/';
const state = { services: new Map(), nodes: [], past: new Map(), down: new Map(), writable: false, token: '' };
const cards = new Map();
const { role, health } = wire; // the words that Go decides by, too

function make(tag, words, name) { const e = document.createElement(tag); if (words !== undefined) e.textContent = words; if (name) e.className = name; return e; }
const ago = t => t ? lasted(Date.now() - new Date(t)) : '';

function story(s) {
  if (s.paused && !s.active) return ['bad', 'nobody is active, and nobody will be: ' + s.order];
  if (s.fencing) return ['bad', s.fencing.by ? s.fencing.by + ' fences ' + (s.fencing.node || 'a former active that nobody can name') : 'nobody is active: the program of ' + (s.fencing.node || 'nobody knows whom') + ' may be running'];
  if (!s.active) return ['bad', s.lock ? s.lock + ' takes over' : 'nobody is active'];
  const m = s.members.find(m => m.node === s.active);
  if (m && wire.ill.includes(m.health)) return ['bad', 'active on ' + s.active + ', ' + m.health];
  if (s.paused) return ['warn', 'active on ' + s.active + ', ' + s.order];
  if (m && m.role === role.stopping) return ['warn', 'stopping on ' + s.active];
  if (m && m.health === health.starting) return ['warn', 'starting on ' + s.active];
  return ['good', 'active on ' + s.active];
}

// Only what can be seen is drawn, and its history asked for.
const watcher = new IntersectionObserver(list => {
  for (const e of list) {
    const c = cards.get(e.target.dataset.service);
    if (!c) continue;
    c.seen = e.isIntersecting;
    if (c.seen && !state.past.has(c.name)) remember(c.name, 0); else if (c.seen) past(c.name);
  }
}, { rootMargin: '200px' });

function card(name) {
  let c = cards.get(name);
  if (c) return c;
  c = { name, box: make('article'), title: make('h2', name), word: make('span', '', 'word'), age: make('span', '', 'soft'), table: make('table'), pic: document.createElementNS('http://www.w3.org/2000/svg', 'svg'),
    more: make('details'), sum: make('summary', '', 'soft'), list: make('ol'), orders: make('div', undefined, 'orders'), to: make('select', undefined, 'target'), said: make('p', '', 'said') };
  const button = (what, words, sure) => {
    const b = make('button', words, what);
    b.onclick = () => sure ? twice(b, words, sure(), () => order(c, what)) : order(c, what);
    return c[what] = b;
  };
  const top = make('div', undefined, 'top'), over = make('span', undefined, 'to');
  top.append(c.title, c.word, c.age);
  c.to.setAttribute('aria-label', 'Node to switch over to');
  over.append(button('switchover', 'Switch over to', () => c.to.value || 'another'), c.to);
  c.said.setAttribute('role', 'status');
  c.orders.append(over, button('pause', 'Pause'), button('resume', 'Resume'), button('restart', 'Restart', () => ''), c.said);
  c.pic.setAttribute('role', 'img');
  c.more.append(c.sum, c.list);
  c.box.append(top, c.table, c.orders, c.pic, c.more);
  c.box.dataset.service = name;
  cards.set(name, c);
  const after = [...cards.keys()].filter(n => n > name).sort()[0];
  $('services').insertBefore(c.box, after ? cards.get(after).box : null);
  watcher.observe(c.box);
  return c;
}

// twice has what interrupts a service be said twice.
function twice(button, words, what, act) {
  const back = () => { button.classList.remove('sure'); button.textContent = words; };
  if (button.classList.contains('sure')) { back(); clearTimeout(button.timer); act(); return; }
  button.classList.add('sure'); button.textContent = words.replace(' to', '') + (what ? ' to ' + what : '') + '? Press again';
  button.timer = setTimeout(back, 5000);
}

function draw(name) {
  const s = state.services.get(name), c = card(name), [tone, text] = story(s);
  c.box.className = tone === 'bad' ? 'ill' : tone === 'warn' ? 'held' : '';
  c.box.hidden = !name.includes($('filter').value);
  c.word.className = 'word ' + tone; c.word.textContent = (tone === 'good' ? '● ' : tone === 'warn' ? '‖ ' : '▲ ') + text;
  c.age.textContent = s.active ? 'for ' + ago(s.since) : '';
  c.table.replaceChildren(...s.members.map(m => {
    const row = make('tr', undefined, m.role === role.active ? 'active' : '');
    row.append(make('td', m.node), make('td', (wire.signs[m.role] || '?') + ' ' + m.role), make('td', ago(m.since), 'soft'),
      make('td', [m.health === health.ok || m.health === health.unknown ? '' : m.health, s.paused && m.why === s.order ? '' : m.why].filter(Boolean).join(': '), wire.ill.includes(m.health) ? 'bad' : 'soft'));
    return row;
  }));
  c.orders.hidden = !(state.writable && state.token);
  c.pause.hidden = s.paused; c.resume.hidden = !s.paused;
  const targets = s.members.filter(m => m.node !== s.active).map(m => [m.node, m.node + (m.role !== role.standby ? ` (${m.role})` : m.health !== health.ok ? ` (${m.health})` : '')]);
  const listed = JSON.stringify(targets), chosen = c.to.value;
  if (c.listed !== listed) {
    c.to.replaceChildren(...[['', 'the first node that can'], ...targets].map(([value, words]) => { const o = make('option', words); o.value = value; return o; }));
    c.to.value = targets.some(t => t[0] === chosen) ? chosen : '';
    c.listed = listed;
  }
  if (c.seen) past(name);
}

// past shows what is known of earlier activations, and what is active by now.
function past(name) {
  const c = cards.get(name), s = state.services.get(name);
  if (!c || !s || c.box.hidden) return;
  const list = (state.past.get(name) || []).slice().sort((a, b) => new Date(a.start) - new Date(b.start) || a.token - b.token);
  for (const a of list) if (a.active && a.token !== s.token) a.active = false;
  if (s.active && s.since && !list.some(a => a.token === s.token)) list.push({ node: s.active, token: s.token, start: s.since, active: true, reason: '', fenced: '' });
  const all = moves(list), count = kind => all.filter(m => m.kind === kind).length, words = (n, one, many) => n + ' ' + (n === 1 ? one : many);
  picture(c.pic, Math.max(c.pic.clientWidth || c.box.clientWidth - 28, 200), list, s.members.map(m => m.node), +$('span').value * 1000, state.down.get(name));
  c.sum.textContent = `The last moves: ${words(count('failover'), 'failover', 'failovers')}, ${words(count('handover'), 'hand-over', 'hand-overs')}`;
  c.list.replaceChildren(...all.slice(-20).reverse().map(m => make('li', when(m.at) + '  ' + tell(m), m.kind === 'failover' ? 'bad' : '')));
}

function summary() {
  const all = [...state.services.values()], bad = all.filter(s => story(s)[0] === 'bad').length;
  $('sum').textContent = `${all.length} service${all.length === 1 ? '' : 's'}, ${state.nodes.length} supervisor${state.nodes.length === 1 ? '' : 's'}` + (bad ? `, ▲ ${bad} in trouble` : '');
  document.title = (bad ? `▲ ${bad} – ` : '') + 'Understudy';
  $('filter').hidden = all.length < 6 && !$('filter').value;
  $('key').hidden = !state.writable || !!state.token; $('held').hidden = !state.writable || !state.token;
  $('nodes').replaceChildren(...state.nodes.map(n => {
    const row = make('tr'), more = make('td'), warned = n.warnings || [];
    if (n.config_fault) more.append(make('div', 'keeps its former config: ' + n.config_fault, 'bad'));
    if (warned.length) more.append(make('div', warned.length === 1 ? '▲ ' + warned[0] : `▲ ${warned.length} warnings: understudy status shows them`, 'soft'));
    more.title = warned.join('\n');
    row.append(make('td', n.node), make('td', n.version), make('td', ago(n.since), 'soft'), more);
    return row;
  }));
}

function all() { for (const name of state.services.keys()) draw(name); summary(); }

// The history has an activation, and the end of the former one, a little later than the status.
const due = new Map();
function remember(name, ...waits) {
  for (const timer of due.get(name) || []) clearTimeout(timer);
  due.set(name, waits.map(wait => setTimeout(async () => {
    try {
      const got = await fetch(api + 'history?number=0&service=' + encodeURIComponent(name));
      if (!got.ok) throw new Error(got.status);
      state.past.set(name, (await got.json()).activations);
      past(name);
    } catch { if (wait === waits.at(-1) && state.services.has(name)) remember(name, 3000); }
  }, wait)));
}

function note(words, tone) {
  const list = $('log');
  if (list.firstElementChild && !list.firstElementChild.dataset.at) list.replaceChildren();
  const item = make('li', new Date().toLocaleTimeString(undefined, { hourCycle: 'h23' }) + '  ' + words, tone || '');
  item.dataset.at = Date.now();
  list.prepend(item);
  while (list.children.length > 50) list.lastElementChild.remove();
}
