// The card of a service: what is wrong and the command for it, its nodes, orders, the picture, the history.

function body(r, s) {
  if (!r.body) card(r);
  r.body.hidden = false;
  const faults = s.faults || [], bare = text => text.replace(/^(the program ended|unhealthy): /, ''), told = (m, text) => faults.some(f => f.node === m.node && f.what.includes(bare(text)));
  fill(r.faults, faults, advice, (item, f) => {
    put(item.firstChild, (f.what + ' ' + f.hint).trim(), f.level === 'fault' ? 'bad' : '');
    item.lastChild.hidden = !f.do;
    if (item.lastChild.title !== copied) put(item.lastChild, f.do);
  });
  fill(r.table, s.members, () => { const tr = make('tr'); tr.append(...[0, 1, 2, 3, 4].map(() => make('td'))); return tr; }, (tr, m) => {
    const [node, what, since, runs, why] = tr.children, now = m.node === s.active && m.role === role.active; // the row has its age
    tr.className = m.role === role.active ? 'active' : '';
    put(node, m.node); node.title = m.host || '';
    put(what, (wire.signs[m.role] || '?') + ' ' + m.role);
    put(since, now || told(m, ' ago') ? '' : ago(m.since), 'soft');
    const exit = m.last_exit && !told(m, m.last_exit) ? `last exit${m.last_exit_at ? ' ' + ago(m.last_exit_at) + ' ago' : ''}: ${m.last_exit}` : '';
    put(runs, [m.restarts && !told(m, 'restarted') ? count(m.restarts, 'restart', 'restarts') : '', exit].filter(Boolean).join(', '), 'soft');
    const words = s.paused && m.why === s.order || m.why && told(m, m.why) ? '' : m.why;
    put(why, [m.health === health.ok || m.health === health.unknown || m.health === m.role ? '' : m.health, words].filter(Boolean).join(': '), ill(m) ? 'bad' : 'soft');
  });
  const files = (s.config_files || []).map(group => group.join(' ')).join(' / ');
  put(r.facts, [s.active ? `supervisor: pid ${s.pid} on host ${s.host || s.active}` : '', s.token ? `token ${s.token}` : '', files && 'its nodes run different config files: ' + files,
    s.failsafe ? 'without ZooKeeper it keeps running while these nodes agree: ' + s.failsafe.join(', ') : ''].filter(Boolean).join(' · '));
  fill(r.copies, s.copies || [], () => make('li'), (item, c) => put(item, `${c.node}: ${c.words}`, c.why || c.toward || c.sees_primary && !c.sees_primary.well ? 'bad' : 'soft'));
  r.copies.hidden = !s.copies;
  r.orders.hidden = !(state.writable && state.token);
  r.pause.hidden = s.paused; r.resume.hidden = !s.paused || s.stopped; r.start.hidden = !s.stopped;
  const targets = s.members.filter(m => m.node !== s.active).map(m => [m.node, m.node + (m.drained ? ' (drained)' : m.role !== role.standby ? ` (${m.role})` : m.health !== health.ok ? ` (${m.health})` : '')]);
  const listed = JSON.stringify(targets), chosen = r.to.value;
  if (r.listed !== listed) {
    r.to.replaceChildren(...[['', 'the first node that can'], ...targets].map(([value, words]) => { const o = make('option', words); o.value = value; return o; }));
    r.to.value = targets.some(t => t[0] === chosen) ? chosen : '';
    r.listed = listed;
  }
  past(r.name);
}

function card(r) {
  Object.assign(r, { body: make('div', undefined, 'body'), table: make('table'), faults: make('ul', undefined, 'faults'), copies: make('ul', undefined, 'copies'), facts: make('p', '', 'facts soft'), pic: document.createElementNS('http://www.w3.org/2000/svg', 'svg'),
    more: make('details'), sum: make('summary', '', 'soft'), list: make('ol'), orders: make('div', undefined, 'orders'), to: make('select', undefined, 'target'), said: make('p', '', 'said') });
  const button = what => { const b = make('button', words[what], what); b.onclick = () => order(r, what); return r[what] = b; };
  const over = make('span', undefined, 'to');
  r.to.setAttribute('aria-label', 'Node to switch over to');
  over.append(button('switchover'), r.to);
  r.said.setAttribute('role', 'status');
  r.orders.append(over, button('pause'), button('resume'), button('start'), button('restart'), button('reload'), r.said);
  r.pic.setAttribute('role', 'img');
  r.more.append(r.sum, r.list);
  r.body.append(r.faults, r.table, r.copies, r.facts, r.orders, r.pic, r.more);
  r.box.append(r.body);
}

const copied = 'It is copied.';

// advice is what is wrong, and the command for it, which a click copies.
function advice() {
  const item = make('li'), code = make('button', '', 'copy');
  code.title = 'Copy this command';
  code.onclick = () => copy(code);
  item.append(make('span'), ' ', code);
  return item;
}

async function copy(code) {
  const text = code.textContent;
  let done = true;
  try { await navigator.clipboard.writeText(text); } catch { // a page that comes without TLS has no clipboard
    const area = make('textarea', text);
    code.after(area); area.select();
    done = document.execCommand('copy');
    area.remove(); code.focus();
  }
  code.title = copied;
  code.textContent = done ? text + '  ✓ copied' : text + '  could not be copied';
  setTimeout(() => { code.textContent = text; code.title = 'Copy this command'; }, 1500);
}

// tale shows what is known of earlier activations, and what is active by now.
function tale(r, s, list) {
  const all = moves(list), number = kind => all.filter(m => m.kind === kind).length;
  picture(r.pic, Math.max(r.pic.clientWidth || r.box.clientWidth - 28, 200), list, s.members.map(m => m.node), seconds() * 1000, state.down.get(r.name));
  put(r.sum, `The last moves: ${count(number('failover'), 'takeover', 'takeovers')}, ${count(number('handover'), 'switchover', 'switchovers')}`);
  fill(r.list, all.slice(-20).reverse(), () => make('li'), (item, m) => put(item, when(m.at) + '  ' + tell(m), m.kind === 'failover' ? 'bad' : ''));
}
