"""What a page holds, read as Beautiful Soup would, and a visitor of the site who reads and sends its forms so."""

import http.client
import json
from html.parser import HTMLParser
from urllib.parse import quote, urlencode, urljoin, urlsplit

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


class Visitor:
    """Visits a site at an address; redirections are followed."""

    def __init__(self, url):
        self.host = urlsplit(url).netloc
        self.at, self.page, self.status, self.headers = "/", "", 0, {}

    def ask(self, method, path, body=b"", **headers):
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            self.status, self.page = answer.status, answer.read().decode("utf-8", "replace")
            self.headers = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        return self.status

    def get(self, path, **headers):
        before, self.at = self.at, urljoin(self.at, path)
        referer = {"referer": f"http://{self.host}{before}"}
        status = self.ask("GET", self.at, **{**referer, **headers})
        return self.get(self.headers["location"], **headers) if status == 303 else status

    def post(self, *pairs, to=None, **headers):
        kind = {"content-type": "application/x-www-form-urlencoded"}
        body = urlencode(pairs, errors="surrogatepass").encode()
        status = self.ask("POST", to or self.at, body, **{**kind, **headers})
        return self.get(self.headers["location"], **headers) if status == 303 else status

    def begin(self, task, *, person=False):
        """Opens an episode."""
        if person:
            return self.post(("task", str(task)), to="/episodes")
        self.ask("POST", "/episodes", json.dumps({"task": task}).encode(), **{"content-type": "application/json"})
        return self.get(json.loads(self.page)["address"])

    def search(self, words):
        return self.post(("search_query", words))

    def open(self, asin):
        """Follows the link to a product among the results."""
        return self.get(next(link for link in Reader(self.page).links if f"asin={quote(asin, safe='')}&" in link))

    def buy(self, task, *, person=False):
        """Opens an episode and buys the first product that a search finds."""
        self.begin(task, person=person)
        self.search("alderon rug")
        self.get(Reader(self.page).links[0])
        return self.post(("click", "buy now"))

    @property
    def ticket(self):
        return self.at.split("/")[2]

    @property
    def address(self):
        return self.at.split("/", 3)[3]

    @property
    def fragment(self):
        return self.page.partition('tabindex="-1">')[2].partition("</main>\n")[0]
