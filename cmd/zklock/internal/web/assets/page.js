// The page shows what the server sends: a view (of all locks, or of one) as server-sent events. The first event is complete,
// and later ones contain only changes. Text from ZooKeeper is only put into text nodes.
'use strict';

const $ = id => document.getElementById(id);
const calm = matchMedia('(prefers-reduced-motion: reduce)');
const narrow = matchMedia('(max-width: 640px)');
const count = new Intl.NumberFormat('en');

// ---- making elements

function el(tag, className, ...children) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  e.append(...children);
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';

function svg(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  setAll(e, attributes);
  if (text !== undefined) e.textContent = text;
  return e;
}

function setAll(e, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
  }
}

function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// keyed updates the children of parent to match keys, in order. It keeps the elements of keys that remain.
function keyed(parent, keys, make, fill) {
  const focused = document.activeElement;
  const wanted = new Set(keys.map(String));
  for (const child of [...parent.children]) {
    if (!wanted.has(child.dataset.key)) child.remove();
  }
  const known = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const key of keys) {
    let child = known.get(String(key));
    if (!child) {
      child = make(key);
      child.dataset.key = key;
    }
    fill(child, key);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

// ---- data from the server

const state = { view: null, link: '', text: '', head: {}, sections: {}, ahead: 0, source: null, retry: 0 };

const section = name => state.sections[name] || { rows: new Map(), order: [] };

// now is the server's time. While no server answers, it is the time of what is shown: clocks must not run on.
const now = () => state.head.away || Date.now() + state.ahead;

function open() {
  close();
  const query = new URLSearchParams();
  if (state.text) query.set('q', state.text);
  // The link is the server's encoding of a path. It is sent back unchanged.
  const lock = state.view === 'one' ? 'lock=' + state.link + '&' : '';
  const source = new EventSource('events?' + lock + query);
  state.source = source;
  source.onopen = () => status('live', 'live');
  source.onmessage = event => {
    take(JSON.parse(event.data));
    render();
  };
  source.onerror = () => {
    status('bad', 'not connected');
    if (source.readyState === EventSource.CLOSED) state.retry = setTimeout(open, 3000);
  };
}

function close() {
  clearTimeout(state.retry);
  if (state.source) state.source.close();
  state.source = null;
}

function take(frame) {
  if (frame.first) state.sections = {};
  state.ahead = frame.now - Date.now();
  if (frame.head) state.head = frame.head;
  for (const [name, change] of Object.entries(frame.sections || {})) {
    const s = state.sections[name] = section(name);
    for (const [id, row] of Object.entries(change.rows || {})) s.rows.set(Number(id), row);
    if (change.order || change.empty) {
      s.order = change.order || [];
      const there = new Set(s.order);
      for (const id of s.rows.keys()) if (!there.has(id)) s.rows.delete(id);
    }
  }
}

function status(className, text) {
  $('status').className = 'status ' + className;
  setText($('status-text'), text);
}

// ---- words

function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 9.95) return s.toFixed(1) + ' s';
  if (s < 60) return Math.floor(s) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

const nameOf = o => o.label || o.value || (o.host ? o.host + (o.pid ? ':' + o.pid : '') : '') || o.client || 'unknown';

// detailsOf returns the details that nameOf leaves out.
function detailsOf(o) {
  const place = o.host ? o.host + (o.pid ? ':' + o.pid : '') : '';
  return [o.label && o.value, (o.label || o.value) && place, o.client].filter(x => x && x !== nameOf(o)).join(' · ');
}

const plural = (n, one, many) => count.format(n) + ' ' + (n === 1 ? one : many);

// since makes e show how long ago a time was. tickOne keeps it up to date.
function since(e, time, atLeast) {
  e.dataset.since = time || '';
  e.dataset.sign = atLeast ? '> ' : '';
  tickOne(e);
}

function tickOne(e) {
  setText(e, e.dataset.since ? e.dataset.sign + duration(now() - Number(e.dataset.since)) : '');
}

function mark(parent, className, text, title) {
  const m = el('span', 'mark ' + className, text);
  if (title) m.title = title;
  parent.append(m);
}

