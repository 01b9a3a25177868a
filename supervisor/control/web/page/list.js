const $ = id => document.getElementById(id);
// A browser that comes by a link with a password in it (http://me:TOKEN@node/) may not fetch addresses relative to that link.
const api = location.origin + location.pathname.replace(/[^/]*$/, '') + 'api/v1/';
const state = { services: new Map(), nodes: [], drained: [], gone: [], past: new Map(), down: new Map(), writable: false, token: '', unread: false, only: '' };
const rows = new Map();
const { role, health } = wire; // the words that Go decides by, too
const few = () => state.services.size < 6; // they are shown open, and nothing has to be found
const seconds = () => +$('span').value;

function make(tag, words, name) { const e = document.createElement(tag); if (words !== undefined) e.textContent = words; if (name) e.className = name; return e; }
// put changes a text only if it is another: what stays is neither laid out again nor taken from under a pointer.
function put(e, words, name) { if (e.textContent !== words) e.textContent = words; if (name !== undefined && e.className !== name) e.className = name; }
// fill has a parent show a list, and keeps the elements that are there.
function fill(parent, list, create, show) {
  while (parent.children.length > list.length) parent.lastElementChild.remove();
  list.forEach((v, i) => show(parent.children[i] || parent.appendChild(create()), v, i));
}
const ago = t => t ? lasted(Date.now() - new Date(t)) : '';
const count = (n, one, many) => n + ' ' + (n === 1 ? one : many);
const ill = m => wire.ill.includes(m.health);
const tones = ['bad', 'warn', 'good'], signs = { bad: '▲ ', warn: '‖ ', good: '● ' };

// story is how a service stands: 'bad' is what `understudy status --failed` shows, or what has no active node.
function story(s) {
  const where = s.active ? 'active on ' + s.active : '', m = s.members.find(m => m.node === s.active);
  if (s.stopped && !s.active) return ['warn', s.order];
  if (s.paused && !s.active) return ['bad', 'DOWN, automatic takeovers are off: ' + s.order];
  if (s.fencing) return ['bad', s.fencing.by ? s.fencing.by + ' takes over from ' + (s.fencing.node || 'an unknown node') : 'DOWN, the program may still run on ' + (s.fencing.node || 'an unknown node')];
  if (s.ran_once) return [s.faults.length ? 'bad' : 'good', s.ran_once.node + ' ran it once: ' + (s.ran_once.exit || 'it ended')];
  if (!where) return ['bad', s.lock ? s.lock + ' takes over' : 'no node is active'];
  const tone = m && ill(m) || (s.faults || []).some(f => f.level === 'fault') ? 'bad' : '';
  if (s.paused) return [tone || 'warn', where + ', ' + s.order];
  if (m && m.role === role.stopping) return [tone || 'warn', 'stopping on ' + s.active];
  if (m && m.health === health.starting) return [tone || 'warn', 'starting on ' + s.active];
  return [tone || 'good', where];
}

// alone tells whether no node could take the service from the active one now.
const alone = s => !!s.active && !s.paused && !s.members.some(m => m.node !== s.active && m.role === role.standby && m.health === health.ok && !m.drained);

// matches tells whether one node's part of a service has all the words.
function matches(s, tone, words) {
  const all = [s.service, s.paused ? wire.paused : '', s.active || s.ran_once ? '' : 'down', tone === 'bad' ? 'trouble' : ''].join(' ');
  const parts = s.members.map(m => [m.node, m.host, m.role, m.health, m.drained ? 'drained' : ''].join(' '));
  if (s.fencing && s.fencing.node) parts.push(s.fencing.node);
  return (parts.length ? parts : ['']).some(part => { const text = (all + ' ' + part).toLowerCase(); return words.every(w => text.includes(w)); });
}

