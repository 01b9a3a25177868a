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

const doing = { switchover: 'Switching over', pause: 'Pausing', resume: 'Resuming', restart: 'Restarting' };

async function order(c, what) {
  const parts = [c.switchover, c.to, c.pause, c.resume, c.restart], say = (words, tone) => { c.said.className = 'said ' + tone; c.said.textContent = words; };
  const body = what === 'switchover' ? { to: c.to.value } : what === 'pause' ? { reason: 'from the page' } : {};
  for (const p of parts) p.disabled = true;
  say(doing[what] + ' …', 'soft');
  try {
    const got = await post(`services/${encodeURIComponent(c.name)}/${what}`, body), said = await got.json();
    if (got.status === 401) { state.token = ''; sessionStorage.removeItem('token'); $('keysaid').textContent = 'That is not the token any more.'; $('keysaid').className = 'bad'; all(); }
    if (!got.ok) say('▲ ' + said.error, 'bad');
    else if (what === 'switchover') say(`Done: active on ${said.active} after ${lasted(said.took_ms)}.`, 'good');
    else say(said.changed === false ? 'Nothing to do.' : `Done after ${lasted(said.took_ms)}.`, 'good');
  } catch { say('▲ The supervisor did not answer: whether it is done shows above.', 'bad'); }
  for (const p of parts) p.disabled = false;
}

function live(words, tone) { $('live').textContent = words; $('live').className = tone; }

function removed(name) {
  state.services.delete(name); state.past.delete(name); state.down.delete(name);
  const c = cards.get(name);
  if (c) { watcher.unobserve(c.box); c.box.remove(); cards.delete(name); }
}

let source;
function connect() {
  if (source) source.close();
  source = new EventSource(api + 'events');
  const mine = source, on = (kind, take) => source.addEventListener(kind, e => take(JSON.parse(e.data)));
  source.onopen = () => live('● live', 'good');
  source.onerror = () => { live('○ not connected: this is old', 'bad'); if (mine.readyState === 2) setTimeout(() => { if (source === mine) connect(); }, 3000); };
  on('status', got => {
    state.services = new Map(got.services.map(s => [s.service, s]));
    state.nodes = got.nodes || []; state.writable = got.local.writable;
    for (const name of [...cards.keys()]) if (!state.services.has(name)) removed(name);
    $('live').title = 'as ' + got.local.node + ' sees it';
    all();
    for (const c of cards.values()) if (c.seen) remember(c.name, 0); else state.past.delete(c.name);
  });
  on('service', s => {
    const was = state.services.get(s.service);
    if (s.active) state.down.delete(s.service); else if (was && was.active) state.down.set(s.service, Date.now());
    state.services.set(s.service, s); draw(s.service); summary();
    if (!was || was.token !== s.token || was.active !== s.active) { if (cards.get(s.service).seen) remember(s.service, 400, 2500); else state.past.delete(s.service); }
  });
  on('removed', s => { removed(s.service); summary(); });
  on('nodes', n => { state.nodes = n || []; summary(); });
  on('transition', t => note(`${t.service}: ${t.node} ${t.from || 'not there'} → ${t.to || 'gone'}` + (t.why ? ' (' + t.why + ')' : ''), t.to === role.active ? 'good' : ''));
  on('trouble', t => { $('trouble').hidden = !t.error; $('trouble').textContent = '▲ ZooKeeper cannot be read, what is shown is old: ' + t.error; if (!t.error) live('● live', 'good'); });
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
$('span').onchange = $('filter').oninput = all;
let turn;
addEventListener('resize', () => { clearTimeout(turn); turn = setTimeout(all, 100); });
setInterval(() => { if (!document.hidden) all(); }, 5000);
legend($('legend'));
if (sessionStorage.getItem('token')) login(sessionStorage.getItem('token'));
connect();