function marks(parent, r, o) {
  parent.replaceChildren();
  if (r.asked) mark(parent, 'asked', 'asked to release', 'The holder decides whether and when it releases the lock.');
  if (r.delayed) mark(parent, 'delay', 'lock delay', 'The last holder did not release the lock, and its lock delay has not passed.');
  if (r.cyclic) mark(parent, 'cycle', 'cycle', 'Clients wait for each other in a cycle: it may be a deadlock.');
  if (o && o.kept) mark(parent, 'kept', 'shared place', 'This place is shared by a process\'s goroutines. It can be held while none of them is working.');
}

// ---- all locks

function renderOverview() {
  const head = state.head;
  setText($('n-locks'), count.format(head.locks || 0));
  setText($('n-holding'), count.format(head.holding || 0));
  setText($('n-waiting'), count.format(head.waiting || 0));
  setText($('n-cycles'), count.format(head.cycled || 0));
  setText($('l-locks'), head.locks === 1 ? 'lock in use' : 'locks in use');
  setText($('l-cycles'), head.cycled === 1 ? 'cycle' : 'cycles');
  $('tile-cycles').className = head.cycled ? 'alarm' : '';
  setText($('below'), head.below || '');
  const { rows } = section('locks');
  const order = restingOrder(section('locks').order);
  keyed($('locks'), order, makeLock, (li, id) => fillLock(li, rows.get(id)));
  const more = (head.found || 0) - order.length;
  setText($('more-locks'), more > 0 ? 'and ' + plural(more, 'less busy lock', 'less busy locks') + ' (use the search)' : '');
  $('no-locks').hidden = order.length > 0;
  setText($('no-locks'), state.text ? 'No lock in use matches the search.' : 'No locks are in use at the moment. Locks appear here as soon as they are used.');
  renderCycles($('all-cycles'));
  document.title = (head.waiting ? '(' + count.format(head.waiting) + ') ' : '') + 'zklock';
}

// mouse is whether the last pointer was one that hovers. After a touch, an element counts as hovered until the next one.
let mouse = false;
addEventListener('pointermove', event => { mouse = event.pointerType === 'mouse'; }, { passive: true });

// restingOrder keeps rows in place while the pointer or the focus is on one of them.
function restingOrder(order) {
  const list = $('locks');
  const points = mouse && list.matches(':hover') || list.matches(':focus-within');
  if (!points) return order;
  const there = new Set(order);
  const kept = [...list.children].map(li => Number(li.dataset.key)).filter(id => there.has(id));
  const have = new Set(kept);
  return [...kept, ...order.filter(id => !have.has(id))];
}

function makeLock() {
  const name = el('span', 'name'), kind = el('span', 'kind'), flags = el('span', 'marks');
  const owner = el('span', 'owner'), details = el('div', 'sub');
  const held = el('span', 'for'), waits = el('b'), holders = el('i', 'holders'), bar = el('i');
  const a = el('a', 'lock',
    el('div', 'what', el('div', '', name, flags), el('div', 'sub', kind)),
    el('div', 'by', owner, details), held, el('div', 'waiting', waits, el('div', 'strip', holders, bar)));
  const li = el('li', '', a);
  li.parts = { a, name, kind, flags, owner, details, held, waits, holders, bar };
  return li;
}

function fillLock(li, r) {
  if (li.row === r) return;
  li.row = r;
  const p = li.parts;
  p.a.href = '#' + r.link;
  setText(p.name, r.path);
  setText(p.kind, r.kind + (r.permits ? ', ' + count.format(r.held) + ' of ' + count.format(r.permits) + ' held' : r.held > 1 ? ', ' + count.format(r.held) + ' holding' : ''));
  marks(p.flags, r, r.owner);
  setText(p.owner, r.owner ? nameOf(r.owner) + (r.held > 1 ? ' and ' + count.format(r.held - 1) + ' more' : '') : '–');
  setText(p.details, r.owner ? detailsOf(r.owner) : '');
  since(p.held, r.owner && r.since, r.atLeast);
  setText(p.waits, count.format(r.waits));
  p.waits.className = r.waits ? '' : 'none';
  p.holders.style.width = Math.min(r.held, 12) * 9 + 'px';
  p.bar.style.width = Math.min(r.waits, 200) * 9 + 'px';
}

