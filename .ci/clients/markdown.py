"""Renders the lines of standard input (of TestRendered) with mistune and
markdown-it-py, and fails if anything in them except Ibid's own links is live."""

import html.parser
import json
import sys

import markdown_it
import mistune

PLAIN = set("p em strong del s dl dt dd code pre ul ol li h1 h2 h3 h4 h5 h6 hr br blockquote table thead tbody tr th td input".split())
fuzzy = markdown_it.MarkdownIt("gfm-like", {"html": True})
RENDERERS = {
    "mistune " + mistune.__version__: mistune.create_markdown(
        escape=False, plugins=["strikethrough", "footnotes", "table", "url", "task_lists", "def_list", "abbr"]
    ),
    "markdown-it-py " + markdown_it.__version__ + ", fuzzy links": fuzzy.render,
}


class Live(html.parser.HTMLParser):
    """Collects the elements that are live."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if dict(attrs).get("href") != "/documents/own" if tag == "a" else tag not in PLAIN:
            self.found.append(self.get_starttag_text())


bad = texts = 0
for line in sys.stdin:
    case = json.loads(line)
    texts += 1
    for name, render in RENDERERS.items():
        page = Live()
        page.feed(render(case["markdown"]))
        if page.found:
            bad += 1
            print(f"{name}: {case['name']}: {page.found[0][:200]}\n  in {case['markdown']!r}", file=sys.stderr)
print(f"figure: {texts} texts by {len(RENDERERS)} renderers ({'; '.join(RENDERERS)}): {bad} with anything live")
sys.exit(1 if bad or not texts else 0)
