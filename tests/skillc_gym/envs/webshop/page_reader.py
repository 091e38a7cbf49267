"""What a page holds, read as Beautiful Soup would: its texts, tags and links, and what its forms' controls send."""

from __future__ import annotations

from html.parser import HTMLParser

from skillc_gym.envs.webshop.shop.nodes import SEPARATOR

UNSEEN = {"style", "script", "head", "title", "meta"}
VOID = {"input", "img", "br", "meta", "link"}


class Reader(HTMLParser):
    """A page; ``wrong`` are tags that are not closed in order, and what runs scripts or carries a style."""

    def __init__(self, page):
        super().__init__()
        self.links, self.buttons, self.options, self.fields, self.wrong = [], [], [], [], []
        self.inside, self.texts, self.tags = [], [""], []
        self.feed(page)
        self.close()
        self._end()

    def handle_starttag(self, tag, attrs):
        self._end()
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in VOID:
            self.inside.append(tag)
        if tag == "a" and "product-link" in found.get("class", "") and "href" in found:
            self.links.append(found["href"])
        elif tag == "button" and "name" in found:
            self.buttons.append((found["name"], found["value"]))
        elif tag == "input" and found.get("type") == "radio":
            self.options.append((found["name"], found["value"]))
        elif tag == "input":
            self.fields.append(found.get("name"))
        if tag == "script" and found.get("src") != "/static/shop.js":
            self.wrong.append((tag, attrs))
        if any(name.startswith("on") or name == "style" for name in found):
            self.wrong.append((tag, attrs))

    def handle_endtag(self, tag):
        self._end()
        if self.inside.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.inside and self.inside[-1] not in UNSEEN:
            self.texts[-1] += data

    def _end(self):
        if text := self.texts[-1]:
            blank = not text.strip(" \t\n\r\f")
            self.texts[-1] = ("\n" if "\n" in text else " ") if blank else text
            self.texts.append("")


def as_text(page):
    """The page in the mode "text", by upstream's rules."""
    reader = Reader(page)
    assert reader.wrong == []
    return SEPARATOR.join(text.strip() for text in reader.texts[:-1] if text != "\n")
