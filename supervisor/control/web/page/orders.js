// Orders, for who has the token, and the stream of what happens.

const post = (path, body) => fetch(api + path, { method: 'POST', headers: { Authorization: 'Bearer ' + state.token }, body: body && JSON.stringify(body) });

// login tries a token; it stays in this tab, and only when it is accepted.
async function login(token) {
  state.token = token;
  let words = '';
  try {
    const got = await post('token');
    if (!got.ok) words = got.status === 401 ? 'That is not the token.' : (await got.json()).error;
  } catch { words = 'The supervisor does not answer. Try again.'; }
  if (words) state.token = '';
  if (state.token) sessionStorage.setItem('token', token); else sessionStorage.removeItem('token');
  $('keysaid').textContent = words; $('keysaid').className = 'bad';
  all();
}

const words = { switchover: 'Switch over to', pause: 'Pause', resume: 'Resume', start: 'Start', restart: 'Restart', reload: 'Reload', drain: 'Drain', undrain: 'Undrain' };
const doing = { switchover: 'Switching over', pause: 'Pausing', resume: 'Resuming', start: 'Starting', restart: 'Restarting', reload: 'Reloading', drain: 'Draining', undrain: 'Undraining' };
// What an order does, to those who are asked whether they mean it.
const effect = {
  switchover: 'The program stops where it is active, and starts on the other node once it is dead there.',
  pause: 'Automatic takeovers are off until it is resumed. The program keeps running.',
  resume: 'Automatic takeovers are on again.',
  start: 'A node starts the service that was stopped.',
  restart: 'The program stops, and starts again on the same node.',
  reload: 'The program gets its reload signal, and keeps running.',
  drain: 'Its services go to other nodes, and it is kept out of all services until undrained.',
  undrain: 'It may be active again.',
};

// sure asks before an order is given; null: it is not meant.
function sure(what, question, more) {
  const reasoned = what === 'pause' || what === 'drain';
  put($('asked'), question); put($('effect'), more || effect[what]);
  $('because').hidden = !reasoned; $('reason').value = '';
  put($('yes'), words[what].replace(' to', ''));
  $('ask').returnValue = '';
  $('ask').showModal();
  (reasoned ? $('reason') : $('no')).focus();
  return new Promise(done => { 
    // The news that the question before this one was answered may come only now.
    $('ask').onclose = () => { if (!$('ask').open) done($('ask').returnValue ? { reason: $('reason').value.trim() || 'from the page' } : null); };
  });
}

// give sends an order, and returns what the answer says; its error, if it was not carried out.
async function give(path, body) {
  const got = await post(path, body), said = await got.json();
  if (got.status === 401) { state.token = ''; sessionStorage.removeItem('token'); $('keysaid').textContent = 'That is not the token any more.'; $('keysaid').className = 'bad'; all(); }
  return got.ok ? said : { error: said.error };
}

// order gives one for the service, or the node, of a card.
async function order(c, what) {
  const name = c.node || c.name, to = what === 'switchover' && c.to.value, say = (text, tone) => put(c.said, text, 'said ' + tone);
  const meant = await sure(what, `${words[what].replace(' to', '')} ${name}${what === 'switchover' ? ' to ' + (to || 'another node') : ''}?`);
  if (!meant) return;
  const body = what === 'switchover' ? { to } : what === 'pause' || what === 'drain' ? meant : {}, parts = c.orders.querySelectorAll('button, select');
  for (const p of parts) p.disabled = true;
  say(doing[what] + ' …', 'soft');
  try {
    const said = await give(`${c.node ? 'nodes' : 'services'}/${encodeURIComponent(name)}/${what}`, body);
    if (said.error) say('▲ ' + said.error, 'bad');
    else if (what === 'switchover') say(`Done: active on ${said.active} after ${lasted(said.took_ms)}.`, 'good');
    else if (what === 'drain') say('Done: drained.' + (said.services && said.services.length ? ' It hands over: ' + said.services.map(s => s.service).join(', ') + '.' : ''), 'good');
    else say(said.changed === false ? 'Nothing to do.' : `Done after ${lasted(said.took_ms)}.`, 'good');
  } catch { say('▲ The supervisor did not answer: whether it is done shows above.', 'bad'); }
  for (const p of parts) p.disabled = false;
}

// orderAll gives one for each service that is active on a node, a few at a time.
async function orderAll(c, what) {
  const list = c.active.slice(), say = (text, tone) => put(c.said, text, 'said ' + tone), bad = [];
  const meant = await sure(what, `${words[what].replace(' to', '')} ${count(list.length, 'service', 'services')} that ${list.length === 1 ? 'is' : 'are'} active on ${c.node}?`, `For each of them: ${effect[what]}`);
  if (!meant) return;
  const parts = c.orders.querySelectorAll('button, select'), left = list.slice();
  let done = 0;
  for (const p of parts) p.disabled = true;
  const work = async () => {
    for (let name; (name = left.shift());) {
      try {
        const said = await give(`services/${encodeURIComponent(name)}/${what}`, what === 'pause' ? meant : {});
        if (said.error) bad.push(`${name}: ${said.error}`);
      } catch { bad.push(name + ': the supervisor did not answer'); }
      say(`${doing[what]}: ${++done} of ${list.length} …`, 'soft');
    }
  };
  await Promise.all([1, 2, 3, 4].map(work));
  say(bad.length ? `▲ ${list.length - bad.length} of ${list.length} done. ${bad.join('. ')}` : `Done: ${list.length} of ${list.length}.`, bad.length ? 'bad' : 'good');
  for (const p of parts) p.disabled = false;
}