function renderCycles(parent) {
  const found = state.head.cycles || [];
  const text = JSON.stringify(found) + state.head.cycled;
  if (parent.dataset.text === text) return;
  parent.dataset.text = text;
  parent.replaceChildren(...found.map(cycleBox));
  const more = (state.head.cycled || 0) - found.length;
  if (more > 0) parent.append(el('p', 'more', 'and ' + plural(more, 'more cycle', 'more cycles')));
}

function cycleBox(steps) {
  const list = el('ol', '', ...steps.map(s => {
    const link = el('a', 'mono', s.path);
    link.href = '#' + s.link;
    return el('li', '', el('b', '', nameOf(s.owner)), ' waits at ', link, s.holds ? ', which is held by ' : ' behind ', el('b', '', nameOf(s.by)),
      s.parallel ? ' (it has several goroutines, so this may not be a deadlock)' : '');
  }));
  return el('section', '', el('h2', '', plural(steps.length, 'client waits', 'clients wait') + ' for each other in a cycle'), list);
}

// ---- one lock

function renderOne() {
  const head = state.head;
  setText($('path'), head.path || '');
  document.title = (head.waits ? '(' + count.format(head.waits) + ') ' : '') + (head.path || '') + ' · zklock';
  renderFacts(head);
  $('delayed').hidden = !head.delayed;
  $('unseen').hidden = !head.unseen;
  setText($('unseen'), head.unseen ? 'Nobody has been seen here since ' + clock(head.begun) + '. This path may not exist.' : '');
  $('one').classList.toggle('unseen', Boolean(head.unseen));
  renderCycles($('its-cycles'));
  setText($('holders-title'), head.kind === 'election' ? 'Leader' : 'Holders');
  if (pointsAtButtons()) {
    fillInPlace();
  } else {
    const before = places();
    for (const card of document.querySelectorAll('.card.gone')) {
      card.classList.remove('gone');
      card.row = null; // its buttons were disabled
    }
    const cards = new Map([...document.querySelectorAll('.card')].map(card => [card.dataset.key, card]));
    fillCards($('holders'), 'holders', cards);
    fillCards($('queue'), 'queue', cards);
    move(before);
  }
  const rest = head.moreWait ? 'and ' + count.format(head.moreWait) + ' more waiting' : '';
  setText($('more-queue'), rest + (head.moreWait ? libraries(head) : ''));
  setText($('more-holders'), head.moreHold ? 'and ' + count.format(head.moreHold) + ' more holding' : '');
  drawTime();
}

function renderFacts(head) {
  const facts = [[head.kind]];
  if (head.permits) facts.push([count.format(head.held) + ' of ' + count.format(head.permits), 'permits held']);
  else facts.push([count.format(head.held || 0), 'holding']);
  facts.push([count.format(head.waits || 0), 'waiting'], [count.format(head.entered || 0), 'arrived since ' + clock(head.begun)]);
  if (state.text) facts.push([count.format(head.found || 0), head.found === 1 ? 'matches' : 'match']);
  $('facts').replaceChildren(...facts.map(([bold, text]) => el('span', '', el('b', '', bold), text ? ' ' + text : '')));
}

function libraries(head) {
  const all = Object.entries(head.libraries || {}).sort((x, y) => y[1] - x[1]);
  return all.length > 1 ? ' (of all: ' + all.map(([name, n]) => count.format(n) + ' ' + (name || 'others')).join(', ') + ')' : '';
}

const minutes = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
const clock = ms => new Date(ms).toLocaleTimeString([], { ...minutes, second: '2-digit' });

function fillCards(list, name, cards) {
  const { rows, order } = section(name);
  let place = 0;
  keyed(list, order, id => cards.get(String(id)) || makeCard(), (card, id) => fillCard(card, rows.get(id), name === 'holders', ++place));
}

