"""The words that generated products are made of."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

__all__ = ["ADJECTIVES", "CHOICES", "KINDS", "MATERIALS", "PLACES", "SENTENCES", "SYLLABLES", "Kind"]


class Kind(NamedTuple):
    """A kind of product.

    Attributes:
        category: One of upstream's five.
        query: The query that finds it.
        path: Its path of categories.
        nouns: What titles call it.
        attributes: What it may be said to be.
        groups: The groups of options it may have, and the choices of each.
        price: The usual lowest and highest price.
    """

    category: str
    query: str
    path: str
    nouns: tuple[str, ...]
    attributes: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    price: tuple[float, float]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


CHOICES = {
    "color": _words(
        "Black,White,Navy Blue,Light Grey,Wine Red,Pink,Army Green,Khaki,Beige,Royal Purple,Rose Gold,Burgundy,"
        "Champagne,Silver,Brown,Orange,Yellow,Teal,Dark Blue,Off-White,Turquoise,Coffee,Mint,Lavender,"
        "Black/White,Grey/Pink,A-Black,B-Blue,Multicolor,Charcoal,Rustic Brown,Natural,Espresso,Clear,Gold,"
        "Antique Wood,Heather Grey,Leopard,Floral"
    ),
    "clothes": _words("X-Small,Small,Medium,Large,X-Large,XX-Large,3X-Large,4X-Large,5X-Large,Large Tall"),
    "shoes": _words("5,5.5,6,6.5,7,7.5,7.5 Wide,8,8.5,9,9.5,10,10.5,11,12,13,10 Women/8 Men,8.5 Women/7 Men"),
    "volume": _words(
        "1 Fl Oz (Pack of 1),2 Ounce,3.4 Fl Oz,4 Ounce (Pack of 2),8 Fl Oz,12 Ounce (Pack of 6),16 Ounce,"
        "1 Pound,100ml,250ml,500ml,1000ml,6 Count (Pack of 4),24 Count"
    ),
    "length": _words("3 ft,6 ft,10 ft,15 ft,25 Feet,50 Feet,1m,2m,5m,16 Inch,18 Inch,20 Inch,24 Inch"),
    "room": _words(
        'Twin,Full,Queen,King,California King,16"x20",18" x 18",24" x 36",2 x 3 ft,5 x 7 ft,8 ft x 10 ft,'
        "Round 6 ft,72 in,84 in,Set of 2,Set of 4"
    ),
    "memory": _words("16GB,32GB,64GB,128GB,256GB,512GB,1TB,8GB RAM | 256GB SSD,16GB RAM | 1TB SSD"),
    "flavor": _words(
        "Chocolate,Vanilla,Strawberry,Sea Salt,Barbecue,Honey Mustard,Original,Spicy,Peanut Butter,"
        "Apple Cinnamon,Lemon,Mixed Berry,Salted Caramel,Garlic,Coconut,Green Tea,Variety Pack"
    ),
    "scent": _words("Lavender,Unscented,Eucalyptus,Rose,Citrus,Sandalwood,Ocean Breeze,Coconut,Jasmine,Vanilla"),
    "style": _words("Classic,Modern,With Stand,Without Stand,Left Hand,Right Hand,Compact,Deluxe,Basic,Pro"),
    "fit": _words("Men,Women,Youth,Regular,Relaxed,Slim"),
    "pattern": _words("Solid,Stripe,Plaid,Geometric,Paisley,Dots,Marble,Tropical Leaves"),
}
"""What an option of each sort can be."""

_BEAUTY = _words(
    "cruelty free,long lasting,sensitive skin,dry skin,paraben free,sulfate free,oil free,alcohol free,"
    "clinically proven,natural ingredients,tea tree,essential oils,coconut oil,argan oil,hyaluronic acid,"
    "fragrance free,dermatologist tested,travel size,leak proof,easy apply,dark circles,fine lines,hair growth,"
    "damaged hair,eco friendly,high quality"
)
_FASHION = _words(
    "machine wash,hand wash,long sleeve,short sleeve,rubber sole,slim fit,classic fit,relaxed fit,"
    "elastic waist,high waist,arch support,ankle strap,faux fur,polyester spandex,cotton spandex,tummy control,"
    "drawstring closure,button closure,memory foam,open toe,closed toe,non slip,daily wear,moisture wicking,"
    "quick drying,straight leg,stretch fabric"
)
_ELECTRONICS = _words(
    "high speed,fast charging,wireless charging,noise cancelling,stereo sound,high definition,ultra hd,"
    "plug play,easy install,easy use,gold plated,water resistant,aluminum alloy,hands free,batteries included,"
    "usb port,long lasting,light weight,carrying case,tempered glass,motion detection,quad core,remote control,"
    "dual band,bluetooth connection,output protection"
)
_GARDEN = _words(
    "living room,dining room,home office,solid wood,easy assemble,assembly required,easy clean,stainless steel,"
    "space saving,storage space,non slip,machine washable,heavy duty,memory foam,king size,queen size,"
    "faux leather,mid century,contemporary design,spot clean,white finish,metal legs,eco friendly,high density,"
    "tempered glass,ready hang"
)
_GROCERY = _words(
    "gluten free,non gmo,sugar free,low carb,low sodium,dairy free,nut free,soy free,plant based,keto friendly,"
    "high protein,artificial colors,artificial flavors,usda organic,certified organic,ready eat,"
    "individually wrapped,resealable bag,high fructose,caffeine free,natural flavors,grass fed,perfect gift,"
    "protein serving,fat free,kosher certified"
)
_SHELVES = {
    "beauty": ("Beauty & Personal Care", _BEAUTY, (4.0, 60.0)),
    "fashion": ("Clothing, Shoes & Jewelry", _FASHION, (8.0, 120.0)),
    "electronics": ("Electronics", _ELECTRONICS, (7.0, 900.0)),
    "garden": ("Home & Kitchen", _GARDEN, (10.0, 1500.0)),
    "grocery": ("Grocery & Gourmet Food", _GROCERY, (3.0, 70.0)),
}


def _kind(line: str) -> Kind:
    category, query, path, nouns, groups = (part.strip() for part in line.split(";"))
    top, attributes, price = _SHELVES[category]
    named = tuple((name.replace("_", " "), sort) for name, _, sort in (pair.partition(":") for pair in groups.split()))
    return Kind(category, query, f"{top} › {path}", tuple(nouns.split("|")), attributes, named, price)


def _lines() -> list[str]:
    text = resources.files(__package__).joinpath("generate_kinds.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


KINDS = tuple(map(_kind, _lines()))
"""All kinds of products."""

SYLLABLES = _words(
    "ar,bel,cor,da,el,fen,gor,hal,is,jo,ka,lum,mer,no,or,pa,qui,ron,sa,tor,ul,ven,wick,yo,zan,del,ti,ra,lo"
)

SENTENCES = (
    "This {noun} is made of {material} and {adjective} enough for years of use.",
    "{attribute}: our {noun} was designed with {attribute} in mind, so that you can enjoy it every day.",
    "It measures {number} x {other} inches and weighs {small} pounds.",
    "Great gift for birthdays, Christmas, Mother's Day, Father's Day and any other occasion.",
    "If you have any questions about the {brand} {noun}, please contact us and we will answer within 24 hours.",
    "The {adjective} design fits your {place} and matches most styles.",
    "Package includes: {small} x {noun}, 1 x user manual.",
    "Please allow {small}-{number} mm difference due to manual measurement; colors may look different on your monitor.",
    "We use only {adjective} {material}, tested {number} times before it leaves our factory.",
    "{adjective} and {adjective2}, it is easy to carry, to store and to clean.",
    "What makes it different? {brand}'s {word} technology keeps it {adjective2} for longer.",
    "Suitable for {place}, {place2}, travel, school, parties and daily life.",
    "★{attribute}★ The {noun} comes with {attribute2}; no tools needed.",
    "【{attribute}】{brand} {noun}s are {adjective}, {adjective2} and safe for the whole family.",
    "Model {model} works with the {word} series; it\u2019s not compatible with {word2}.",
    "100% satisfaction guarantee: return it within {number} days for a full refund.",
)

MATERIALS = _words(
    "cotton,polyester,stainless steel,solid pine,bamboo,leather,ceramic,silicone,linen,glass,rubber,velvet,"
    "organic oats,aluminum,microfiber,nylon,natural fibre,recycled plastic"
)
ADJECTIVES = _words(
    "durable,soft,elegant,lightweight,premium,comfortable,stylish,sturdy,breathable,compact,gentle,classic,"
    "modern,portable,adjustable,delicate,fresh,smooth,practical,unique,cozy,versatile,reliable,vintage,"
    "luxurious"
)
PLACES = _words(
    "living room,bedroom,kitchen,bathroom,office,garden,dorm,balcony,hallway,gym,beach,campsite,restaurant,"
    "studio,garage"
)
