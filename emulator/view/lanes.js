(() => {
'use strict';
const data = JSON.parse(document.getElementById('trace').textContent);
const plot = document.getElementById('plot'), overview = document.getElementById('overview');
const tip = document.getElementById('tip'), picker = document.getElementById('partition');
const LEFT = 128, RIGHT = 18, AXIS = 30, MARKS = 26, TRAFFIC = 13;
const M = { t: 0, lane: 1, source: 2, tone: 3, head: 4, numbers: 5, about: 6, parent: 7, seq: 8, kind: 9, thread: 10, fields: 11, small: 12 };
const begin = Math.min(...data.panels.map(p => p.from)), end = Math.max(...data.panels.map(p => p.to));
/* the first look leaves the boot out */
const first = begin < 0 && end > 0 ? Math.max(begin, -end / 60) : begin;
const view = { from: first, to: end };
let width = 0, hits = [], lit = -1, chosen = '';

/* -- words ---------------------------------------------------------------------------------------- */
const esc = s => String(s).replace(/[&<>"]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const seconds = ms => (ms / 1000).toFixed(3) + ' s';
const span = ms => ms >= 10000 ? (ms / 1000).toFixed(1) + ' s' : (ms < 10 && ms !== Math.round(ms) ? ms.toFixed(1) : Math.round(ms).toLocaleString('en')) + ' ms';
const versions = v => v.length > 2 ? 'v' + v[0] + ' to v' + v[v.length - 1] : v.map(n => 'v' + n).join(' and ');

/* -- geometry ------------------------------------------------------------------------------------- */
const x = t => LEFT + (t - view.from) / (view.to - view.from) * (width - LEFT - RIGHT);
const time = px => view.from + (px - LEFT) / (width - LEFT - RIGHT) * (view.to - view.from);
const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

function shownPartitions(panel) {
  const all = panel.partitions.map((name, i) => i);
  return chosen === '' ? all : all.filter(i => panel.partitions[i] === chosen);
}

function bandHeight(count) { return count <= 1 ? 20 : count <= 4 ? 13 : count <= 12 ? 8 : Math.max(2, 96 / count); }

function layout() {
  let y = AXIS;
  return data.panels.map(panel => {
    const parts = shownPartitions(panel), h = bandHeight(parts.length), lanes = {};
    if (data.panels.length > 1) y += 24;
    const top = y;
    for (const lane of panel.lanes) {
      const bands = lane.id === 'clients' ? 0 : parts.length * (h + (h > 4 ? 2 : 0));
      const height = MARKS + bands + TRAFFIC + 8;
      lanes[lane.id] = { y, height, mark: y + MARKS / 2 + 3, band: y + MARKS, foot: y + height };
      y += height;
    }
    return { panel, parts, h, lanes, top, bottom: y };
  });
}

function steps(from, to, room) {
  const raw = (to - from) / Math.max(room / 90, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= raw), out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return { out, digits: step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3 };
}

/* -- drawing -------------------------------------------------------------------------------------- */
function draw() {
  width = plot.clientWidth || 1000;
  hits = [];
  const sheets = layout(), height = sheets[sheets.length - 1].bottom + 8, out = [];
  plot.setAttribute('height', height);
  plot.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
  out.push('<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M1 0V6"/></pattern>'
    + '<clipPath id="inside"><rect x="' + (LEFT - 7) + '" y="0" width="' + (width - LEFT - RIGHT + 14) + '" height="' + height + '"/></clipPath></defs>');
  axis(out, height);
  for (const sheet of sheets) {
    lanes(out, sheet);
    out.push('<g clip-path="url(#inside)">');
    traffic(out, sheet); bands(out, sheet); faults(out, sheet); marks(out, sheet);
    out.push('</g>');
  }
  out.push('<g id="over"></g>');
  plot.innerHTML = out.join('');
  drawOverview();
}

function axis(out, height) {
  const ticks = steps(view.from, view.to, width - LEFT - RIGHT);
  for (const t of ticks.out) {
    out.push('<line class="grid" x1="' + x(t) + '" x2="' + x(t) + '" y1="' + (AXIS - 4) + '" y2="' + height + '"/>'
      + '<text class="tick" text-anchor="middle" x="' + x(t) + '" y="' + (AXIS - 10) + '">' + (t / 1000).toFixed(ticks.digits) + ' s</text>');
  }
}

function lanes(out, sheet) {
  if (data.panels.length > 1) out.push('<text class="panel" x="12" y="' + (sheet.top - 7) + '">' + esc(sheet.panel.facts.join(' · ')) + '</text>');
  for (const lane of sheet.panel.lanes) {
    const at = sheet.lanes[lane.id];
    out.push('<line class="lane" x1="0" x2="' + width + '" y1="' + at.y + '" y2="' + at.y + '"/>'
      + '<text class="name" x="14" y="' + (at.y + 22) + '">' + esc(lane.name) + '</text>'
      + '<text class="role" x="14" y="' + (at.y + 38) + '">' + esc(role(sheet, lane)) + '</text>');
  }
}

function role(sheet, lane) {
  if (lane.id === 'zookeeper') return 'the truth';
  if (lane.id === 'clients') return '';
  if (lane.id === 'controller') return 'its cache';
  const truth = sheet.parts.length === 1 ? sheet.panel.bands[sheet.parts[0]].zookeeper : [];
  const leads = truth.some(b => String(b[4]) === lane.id && b[1] > view.from && b[0] < view.to);
  return leads ? 'leader · metadata' : 'metadata';
}

function bands(out, sheet) {
  sheet.parts.forEach((part, row) => {
    for (const [id, list] of Object.entries(sheet.panel.bands[part])) {
      const at = sheet.lanes[id];
      if (at) for (const band of list) oneBand(out, sheet, part, id, band, at.band + row * (sheet.h + (sheet.h > 4 ? 2 : 0)));
    }
  });
}

function oneBand(out, sheet, part, id, band, y) {
  const [from, to, version, isr, , , fullness, stale] = band;
  if (to < view.from || from > view.to) return;
  const a = Math.max(x(from), LEFT), b = Math.min(x(to), width - RIGHT), h = sheet.h;
  hits.push({ band, part, id, sheet });
  out.push('<rect class="band f' + fullness + '" data-hit="' + (hits.length - 1) + '" x="' + a + '" y="' + y + '" width="' + Math.max(b - a - .6, .6) + '" height="' + h + '" rx="' + (h > 10 ? 3 : 1) + '"/>');
  for (const [s, e] of stale) {
    const l = Math.max(x(s), LEFT), r = Math.min(x(e), width - RIGHT);
    if (r <= l) continue;
    if (h > 6) out.push('<rect class="stale-wash" x="' + l + '" y="' + y + '" width="' + (r - l) + '" height="' + h + '"/><rect class="stale" x="' + l + '" y="' + y + '" width="' + (r - l) + '" height="' + h + '"/>');
    out.push('<rect class="stale-line" x="' + l + '" y="' + (y + h - Math.min(3, h / 3)) + '" width="' + Math.max(r - l, 1) + '" height="' + Math.min(3, h / 3) + '"/>');
  }
  const text = (sheet.parts.length > 1 ? sheet.panel.partitions[part] + ' ' : '') + isr + ' v' + version;
  if (h >= 13 && b - a > text.length * 6 + 10) out.push('<text class="label f' + fullness + '" x="' + (a + 6) + '" y="' + (y + h / 2 + 4 - (stale.length ? 1 : 0)) + '">' + esc(text) + '</text>');
}

function faults(out, sheet) {
  for (const fault of sheet.panel.faults) {
    const [id, from, to, text] = fault, at = sheet.lanes[id];
    if (!at || to < view.from || from > view.to) continue;
    const a = Math.max(x(from), LEFT - 1), b = Math.min(x(to), width - RIGHT + 1);
    hits.push({ fault });
    out.push('<rect class="pause" data-hit="' + (hits.length - 1) + '" x="' + a + '" y="' + (at.y + 1) + '" width="' + Math.max(b - a, 1) + '" height="' + (at.height - 1) + '"/>'
      + '<path class="pause-edge" d="M' + a + ' ' + at.y + 'V' + at.foot + 'M' + b + ' ' + at.y + 'V' + at.foot + '"/>');
    if (b - a > text.length * 6 + 16) out.push('<text class="pause-text" x="' + (a + 8) + '" y="' + (at.y + 14) + '">' + esc(text) + '</text>');
  }
}

function traffic(out, sheet) {
  const t = sheet.panel.traffic;
  for (const [id, counts] of Object.entries(t.lanes)) {
    const at = sheet.lanes[id];
    if (!at) continue;
    const most = Math.max(...counts, 1), base = at.foot - 3;
    let path = '';
    counts.forEach((count, i) => {
      const from = sheet.panel.from + i * t.ms;
      if (!count || from + t.ms < view.from || from > view.to) return;
      const a = x(from), b = Math.max(x(from + t.ms), a + .5), h = 1 + (TRAFFIC - 2) * Math.sqrt(count / most);
      path += 'M' + a.toFixed(1) + ' ' + base + 'V' + (base - h).toFixed(1) + 'H' + b.toFixed(1) + 'V' + base + 'Z';
    });
    out.push('<path class="traffic" d="' + path + '"/>');
  }
}

function marks(out, sheet) {
  const buckets = new Map(), arrows = [], shapes = [], all = sheet.panel.marks;
  const visible = all.filter(m => m[M.t] >= view.from && m[M.t] <= view.to && isShown(sheet, m));
  const withSmall = visible.length <= 400;
  for (const mark of visible) {
    const at = sheet.lanes[mark[M.lane]];
    if (!at || (mark[M.small] && !withSmall)) continue;
    const key = mark[M.lane] + mark[M.tone] + Math.round(x(mark[M.t]) / 2);
    const known = buckets.get(key);
    if (known) { known.marks.push(mark); continue; }
    const hit = { marks: [mark], sheet };
    buckets.set(key, hit);
    hits.push(hit);
    arrow(arrows, sheet, mark, at, hits.length - 1);
    shapes.push([RANK.indexOf(rank(mark)), shape(mark, x(mark[M.t]), at.mark, hits.length - 1)]);
  }
  shapes.sort((a, b) => a[0] - b[0]);
  out.push(arrows.join(''), shapes.map(s => s[1]).join(''));
}

function isShown(sheet, mark) {
  return !mark[M.about].length || sheet.parts.length === sheet.panel.partitions.length || mark[M.about].some(i => sheet.parts.includes(i));
}

function arrow(out, sheet, mark, at, hit) {
  const from = sheet.lanes[mark[M.source]];
  if (!from || mark[M.source] === mark[M.lane]) return;
  const parent = sheet.panel.marks[mark[M.parent]];
  const x2 = x(mark[M.t]), x1 = parent && parent[M.lane] === mark[M.source] ? Math.max(x(parent[M.t]), LEFT - 40) : x2;
  const y1 = from.mark, y2 = at.mark + (from.mark < at.mark ? -6 : 6), way = y2 < y1 ? 1 : -1;
  out.push('<path class="arrow s-' + mark[M.tone] + '" data-of="' + hit + '" d="M' + x1.toFixed(1) + ' ' + y1 + 'L' + x2.toFixed(1) + ' ' + y2
    + 'M' + (x2 - 3) + ' ' + (y2 + 5 * way) + 'L' + x2.toFixed(1) + ' ' + y2 + 'L' + (x2 + 3) + ' ' + (y2 + 5 * way) + '"/>');
}

/* what covers what, where marks meet: the decision above its outcome */
const RANK = ['plain', 'echo', 'life', 'fault', 'metadata', 'write', 'notice', 'expand', 'shrink', 'refused'];
const isEcho = mark => mark[M.kind] === 'isr_updated' || mark[M.kind] === 'isr_change_held';
const rank = mark => isEcho(mark) ? 'echo' : mark[M.tone];

const SHAPES = {
  shrink: 'M-6 -5H6L0 6Z', expand: 'M-6 5H6L0 -6Z', notice: 'M0 -6L6 0L0 6L-6 0Z',
  refused: 'M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z',
  write: 'M-5 0A5 5 0 1 1 5 0A5 5 0 1 1 -5 0Z', metadata: 'M-4.5 0A4.5 4.5 0 1 1 4.5 0A4.5 4.5 0 1 1 -4.5 0Z',
  life: 'M-2 -6H2V6H-2Z', fault: 'M-2 -7H2V7H-2Z', plain: 'M-2.5 0A2.5 2.5 0 1 1 2.5 0A2.5 2.5 0 1 1 -2.5 0Z',
};

function shape(mark, px, py, hit) {
  const held = mark[M.kind] === 'isr_change_held' ? ' opacity=".5"' : '';
  return '<path class="mark t-' + mark[M.tone] + '" data-hit="' + hit + '"' + held + ' transform="translate(' + px.toFixed(1) + ' ' + py + ')' + (mark[M.small] || isEcho(mark) ? ' scale(.62)' : '') + '" d="' + (SHAPES[mark[M.tone]] || SHAPES.plain) + '"/>';
}

/* -- the whole run -------------------------------------------------------------------------------- */
function drawOverview() {
  const h = 34, room = width - LEFT - RIGHT, place = t => LEFT + (t - begin) / (end - begin) * room, out = [];
  overview.setAttribute('height', h);
  overview.setAttribute('viewBox', '0 0 ' + width + ' ' + h);
  out.push('<text class="role" x="14" y="21">whole run</text>');
  const panel = data.panels[0], parts = shownPartitions(panel).slice(0, 40);
  parts.forEach((part, row) => {
    const each = 14 / parts.length;
    for (const b of panel.bands[part].zookeeper) out.push('<rect class="band f' + b[6] + '" x="' + place(b[0]) + '" y="' + (6 + row * each) + '" width="' + Math.max(place(b[1]) - place(b[0]), .5) + '" height="' + Math.max(each - .3, .3) + '"/>');
    for (const list of Object.values(panel.bands[part])) for (const b of list) for (const [s, e] of b[7]) out.push('<rect class="stale-line" x="' + place(s) + '" y="22" width="' + Math.max(place(e) - place(s), 1) + '" height="3"/>');
  });
  for (const p of data.panels) for (const f of p.faults) out.push('<rect class="pause" x="' + place(f[1]) + '" y="3" width="' + Math.max(place(f[2]) - place(f[1]), 1) + '" height="' + (h - 6) + '"/>');
  out.push('<rect class="window" x="' + place(view.from) + '" y="2" width="' + Math.max(place(view.to) - place(view.from), 3) + '" height="' + (h - 4) + '" rx="3"/>');
  overview.innerHTML = out.join('');
}

function look(from, to) {
  const least = Math.min(2, end - begin), size = clamp(to - from, least, end - begin);
  view.from = clamp((from + to - size) / 2, begin, end - size);
  view.to = view.from + size;
  tip.hidden = true;
  requestAnimationFrame(draw);
}

function zoom(factor, about) {
  const t = about === undefined ? (view.from + view.to) / 2 : about;
  look(t - (t - view.from) * factor, t + (view.to - t) * factor);
}

function move(part) { const d = (view.to - view.from) * part; look(view.from + d, view.to + d); }

/* -- what the pointer says ------------------------------------------------------------------------ */
function words(hit) {
  if (hit.fault) return '<b>' + esc(hit.fault[3]) + '</b><br>' + seconds(hit.fault[1]) + ' to ' + seconds(hit.fault[2]) + ', ' + span(hit.fault[2] - hit.fault[1]);
  if (hit.band) return bandWords(hit);
  const shown = hit.marks.slice(0, 5).map(m => markWords(hit.sheet, m, hit.marks.length === 1));
  return shown.join('<hr>') + (hit.marks.length > 5 ? '<hr><span class="more">and ' + (hit.marks.length - 5) + ' more here</span>' : '');
}

function laneName(sheet, id) { const lane = sheet.panel.lanes.find(l => l.id === id); return lane ? lane.name : id; }

function bandWords(hit) {
  const [from, to, version, isr, leader, epoch, , stale] = hit.band;
  let text = '<b>' + esc(laneName(hit.sheet, hit.id)) + ' ' + (hit.id === 'zookeeper' ? 'has' : 'shows') + ' ' + esc(hit.sheet.panel.partitions[hit.part]) + ' ' + isr + ' v' + version + '</b>'
    + '<br>leader ' + leader + ', leader epoch ' + epoch + '<br>' + seconds(from) + ' to ' + seconds(to) + ', ' + span(to - from);
  for (const [s, e, missed] of stale) text += '<br><span class="t-old">old for ' + span(e - s) + ' from ' + seconds(s) + ' (ZooKeeper had ' + versions(missed) + ')</span>';
  return text;
}

function markWords(sheet, m, whole) {
  let text = '<b>' + esc(laneName(sheet, m[M.lane])) + ': ' + esc(m[M.head]) + '</b>';
  if (m[M.numbers]) text += '<br>' + esc(m[M.numbers]);
  text += '<br><span class="more">' + seconds(m[M.t]) + ' · ' + esc(m[M.kind]) + ' · event ' + m[M.seq] + (m[M.thread] ? ' · ' + esc(m[M.thread]) : '') + '</span>';
  const parent = sheet.panel.marks[m[M.parent]];
  if (whole && parent) text += '<br><span class="more">' + span(m[M.t] - parent[M.t]) + ' after ' + esc(laneName(sheet, parent[M.lane])) + ': ' + esc(parent[M.head]) + '</span>';
  if (whole && m[M.fields]) text += '<hr><div class="fields">' + esc(m[M.fields]) + '</div>';
  return text;
}

function showTip(event, hit) {
  tip.innerHTML = words(hit);
  tip.hidden = false;
  const box = plot.parentNode.getBoundingClientRect(), left = event.clientX - box.left, top = event.clientY - box.top;
  tip.style.left = Math.max(0, left + tip.offsetWidth + 30 > box.width ? left - tip.offsetWidth - 14 : left + 14) + 'px';
  tip.style.top = (top + 16) + 'px';
}

function light(which) {
  if (which === lit) return;
  lit = which;
  plot.querySelectorAll('.arrow.lit').forEach(a => a.classList.remove('lit'));
  if (which >= 0) plot.querySelectorAll('.arrow[data-of="' + which + '"]').forEach(a => a.classList.add('lit'));
}

function cross(px) {
  const over = document.getElementById('over');
  if (!over) return;
  if (px < LEFT || px > width - RIGHT) { over.innerHTML = ''; return; }
  const brush = drag ? '<rect class="brush" x="' + Math.min(px, drag.px) + '" y="' + AXIS + '" width="' + Math.abs(px - drag.px) + '" height="3000"/>' : '';
  const said = drag ? span(Math.abs(time(px) - time(drag.px))) : seconds(time(px));
  over.innerHTML = brush + '<line class="cross" x1="' + px + '" x2="' + px + '" y1="' + (AXIS - 6) + '" y2="3000"/>'
    + '<text class="cross-text" text-anchor="' + (px > width - 90 ? 'end' : 'start') + '" x="' + (px + (px > width - 90 ? -5 : 5)) + '" y="' + (AXIS + 2) + '">' + said + '</text>';
}

/* -- hands ---------------------------------------------------------------------------------------- */
let drag = null, sliding = false;
const within = (event, svg) => event.clientX - svg.getBoundingClientRect().left;
plot.addEventListener('pointerdown', event => { const px = within(event, plot); if (event.button === 0 && px >= LEFT) { drag = { px }; event.preventDefault(); } });
window.addEventListener('pointerup', event => {
  sliding = false;
  if (!drag) return;
  const px = clamp(within(event, plot), LEFT, width - RIGHT), from = drag.px;
  drag = null;
  if (Math.abs(px - from) > 6) look(Math.min(time(px), time(from)), Math.max(time(px), time(from)));
  else cross(px);
});
plot.addEventListener('pointermove', event => {
  cross(clamp(within(event, plot), 0, width));
  const on = event.target.getAttribute && event.target.getAttribute('data-hit');
  if (on === null || on === undefined || drag) { tip.hidden = true; light(-1); return; }
  showTip(event, hits[+on]);
  light(+on);
});
plot.addEventListener('pointerleave', () => { tip.hidden = true; light(-1); if (!drag) cross(-1); });
plot.addEventListener('dblclick', () => look(begin, end));
plot.addEventListener('wheel', event => {
  if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : .8, time(within(event, plot))); }
  else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); move((event.deltaX || event.deltaY) / 1200); }
}, { passive: false });
function slide(event) {
  const t = begin + (within(event, overview) - LEFT) / (width - LEFT - RIGHT) * (end - begin), half = (view.to - view.from) / 2;
  look(t - half, t + half);
}
overview.addEventListener('pointerdown', event => { sliding = true; slide(event); event.preventDefault(); });
window.addEventListener('pointermove', event => { if (sliding) slide(event); });
const on = (id, act) => document.getElementById(id).addEventListener('click', act);
on('earlier', () => move(-.5)); on('later', () => move(.5)); on('nearer', () => zoom(.5)); on('wider', () => zoom(2)); on('all', () => look(begin, end));
const root = document.documentElement;
root.dataset.scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
on('scheme', () => { root.dataset.scheme = root.dataset.scheme === 'dark' ? 'light' : 'dark'; });
window.addEventListener('keydown', event => {
  if (event.target === picker) return;
  const acts = { ArrowLeft: () => move(-.25), ArrowRight: () => move(.25), '+': () => zoom(.5), '-': () => zoom(2), '0': () => look(begin, end), Escape: () => look(begin, end) };
  if (acts[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); acts[event.key](); }
});
window.addEventListener('resize', () => requestAnimationFrame(draw));