// pointsAtButtons reports whether the pointer is on a card with buttons, or the focus on such a button. Nothing may move then:
// a click would meet another contender.
function pointsAtButtons() {
  const card = mouse && document.querySelector('.card:hover');
  return Boolean(card && card.querySelector('.acts button') || document.querySelector('.acts button:focus'));
}

// fillInPlace updates the cards without moving any. Those whose contender has left its list get no more clicks.
function fillInPlace() {
  for (const name of ['holders', 'queue']) {
    const { rows, order } = section(name);
    const there = new Set(order.map(String));
    [...$(name).children].forEach((card, i) => {
      const gone = !there.has(card.dataset.key);
      if (!gone) fillCard(card, rows.get(Number(card.dataset.key)), name === 'holders', i + 1);
      card.classList.toggle('gone', gone);
      if (gone) for (const b of card.querySelectorAll('.acts button')) b.disabled = true;
    });
  }
}

function makeCard() {
  const place = el('span', 'place'), title = el('span', 'title'), flags = el('span', 'marks'), held = el('span', 'for');
  const details = el('div', 'sub'), acts = el('div', 'acts');
  const card = el('li', 'card', place, el('span', 'tint'), el('div', '', title, flags), held, details, acts);
  card.parts = { place, title, flags, held, details, acts };
  return card;
}

function fillCard(card, r, holds, place) {
  setText(card.parts.place, count.format(r.place || place));
  if (card.row === r && card.holds === holds) return;
  if (card.holds === false && holds) {
    card.classList.add('granted');
    card.addEventListener('animationend', () => card.classList.remove('granted'), { once: true });
  }
  const p = card.parts;
  card.row = r;
  card.holds = holds;
  card.style.setProperty('--hue', hue(r.session));
  setText(p.title, nameOf(r));
  marks(p.flags, r, r);
  if (r.kind === 'read' || r.kind === 'write') mark(p.flags, '', r.kind === 'read' ? 'reader' : 'writer');
  since(p.held, holds && r.held || r.from, r.atLeast);
  p.held.title = holds ? 'time holding' : 'time in the queue';
  const details = [detailsOf(r), 'session ' + r.session, holds ? 'token ' + r.token : '', r.name];
  p.details.replaceChildren(...details.filter(x => x).map(x => el('span', '', x)));
  actions(p.acts, r, holds);
}

// hue returns the color of a session. It is the same everywhere on the page.
function hue(session) {
  let h = 0;
  for (const c of session) h = (h * 31 + c.charCodeAt(0)) >>> 0;
  return h * 137.5 % 360;
}

let moved = 0; // when cards were last moved

// places returns the positions of the cards, if they may be animated: at several hand-offs a second they would glide forever.
function places() {
  if (calm.matches || performance.now() - moved < 1000) return new Map();
  return new Map([...document.querySelectorAll('.card')].map(card => [card, card.getBoundingClientRect()]));
}

// move animates cards from their previous positions.
function move(before) {
  for (const [card, was] of before) {
    if (!card.isConnected || was.top > innerHeight + 400) continue;
    const is = card.getBoundingClientRect();
    if (Math.abs(was.top - is.top) + Math.abs(was.left - is.left) < 1) continue;
    moved = performance.now();
    card.animate([{ transform: `translate(${was.left - is.left}px, ${was.top - is.top}px)` }, { transform: 'none' }], { duration: 350, easing: 'ease-out' });
  }
}

// ---- timeline

let span = 300; // seconds to show; zero means all

