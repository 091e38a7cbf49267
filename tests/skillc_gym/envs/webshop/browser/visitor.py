"""A visitor of the site without a browser: reads pages and sends their forms as a browser would."""

import http.client
import json
from urllib.parse import urlencode, urljoin, urlsplit

from page_reader import Reader


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

    def buy(self, task, *, person=False):
        """Opens an episode and buys the first product that a search finds."""
        self.begin(task, person=person)
        self.post(("search_query", "alderon rug"))
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