/* -- the table of changes ------------------------------------------------------------------------- */
function table() {
  const out = [];
  for (const panel of data.panels) for (const part of shownPartitions(panel).slice(0, 6)) {
    const brokers = panel.lanes.filter(l => /^[0-9]+$/.test(l.id));
    const many = brokers.length > 5;
    const heads = many ? ['metadata: the first broker', 'the last broker'] : brokers.map(b => 'metadata of ' + b.name);
    out.push('<table><caption>' + esc(panel.partitions[part]) + '</caption><thead><tr><th>version</th><th>ISR</th><th>leader</th><th>written by</th><th>at</th>'
      + heads.map(h => '<th>' + esc(h) + '</th>').join('') + '</tr></thead><tbody>'
      + panel.changes[part].map(c => row(c, many)).join('') + '</tbody></table><br>');
  }
  document.getElementById('changes').innerHTML = out.join('');
}

function ends(shown) {
  const known = shown.filter(s => s).sort((a, b) => a[0] - b[0]);
  return known.length ? [known[0], known.length < shown.length ? null : known[known.length - 1]] : [null, null];
}

function row(c, many) {
  const isr = c.from && c.from !== c.to ? c.from + ' → ' + c.to : c.to;
  const last = Math.max(c.at, ...c.shown.filter(s => s).map(s => s[0]));
  return '<tr data-from="' + c.at + '" data-to="' + last + '"><td>v' + c.version + '</td><td>' + isr + '</td><td>' + c.leader + '</td><td>' + esc(c.by) + '</td><td>' + seconds(c.at) + '</td>'
    + (many ? ends(c.shown) : c.shown).map(s => s === null ? '<td class="never">never</td>' : s[1] !== c.version ? '<td class="never">never (v' + s[1] + ' after ' + span(s[0] - c.at) + ')</td>'
      : '<td' + (s[0] - c.at > 1000 ? ' class="late"' : '') + '>after ' + span(s[0] - c.at) + '</td>').join('') + '</tr>';
}