function drawTime() {
  const chart = $('chart');
  const width = chart.clientWidth;
  if (state.view !== 'one' || !width) return;
  const { rows, order } = section('spans');
  const end = now();
  const begun = state.head.begun || end;
  const start = span ? Math.max(begun, end - span * 1000) : begun;
  const lanes = lanesOf(order.map(id => ({ id, ...rows.get(id) })), start, end);
  const left = narrow.matches ? 8 : Math.min(170, width * .28), right = width - 10;
  const lane = narrow.matches ? 34 : 26, top = 28;
  const x = t => left + (right - left) * Math.max(0, Math.min(1, (t - start) / Math.max(1, end - start)));
  const height = top + lane * Math.max(1, lanes.length) + 10;
  setAll(chart, { viewBox: `0 0 ${width} ${height}`, height });
  const parts = new Map();
  const put = (key, tag, attributes, text) => parts.set(key, { tag, attributes, text });
  for (const [t, text] of ticks(start, end)) {
    if (x(t) > right - 28) continue;
    put('l' + t, 'line', { x1: x(t), x2: x(t), y1: 20, y2: height - 6 });
    put('t' + t, 'text', { x: x(t), y: 14, class: 'tick', 'text-anchor': 'middle' }, text);
  }
  lanes.forEach((l, i) => drawLane(put, l, x, end, { left, top: top + i * lane, lane, width }));
  keyed(chart, [...parts.keys()], key => svg(parts.get(key).tag, {}), (e, key) => fillPart(e, parts.get(key)));
  setText($('time-title'), 'Since ' + clock(start));
  setText($('time-note'), noteOf(lanes, order.length));
}

function fillPart(e, { tag, attributes, text }) {
  setAll(e, attributes);
  if (text === undefined) return;
  if (tag === 'text') return setText(e, text);
  if (!e.firstChild) e.append(svg('title', {}));
  setText(e.firstChild, text);
}

const mostLanes = 18;

// lanesOf returns a lane for the lock, followed by one for each session in order of arrival.
function lanesOf(spans, start, end) {
  const lanes = new Map();
  for (const s of spans) {
    if (s.until && s.until < start) continue;
    const l = lanes.get(s.session) || { session: s.session, spans: [], first: s.from, last: 0, live: false };
    lanes.set(s.session, l);
    l.spans.push(s);
    l.name = nameOf(s.owner);
    l.first = Math.min(l.first, s.from);
    l.last = Math.max(l.last, s.until || end + (s.held ? 1e9 - (end - s.held) : -s.from % 1e6));
  }
  const all = [...lanes.values()].sort((x, y) => y.last - x.last);
  const shown = all.slice(0, mostLanes).sort((x, y) => x.first - y.first);
  shown.hidden = all.length - shown.length;
  if (shown.length === 0) return shown;
  const lock = { session: 'all', name: 'the lock', lock: true, spans: spans.filter(s => s.held && !(s.until && s.until < start)) };
  return Object.assign([lock, ...shown], { hidden: shown.hidden });
}

function drawLane(put, l, x, end, at) {
  const bar = narrow.matches ? { y: at.top + 17, h: 12 } : { y: at.top + 5, h: 15 };
  const label = narrow.matches ? { x: 8, y: at.top + 12 } : { x: 10, y: at.top + 17 };
  const room = narrow.matches ? at.width - 16 : at.left - 16;
  put('n' + l.session, 'text', { ...label, class: l.lock ? 'all' : '' }, fit(l.name, room, Boolean(l.lock)));
  if (!l.lock) put('c' + l.session, 'rect', { x: 3, y: label.y - 10, width: 3, height: 12, rx: 1.5, fill: `hsl(${hue(l.session)} 45% 55%)` });
  for (const s of l.lock ? [] : l.spans) {
    const waits = s.held || s.until || end;
    if (x(waits) - x(s.from) > .3) put('w' + l.session + s.id, 'rect', box(x, s.from, waits, bar, s.held || !s.until ? 'waits' : 'gone'), titleOf(s, end));
  }
  // After all waits, so that they are drawn above them: a session can hold and wait at the same time.
  for (const s of l.spans) {
    if (s.held) put('h' + l.session + s.id, 'rect', box(x, s.held, s.until || end, bar, s.early && s.held - s.from < 1 ? 'holds before' : 'holds'), titleOf(s, end));
  }
}

const box = (x, from, until, bar, className) => ({ x: x(from), y: bar.y, width: Math.max(1.5, x(until) - x(from)), height: bar.h, rx: 2, class: className });