function live(words, tone) { $('live').textContent = words; $('live').className = tone; }

function removed(name) {
  state.services.delete(name); state.past.delete(name); state.down.delete(name);
  const r = rows.get(name);
  if (r) { watcher.unobserve(r.box); r.box.remove(); rows.delete(name); }
}

// changed shows what is new of a service, and notes it unless nothing was known of any.
function changed(was, s, known) {
  if (JSON.stringify(was) === JSON.stringify(s)) return;
  if (s.active) state.down.delete(s.service); else if (was && was.active) state.down.set(s.service, Date.now());
  draw(s.service);
  if (!was || was.token !== s.token || was.active !== s.active) { if (rows.get(s.service).seen) remember(s.service, 400, 2500); else state.past.delete(s.service); }
  const before = new Map((was ? was.members : []).map(m => [m.node, m.role]));
  const moved = (m, from) => note(`${s.service}: ${m.node} ${from || 'not there'} → ${m.role || 'gone'}` + (m.why ? ' (' + m.why + ')' : ''), m.role === role.active ? 'good' : '');
  for (const m of s.members) { if (known && before.get(m.node) !== m.role) moved(m, before.get(m.node)); before.delete(m.node); }
  if (known) for (const [node, from] of before) moved({ node }, from);
}

// Many services may change at once: what is about all of them follows once.
let soon;
function later() { if (!soon) soon = setTimeout(() => { soon = 0; summary(); }, 20); }

let source;
function connect() {
  if (source) source.close();
  source = new EventSource(api + 'events');
  const mine = source, on = (kind, take) => source.addEventListener(kind, e => take(JSON.parse(e.data)));
  source.onopen = () => live('● live', 'good');
  source.onerror = () => { live('○ not connected: this is old', 'bad'); if (mine.readyState === 2) setTimeout(() => { if (source === mine) connect(); }, 3000); };
  on('status', got => {
    const crowd = few(), was = state.services;
    state.services = new Map(got.services.map(s => [s.service, s]));
    state.nodes = got.nodes || []; state.drained = got.drained || []; state.gone = got.gone || []; state.writable = got.local.writable;
    state.unread = false; $('trouble').hidden = true;
    live('● live', 'good');
    $('live').title = 'as ' + got.local.node + ' sees it';
    for (const name of [...rows.keys()]) if (!state.services.has(name)) removed(name);
    for (const s of got.services) changed(was.get(s.service), s, was.size > 0);
    if (crowd === few()) later(); else all();
  });
  on('trouble', t => {
    state.unread = true;
    $('trouble').hidden = false; $('trouble').textContent = '▲ ZooKeeper cannot be read, what is shown is old: ' + t.error;
    later();
  });
}

// A browser has few connections to a server: a tab that nobody looks at gives its own back after a while.
let resting;
document.addEventListener('visibilitychange', () => {
  clearTimeout(resting);
  if (document.hidden) resting = setTimeout(() => { source.close(); live('○ resting', 'soft'); }, 60000);
  else if (source.readyState === 2) connect();
});

$('key').onsubmit = e => { e.preventDefault(); const t = $('token').value.trim(); $('token').value = ''; if (t) login(t); };
$('forget').onclick = () => { state.token = ''; sessionStorage.removeItem('token'); all(); };
$('span').onchange = $('filter').oninput = () => { for (const r of rows.values()) r.drawn = false; all(); };
for (const [id, tone] of [['onlybad', 'bad'], ['onlywarn', 'warn'], ['onlyalone', 'alone']]) $(id).onclick = () => { state.only = state.only === tone ? '' : tone; all(); };
$('everything').onclick = () => { state.only = ''; $('filter').value = ''; all(); $('filter').focus(); };
$('yes').onclick = () => $('ask').close('yes');
$('no').onclick = () => $('ask').close('');
$('reason').onkeydown = e => { if (e.key === 'Enter') $('ask').close('yes'); };
// again draws what depends on the window's width, or on its colours.
function again() { state.wide = 0; state.ink = null; for (const r of rows.values()) r.drawn = false; all(); }
let turn;
addEventListener('resize', () => { clearTimeout(turn); turn = setTimeout(again, 100); });
matchMedia('(prefers-color-scheme: dark)').onchange = again;
setInterval(() => { if (!document.hidden) all(); }, 5000);
state.words = [];
legend($('legend'));
if (sessionStorage.getItem('token')) login(sessionStorage.getItem('token'));
connect();