document.getElementById('changes').addEventListener('click', event => {
  const line = event.target.closest('tr[data-from]');
  if (!line) return;
  const from = +line.dataset.from, to = +line.dataset.to, room = Math.max((to - from) * .25, 20);
  look(from - room, to + room);
  plot.scrollIntoView({ block: 'nearest' });
});

/* -- partitions ----------------------------------------------------------------------------------- */
function busiest() {
  const panel = data.panels[0], count = panel.changes.map(c => c.length), most = Math.max(...count);
  return most > 0 ? panel.partitions[count.indexOf(most)] : '';
}

const names = [...new Set(data.panels.flatMap(p => p.partitions))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
picker.innerHTML = (names.length === 1 ? '' : '<option value="">all ' + names.length + '</option>') + names.map(n => '<option>' + esc(n) + '</option>').join('');
chosen = names.length <= 1 ? (names[0] || '') : names.length <= 8 ? '' : busiest();
picker.value = chosen;
picker.addEventListener('change', () => { chosen = picker.value; table(); draw(); });
const wish = new URLSearchParams(location.hash.slice(1));
if (wish.get('scheme')) root.dataset.scheme = wish.get('scheme');
if (names.includes(wish.get('partition'))) { chosen = picker.value = wish.get('partition'); }
if (wish.get('from') && wish.get('to')) look(+wish.get('from') * 1000, +wish.get('to') * 1000);
table();
draw();
})();