function titleOf(s, end) {
  const until = s.until || end;
  const held = s.held ? (s.until ? 'held from ' + clock(s.held) + ' to ' + clock(s.until) : 'holding since ' + clock(s.held)) + ', token ' + s.token : '';
  return [nameOf(s.owner), detailsOf(s.owner), held, s.held ? '' : (s.until ? 'left, not seen holding' : 'waiting since ' + clock(s.from)), s.until ? duration(until - (s.held || s.from)) : ''].filter(t => t).join('\n');
}

const pen = document.createElement('canvas').getContext('2d');
const fitted = new Map(); // by text and width

// fit cuts text to the given width on the chart.
function fit(text, width, bold) {
  const key = bold + ' ' + Math.floor(width) + ' ' + text;
  if (fitted.has(key)) return fitted.get(key);
  if (fitted.size > 1000) fitted.clear();
  pen.font = (bold ? '600 ' : '') + getComputedStyle($('chart')).font;
  const letters = [...text];
  let n = letters.length, cut = text;
  while (n > 1 && pen.measureText(cut).width > width) cut = letters.slice(0, --n).join('') + '…';
  fitted.set(key, cut);
  return cut;
}

// ticks returns a few round times with their texts.
function ticks(start, end) {
  const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
  const most = narrow.matches ? 3 : 7;
  const step = (steps.find(s => (end - start) / 1000 / s <= most) || 604800) * 1000;
  const all = [];
  for (let t = Math.ceil(start / step) * step; t < end; t += step) all.push([t, step < 60000 ? clock(t) : new Date(t).toLocaleTimeString([], minutes)]);
  return all;
}

function noteOf(lanes, spans) {
  const notes = [];
  if (lanes.hidden > 0) notes.push(plural(lanes.hidden, 'more session is', 'more sessions are') + ' not shown.');
  if (state.head.kept) notes.push('Contenders that left before ' + clock(state.head.kept) + ' are not shown.');
  if (!spans) notes.push('Nobody has been here since ' + clock(state.head.begun) + '.');
  return notes.join(' ');
}

// ---- changes

// The key is part of the link that zklock web printed. It is removed from the address bar so that it is not shared along with
// the address.
const key = (() => {
  const given = new URLSearchParams(location.search).get('key');
  if (given) {
    sessionStorage.setItem('zklock-key', given);
    history.replaceState(null, '', location.pathname + location.hash);
  }
  return sessionStorage.getItem('zklock-key');
})();

function actions(parent, r, holds) {
  parent.replaceChildren();
  if (!key || !state.head.changes || !r.node) return;
  const button = (text, change, done) => {
    const b = el('button', '', text);
    b.type = 'button';
    b.disabled = Boolean(done);
    b.onclick = () => ask(r, change, holds);
    parent.append(b);
  };
  if (holds && r.kind !== 'latch') button('Ask to release', 'revoke', r.asked);
  button('Evict', 'evict');
}

const questions = {
  revoke: () => ['Ask to release?', 'This is only a request. A command under zklock run gets TERM, a program decides for itself, and some libraries do not support it.', 'Ask to release'],
  evict: holds => ['Evict?', holds
    ? 'It loses its lock whatever it is doing, and the next waiter can acquire the lock at once. A holder that uses another library may carry on as if it still held the lock: stop it first.'
    : 'It is removed from the queue and does not queue again by itself.', 'Evict'],
};

function ask(r, change, holds) {
  const [title, text, yes] = questions[change](holds);
  setText($('ask-title'), title);
  setText($('ask-who'), [nameOf(r), detailsOf(r), 'session ' + r.session].filter(t => t).join(' · '));
  setText($('ask-text'), text);
  setText($('ask-yes'), yes);
  $('ask-why').hidden = change !== 'evict';
  $('ask-reason').value = '';
  $('ask-failed').hidden = true;
  $('ask-yes').disabled = false;
  $('ask-yes').onclick = () => doChange({ lock: lockOf(state.link), node: r.node, token: r.token, do: change, reason: $('ask-reason').value || undefined });
  $('ask').showModal();
  $('ask-no').focus();
}

// lockOf decodes the server's encoding of a path.
const lockOf = link => new URLSearchParams('lock=' + link).get('lock');

