// The supervisors: one row each, and a card for what there is to say and to order of one.

const opened = new Map(); // the cards that are open, by node

// known are all nodes: connected, gone, drained, or named by a service.
function known() {
  const all = new Map(), of = name => { if (!all.has(name)) all.set(name, { node: name, active: [], member: 0 }); return all.get(name); };
  for (const n of state.nodes) of(n.node).up = n;
  for (const g of state.gone) of(g.node).gone = g;
  for (const d of state.drained) of(d.node).drained = d;
  for (const s of state.services.values()) {
    for (const m of s.members) of(m.node).member++;
    if (s.active) of(s.active).active.push(s.service);
    if (s.fencing && s.fencing.node) of(s.fencing.node).lost = true;
  }
  return [...all.values()].sort((a, b) => a.node.localeCompare(b.node, 'en', { numeric: true }));
}

function supervisors() {
  const list = known(), body = $('nodes').tBodies[0], at = new Map([...body.rows].filter(tr => tr.dataset.node).map(tr => [tr.dataset.node, tr]));
  for (const [node, tr] of at) if (!list.some(n => n.node === node)) { tr.remove(); close(node); }
  let before = null;
  for (const n of list.reverse()) {
    let tr = at.get(n.node);
    if (!tr) {
      tr = make('tr');
      tr.dataset.node = n.node;
      tr.append(...['name', '', '', '', '', 'age', ''].map(name => make('td', undefined, name)));
      const name = make('button', n.node, 'name');
      tr.firstChild.append(name);
      tr.onclick = e => { if (selecting(e)) return; if (opened.has(n.node)) close(n.node); else opened.set(n.node, null); supervisors(); };
    }
    let card = opened.get(n.node);
    if (opened.has(n.node)) {
      if (!card) opened.set(n.node, card = nodeCard(n.node));
      if (card.box.nextElementSibling !== before || !card.box.isConnected) body.insertBefore(card.box, before);
      nodeBody(card, n);
      before = card.box;
    }
    if (tr.nextElementSibling !== before || !tr.isConnected) body.insertBefore(tr, before);
    before = tr;
    tr.firstChild.firstChild.setAttribute('aria-expanded', !!card);
    const [, services, lease, zookeeper, version, age, more] = tr.children, up = n.up, warned = up && up.warnings || [];
    put(services, n.member ? `${n.active.length} active of ${n.member}` : '');
    const unread = state.unread ? 'not known' : '';
    put(lease, unread || (!up ? 'none' : up.silent ? '▲ ended' : 'renewed' + (up.lease_ms ? ', ' + lasted(up.lease_ms) : '')), !unread && (!up || up.silent) ? 'bad' : 'soft');
    put(zookeeper, unread || (!up ? '▲ not connected' : up.silent ? '▲ no heartbeat' : 'connected'), !unread && (!up || up.silent) ? 'bad' : 'soft');
    put(version, up ? up.version : '', 'soft');
    put(age, up ? ago(up.since) : n.gone ? ago(n.gone.last_seen) : '');
    put(more, [n.gone && n.gone.without_standby ? '▲ ' + bare(n.gone) : '', n.drained ? '‖ drained' : '', up && up.config_fault ? '▲ keeps its previous config' : '', up && up.notify_fault ? '▲ notify fails' : '', up && up.http_fault ? '▲ no HTTP' : '', warned.length ? count(warned.length, 'warning', 'warnings') : ''].filter(Boolean).join(', '),
      n.gone && n.gone.without_standby || up && (up.config_fault || up.notify_fault || up.http_fault) ? 'bad' : n.drained ? 'warn' : 'soft');
  }
}

const bare = g => count(g.without_standby, 'service has no standby', 'services have no standby');

function close(node) {
  const card = opened.get(node);
  if (card) card.box.remove();
  opened.delete(node);
}

function nodeCard(node) {
  const c = { node, box: make('tr', undefined, 'node'), cell: make('td'), facts: make('p', '', 'facts soft'), list: make('ul', undefined, 'faults'), orders: make('div', undefined, 'orders'), said: make('p', '', 'said'), mass: make('select') };
  c.cell.colSpan = 7;
  c.mass.setAttribute('aria-label', 'Order for all services that are active here');
  c.mass.append(...['switchover', 'restart', 'reload', 'pause', 'resume'].map(what => { const o = make('option', words[what].replace(' to', '')); o.value = what; return o; }));
  const button = (what, text, act) => { const b = make('button', text, what); b.onclick = act; return c[what] = b; }, each = make('span', undefined, 'to');
  each.append(c.mass, button('mass-go', 'all of this node', () => orderAll(c, c.mass.value)));
  c.orders.append(button('drain', words.drain, () => order(c, 'drain')), button('undrain', words.undrain, () => order(c, 'undrain')), each, c.said);
  c.said.setAttribute('role', 'status');
  const show = make('button', 'Show its services', 'show');
  show.onclick = () => { $('filter').value = node; state.only = ''; all(); };
  c.cell.append(c.list, c.facts, show, c.orders);
  c.box.append(c.cell);
  return c;
}

function nodeBody(c, n) {
  const up = n.up, d = n.drained;
  const list = [up && up.config_fault ? ['It keeps its previous config: ' + up.config_fault, 'bad'] : '', up && up.notify_fault ? ['It cannot tell people what happens, because notify fails: ' + up.notify_fault, 'bad'] : '', up && up.http_fault ? ['It does not serve HTTP at ' + up.http_fault, 'bad'] : '', d ? [`Drained${d.by ? ' by ' + d.by : ''}${d.since ? ' ' + ago(d.since) + ' ago' : ''}${d.why ? ': ' + d.why : ''}. It is kept out of all services until undrained.`, 'warn'] : '',
    n.gone ? [`It is gone, ${n.gone.stopped ? 'stopped' : 'last seen'} ${ago(n.gone.last_seen)} ago: ${bare(n.gone)}. If it does not come back: understudy forget ${n.node}`, 'bad'] : !up ? ['Its supervisor is not connected to ZooKeeper.', 'bad'] : '', ...(up && up.warnings || []).map(w => [w, 'soft'])].filter(Boolean);
  fill(c.list, list, () => make('li'), (item, [text, tone]) => put(item, text, tone));
  put(c.facts, up ? [`host ${up.host}, pid ${up.pid}`, 'version ' + up.version, up.contain && 'contains programs by ' + up.contain, up.config && 'config ' + up.config].filter(Boolean).join(' · ') : '');
  c.orders.hidden = !(state.writable && state.token);
  c.drain.hidden = !!d; c.undrain.hidden = !d;
  c.cell.querySelector('.show').hidden = few() || !n.member;
  c['mass-go'].parentElement.hidden = !n.active.length;
  c.active = n.active;
}
