"""A small shop with products whose texts, options and ids are what a page must not take for its own."""

from small_shop import SmallShop
from test_pages import ODD

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
