"""A shop of a few dozen products, made by rule, whose search counts shared words."""

import os
import sys
import textwrap
from collections import Counter
from pathlib import Path

from skillc_gym.envs.webshop.catalog.product import Product
from skillc_gym.envs.webshop.experts.shopper import words

KINDS = {
    "rug": ("garden", "area rugs", "Home & Kitchen › Home Décor › Rugs"),
    "lamp": ("garden", "table lamps", "Home & Kitchen › Lighting › Lamps"),
    "sandal": ("fashion", "women's sandals", "Clothing › Women › Sandals"),
    "serum": ("beauty", "hair treatments", "Beauty › Hair Care › Serums"),
}
COLORS = ("red", "navy blue", "light pink", "titanium")
MAKERS = ("Alderon", "Brivane", "Corvita", "Delmary", "Elvora", "Fennwick", "Galtree", "Horvex", "Ilmira", "Jorando")


class SmallShop:
    """A catalogue: see `skillc_gym.envs.webshop.catalog.Catalog`."""

    sha256, folder = "0" * 64, Path("/nowhere")

    def __init__(self, makers=MAKERS, extra=()):
        self.products = [*regular(makers)]
        self.products += [make(len(self.products) + place, **given) for place, given in enumerate(extra)]
        self._words = [Counter(words(product.contents)) for product in self.products]
        self._index = {product.asin: product.index for product in self.products}

    def __len__(self):
        return len(self.products)

    def product(self, index):
        return self.products[index]

    listing = product

    def asin(self, index):
        return self.products[index].asin

    def index_of(self, asin):
        return self._index.get(asin)

    def search(self, query, k=50):
        return [index for index, _ in self.search_scores(query, k)]

    def search_scores(self, query, k=50):
        asked = set(words(query))
        scored = [(index, float(sum(word in own for word in asked))) for index, own in enumerate(self._words)]
        return sorted((found for found in scored if found[1]), key=lambda found: (-found[1], found[0]))[:k]

    def human_instructions(self):
        asked = {product.asin: product.attributes[0] for product in self.products[::3]}
        return {asin: [human(f"i want a {said} thing for my home.", said)] for asin, said in asked.items()}


def human(text, attribute):
    return {"instruction": text, "instruction_attributes": [attribute], "instruction_options": ["red"]}


def regular(makers):
    for number, (kind, maker) in enumerate((kind, maker) for kind in KINDS for maker in makers):
        category, query, path = KINDS[kind]
        price = 12.5 + 3 * number
        yield make(
            number,
            title=f"{maker} Soft {kind.title()} for Home",
            description=f"A {kind} by {maker}.\n It lasts.",
            category=category,
            query=query,
            product_category=path,
            pricing=(price, price + 20) if number % 3 == 0 else (price,),
            options={"color": COLORS, "size": ("small", 'large 12" [xl]')} if number % 4 else {},
        )


def make(index, **given):
    pricing = given.get("pricing", (10.0,))
    fields = {
        "title": f"Thing {index}",
        "description": "Plain.",
        "bullets": ("Machine wash: easy.", "", " Long "),
        "category": "garden",
        "query": "things",
        "product_category": "Home › Things",
        "options": {},
        "attributes": ("machine wash", "easy clean"),
        "instruction": f"Find me machine wash {given.get('query', 'things')}",
        "instruction_attributes": ("machine wash",),
        "asin": f"B0{index:08d}",
        "price_tag": " to ".join(f"${price}" for price in pricing),
        "pricing": pricing,
    }
    return Product(index, **{**fields, **given})


RUG = ("search[alderon rug]", "click[b000000000]")
"""The way to the first product's page."""


def process(code, **environment):
    """What starts another process that can import what stands here."""
    here = Path(__file__).parent
    paths = f"{here}{os.pathsep}{here.parents[3]}"
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    return {"args": [sys.executable, "-c", textwrap.dedent(code)], "env": environment, "text": True}


def play(env, *actions, **reset):
    """Plays an episode from its start; returns what the last step, or the reset, gave."""
    observation, info = env.reset(**{"seed": 0, **reset})
    outcome = (observation, 0.0, False, False, info)
    for action in actions:
        outcome = env.step(action)
    return outcome


ODD = [
    {"title": "Boxes", "options": {"form": ('12" [round]', "[b]", "plain"), "color": ("red", "röd")}},
    {"title": "Twins", "options": {"left": ("small", "wide"), "right": ("small", "tall")}},
    {"title": "Labels", "options": {"go": ("< prev", "buy now", "features", "next >", "search", "attributes")}},
    {"title": "Lower", "asin": "b0lowcase"},
    {
        "title": " Blank \n ",
        "description": " \n ",
        "bullets": ("", "x"),
        "options": {"": ("one", "one", "two"), "color": ("color",)},
    },
]
SCRIPT = "<script>document.title='taken'</script>"
HOSTILE = [
    {"title": "Sumptuous", "price_tag": "$1299.5 to $2000.0", "pricing": (1299.5, 2000.0)},
    {
        "title": f'{SCRIPT}"><img src=x onerror=alert(1)> & © \u00a0 rug',
        "description": f"]]> --> </p></main></body> {SCRIPT}\r\nnext\rline\n\n"
        "{{ 7*7 }} {% raw %} &amp; &lt;b&gt;",
        "bullets": ("<b>bold</b>", "", " '\"` ", "\u202eright to left", "http://example.com/track.gif"),
        "options": {
            'siz"e> <i>': ("<u>one</u>", 'a" onclick="x', "b/c", "d\u00a0e", "x=1&y=2", "😀 中文", "two\nlines"),
            "click": ("buy now", "one", "red"),
            "o.color": ("red", "blue green"),
        },
        "main_image": 'http://example.com/a.jpg" onload="x',
        "price_tag": "$1.0",
        "pricing": (1.0,),
    },
    {"title": "A rug by id", "asin": 'B"<&>/?#%', "category": "beauty"},
    {"title": "A rug named dots", "asin": "..", "category": "grocery"},
    {"title": "\u0301combining \ufeff rug", "description": "x" * 70_000, "category": "fashion"},
]
SHOP = SmallShop(makers=("Alderon", "Brivane"), extra=[*ODD, *HOSTILE])
"""A shop of products whose texts, options and ids are what a page must not take for its own."""