// The picture of what is near the screen follows the history; others show what the status alone says, so that nothing is blank.
const watcher = new IntersectionObserver(list => {
  for (const e of list) {
    const r = rows.get(e.target.dataset.service);
    if (!r) continue;
    r.seen = e.isIntersecting;
    if (r.seen && !state.past.has(r.name)) remember(r.name, 0); else if (r.seen) past(r.name);
  }
}, { rootMargin: '1000px' });

function row(name) {
  let r = rows.get(name);
  if (r) return r;
  r = { name, box: make('article'), title: make('button', name, 'name'), word: make('span'), age: make('span', '', 'age'), strip: make('canvas') };
  r.box.dataset.service = name;
  r.strip.setAttribute('aria-hidden', 'true');
  r.box.append(r.title, r.word, r.age, r.strip);
  r.box.onclick = e => { if (!(r.body && r.body.contains(e.target)) && !selecting(e)) { r.open = !isOpen(r); draw(name); } };
  rows.set(name, r);
  $('services').append(r.box);
  watcher.observe(r.box);
  return r;
}

// cell is one that only rows have in which it says something: 200 rows stay light.
function cell(r, kind, words, tone) {
  if (!words) { if (r[kind]) { r[kind].remove(); r[kind] = null; } return; }
  if (!r[kind]) r.box.insertBefore(r[kind] = make('span'), r.strip);
  put(r[kind], words, kind + ' ' + tone);
}

// selecting tells whether a click ends the selection of a text, and means nothing else.
const selecting = e => e.detail > 0 && getSelection().type === 'Range' && e.currentTarget.contains(getSelection().anchorNode);

// aiming tells whether a pointer moves over the services. Meanwhile none of them goes, comes or changes its place; the next look puts that right.
let aimed = 0, placed = 0;
const aiming = () => Date.now() - aimed < 3000;
$('services').onpointermove = () => { aimed = Date.now(); };
$('services').onpointerleave = () => { aimed = 0; all(); };

const isOpen = r => r.open === undefined ? few() : r.open;

function draw(name) {
  const s = state.services.get(name), r = row(name), [tone, text] = story(s), open = isOpen(r), active = s.members.find(m => m.node === s.active);
  r.rank = tone === 'bad' && !s.active ? -1 : tones.indexOf(tone);
  const look = (open ? 'open ' : '') + (tone === 'bad' ? 'ill' : tone === 'warn' ? 'held' : 'well');
  if (r.box.className !== look) r.box.className = look;
  const asked = [state.only, ...state.words].join(' ');
  if (!aiming() || r.asked !== asked) r.box.hidden = !!state.only && !(state.only === 'alone' ? alone(s) : tone === state.only) || !matches(s, tone, state.words);
  r.asked = asked;
  r.title.setAttribute('aria-expanded', open);
  const brief = open && s.paused ? text.replace(s.order, s.stopped ? 'stopped' : wire.paused) : text; // the card has the reason
  put(r.word, signs[tone] + brief, 'word ' + (tone === 'bad' && active && !ill(active) ? 'aside' : tone)); // it runs as it should
  put(r.age, s.active ? ago(s.since) : '');
  const restarts = s.members.reduce((n, m) => n + (m.restarts || 0), 0);
  cell(r, 'restarts', restarts ? '↻ ' + restarts : '', '');
  const others = s.members.filter(m => m !== active && ill(m)), bad = active && ill(active) || others.some(m => m.health !== health.unfit);
  const words = [active && active.health !== health.ok ? active.health : '', ...others.map(m => m.node + ' ' + m.health), alone(s) ? 'no standby' : ''].filter(Boolean).join(', ');
  cell(r, 'health', words || (active ? '' : '–'), bad ? 'bad' : alone(s) ? 'warn' : 'soft'); // 'ok' is the style sheet's
  if (open) body(r, s); else if (r.body) r.body.hidden = true;
  if (r.seen || !r.drawn) past(name);
}

