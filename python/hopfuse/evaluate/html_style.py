"""The style of the HTML pages: light and dark as the reader prefers, readable on a phone."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #fdfdfc; --soft: #767676; --rule: #8884;
  --won: #1d8a5f; --lost: #c0392b;
  --c0: #1f6fb2; --c1: #b85c00; --c2: #1d8a5f; --c3: #8a4fb0; --c4: #b3263e; --c5: #6b6b6b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e6; --paper: #161719; --soft: #9b9b9b; --rule: #8886;
  --won: #4fcf9f; --lost: #f0797f;
  --c0: #6cb2f0; --c1: #f0a04b; --c2: #4fcf9f; --c3: #c79bea; --c4: #f0797f; --c5: #b5b5b5; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em;
  color: var(--ink); background: var(--paper); }
h1, h2, h3 { line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin-top: 2em; border-bottom: 1px solid var(--rule); padding-bottom: 0.2em; }
.wide { overflow-x: auto; }
.panels { display: flex; flex-wrap: wrap; gap: 0 2em; }
.panels > figure { flex: 1 1 400px; max-width: 500px; margin: 0 0 1em; min-width: 0; }
figure { margin: 0 0 1em; max-width: 780px; }
figcaption { font-size: 13px; color: var(--soft); }
table { border-collapse: collapse; margin: 0.6em 0 1.4em; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.2em 0; }
th, td { border-bottom: 1px solid var(--rule); padding: 0.2em 0.7em; text-align: right; vertical-align: top;
  white-space: nowrap; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td:first-child { white-space: normal; min-width: 5em; }
td.text { white-space: normal; min-width: 12em; }
small, tr.soft { color: var(--soft); }
summary { cursor: pointer; }
svg { width: 100%; height: auto; font-size: 12px; display: block; }
.wide > svg { min-width: 460px; max-width: 780px; }
.panels .wide > svg { min-width: 0; }
.wide.graph > svg { min-width: 700px; max-width: none; }
svg text { fill: currentColor; }
svg .axis { stroke: currentColor; }
svg .grid { stroke: var(--rule); }
svg .reference { stroke: currentColor; stroke-dasharray: 5 4; opacity: 0.7; }
svg text.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .won { fill: var(--won); }
svg .lost { fill: var(--lost); }
svg polyline { fill: none; stroke-width: 1.8; }
svg .area { stroke-width: 1.4; fill-opacity: 0.12; }
svg .band { fill-opacity: 0.13; }
svg .edge { fill: none; opacity: 0.75; }
svg .edge.synonym { stroke-dasharray: 7 4; }
svg .edge.context { stroke-dasharray: 2 3; }
svg .edge.in { opacity: 0.45; }
svg .node { fill: var(--paper); stroke: currentColor; }
svg .node.passage, svg .node.hit { stroke: var(--c2); }
svg .node.hit { stroke-width: 2; }
svg text.on-dark { fill: #fff; }
svg text.on-light { fill: #111; }
""" + "".join(
    f"svg polyline.series{at}, svg .edge.series{at} {{ stroke: var(--c{at}); }}\n"
    f"svg .fill.series{at}, svg .band.series{at}, svg .area.series{at} {{ fill: var(--c{at}); }}\n"
    for at in range(6)
)