async function doChange(change) {
  $('ask-yes').disabled = true;
  let failed = '';
  try {
    const answer = await fetch('change', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Zklock-Key': key }, body: JSON.stringify(change) });
    if (!answer.ok) failed = await answer.text();
  } catch {
    failed = 'zklock web did not answer';
  }
  if (!failed) return $('ask').close();
  setText($('ask-failed'), failed.trim());
  $('ask-failed').hidden = false;
  $('ask-yes').disabled = false;
}

// ---- the page as a whole

let due = 0;

function notices(head) {
  $('away').hidden = !head.away;
  setText($('away'), head.away ? 'No server has answered since ' + clock(head.away) + '. This page shows what was known then.' : '');
  $('gaps').hidden = !head.gaps;
  setText($('gaps'), head.gaps ? head.gaps[0].toUpperCase() + head.gaps.slice(1) + '.' : '');
}

function render() {
  if (due) return;
  due = requestAnimationFrame(() => {
    due = 0;
    notices(state.head);
    if (state.view === 'one') renderOne();
    else renderOverview();
  });
}

// route shows the view that the address selects.
function route() {
  const link = location.hash.slice(1);
  const one = link.startsWith('/') && link !== '/';
  state.view = one ? 'one' : 'overview';
  state.link = one ? link : '';
  state.head = {};
  state.sections = {};
  $('overview').hidden = one;
  $('one').hidden = !one;
  for (const id of ['holders', 'queue', 'chart', 'locks']) $(id).replaceChildren();
  setSearch('');
  $('search').placeholder = one ? 'Search holders and waiters' : 'Search locks, owners, hosts, sessions';
  setText($('path'), '');
  scrollTo(0, 0);
  open();
}

function setSearch(text) {
  state.text = text;
  $('search').value = text;
}

let typing = 0;

$('search').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    state.text = $('search').value.trim();
    open();
  }, 200);
});

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('zklock-theme', theme);
  } catch { /* without storage, it lasts as long as the page */ }
}

function otherTheme() {
  const dark = document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  setTheme(dark === 'dark' ? 'light' : 'dark');
}

// step moves the focus to the next or previous lock, or among the links and buttons of a lock's page.
function step(by) {
  const all = [...document.querySelectorAll(state.view === 'one' ? '#one a, .card button' : '#locks a, .cycles a')];
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))];
  if (next) next.focus();
}

function escape() {
  if ($('search').value) {
    setSearch('');
    open();
  } else if (document.activeElement === $('search')) {
    $('search').blur();
  } else if (state.view === 'one') {
    location.hash = '#/';
  }
}

const keys = {
  '/': () => $('search').focus(), ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
  Escape: escape, t: otherTheme, '?': () => $('keys').showModal(),
};

addEventListener('keydown', event => {
  const typed = event.target === $('search') && !['Escape', 'ArrowDown'].includes(event.key);
  const act = keys[event.key];
  if (!act || typed || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  event.preventDefault();
  act();
});

addEventListener('hashchange', route);
addEventListener('resize', () => drawTime());
// A hidden page closes its stream: browsers allow only a few connections to one server.
document.addEventListener('visibilitychange', () => document.hidden ? close() : open());
$('theme').onclick = otherTheme;
$('help').onclick = () => $('keys').showModal();
$('skip').onclick = event => {
  event.preventDefault();
  $('main').focus();
};
for (const id of ['locks', 'holders', 'queue']) {
  for (const type of ['mouseleave', 'focusout']) $(id).addEventListener(type, () => setTimeout(render));
}
$('windows').onclick = event => {
  if (!event.target.dataset.window) return;
  span = Number(event.target.dataset.window);
  for (const b of $('windows').children) b.setAttribute('aria-pressed', b === event.target);
  drawTime();
};

setInterval(() => {
  for (const e of document.querySelectorAll('[data-since]')) tickOne(e);
  drawTime();
}, 200);

try {
  const theme = localStorage.getItem('zklock-theme');
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* without storage, use the system's setting */ }
route();