// arrange puts trouble first, what is down before all, and says how many are shown.
function arrange() {
  const list = [...rows.values()].sort((a, b) => a.rank - b.rank || a.name.localeCompare(b.name, 'en', { numeric: true }));
  let at = $('services').firstElementChild;
  if (!aiming() || list.length !== placed) for (const r of list) { // as few are moved as can be: one that is moved loses the focus
    if (at && at !== r.box && at.nextElementSibling === r.box) { $('services').append(at); at = r.box; }
    if (at === r.box) at = at.nextElementSibling; else $('services').insertBefore(r.box, at);
  }
  placed = list.length;
  const shown = list.filter(r => !r.box.hidden).length, wanted = $('filter').value.trim();
  $('cols').hidden = few() || !shown;
  put($('shown'), shown < list.length ? `${shown} of ${list.length} shown` : '');
  $('none').hidden = shown > 0 || !list.length;
  put($('nonewords'), (state.only ? `No service that is ${{ bad: 'in trouble', warn: 'paused or moving', alone: 'without a standby' }[state.only]}` : 'No service') + (wanted ? ` matches "${wanted}": neither by its name, nor by a node, role or health.` : '.'));
}

function past(name) {
  const r = rows.get(name), s = state.services.get(name);
  if (!r || !s || r.box.hidden) return;
  const list = (state.past.get(name) || []).slice().sort((a, b) => new Date(a.start) - new Date(b.start) || a.token - b.token);
  for (const a of list) if (a.active && a.token !== s.token) a.active = false;
  if (s.active && s.since && !list.some(a => a.token === s.token)) list.push({ node: s.active, token: s.token, start: s.since, active: true, reason: '', fenced: '' });
  if (isOpen(r)) { tale(r, s, list); return; }
  if (!state.wide) state.wide = r.strip.clientWidth;
  if (state.wide) { strip(r.strip, state.wide, 18, ink(), list, (seconds() || 21600) * 1000, state.down.get(name)); r.drawn = true; }
}

// ink are the colours that the style sheet has just now.
function ink() {
  if (!state.ink) {
    const style = getComputedStyle(document.documentElement);
    state.ink = Object.fromEntries(['line', 'bar', 'past', 'bad', 'card'].map(n => [n, style.getPropertyValue('--' + n).trim()]));
  }
  return state.ink;
}

function summary() {
  const tally = { bad: 0, warn: 0, good: 0, alone: 0 };
  for (const s of state.services.values()) { tally[story(s)[0]]++; if (alone(s)) tally.alone++; }
  const { bad, warn } = tally;
  put($('sum'), `${count(state.services.size, 'service', 'services')}, ${count(state.nodes.length, 'supervisor', 'supervisors')}` + (state.gone.length ? `, ▲ ${state.gone.length} gone` : '') + (bad ? `, ▲ ${bad} in trouble` : ''));
  document.title = (bad ? `▲ ${bad} – ` : '') + 'Understudy';
  if (!(tally[state.only] || !state.only)) { state.only = ''; all(); return; } // nothing of it is left
  for (const [id, tone, words] of [['onlybad', 'bad', `▲ ${bad} in trouble`], ['onlywarn', 'warn', `‖ ${warn} paused or moving`], ['onlyalone', 'alone', `▲ ${tally.alone} without a standby`]]) {
    $(id).hidden = !tally[tone] || few() && !state.only;
    $(id).setAttribute('aria-pressed', state.only === tone);
    put($(id), words);
  }
  $('filter').hidden = few() && !$('filter').value;
  put($('period'), 'Last ' + ($('span').selectedIndex ? $('span').selectedOptions[0].text : '6 hours'));
  $('key').hidden = !state.writable || !!state.token; $('held').hidden = !state.writable || !state.token;
  supervisors();
  arrange();
}

function all() {
  state.words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const name of state.services.keys()) draw(name);
  summary();
}

// The history has an activation, and the end of the previous one, a little later than the status.
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
