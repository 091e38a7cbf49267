"""What a house may hold: rooms, receptacles, objects, and what may lie where.

Counts and pairs follow the 3,553 training games of ALFWorld (ALFRED's floor plans in AI2-THOR).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ABLE", "CONTAINS", "LAMPS", "OPENABLE", "ROOMS", "Room", "able"]


@dataclass(frozen=True)
class Room:
    """A kind of room.

    Attributes:
        first_scene: Number of its first scene; ALFWorld counts thirty from there.
        receptacles: Receptacle -> (share of rooms that have one, typical number where there are any).
        objects: What lies about in it.
    """

    first_scene: int
    receptacles: dict[str, tuple[float, int]]
    objects: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENABLE = frozenset({"Cabinet", "Drawer", "Microwave", "Fridge", "Safe"})
LAMPS = {"DeskLamp": ("Desk", "SideTable", "Dresser", "Shelf"), "FloorLamp": ("SideTable", "Desk", "Dresser", "Shelf")}
"""Lamp -> receptacles it may stand on."""

ROOMS: dict[str, Room] = {
    "kitchen": Room(
        1,
        {
            "CounterTop": (1.0, 2),
            "SinkBasin": (1.0, 1),
            "Microwave": (1.0, 1),
            "Fridge": (1.0, 1),
            "Cabinet": (1.0, 13),
            "Drawer": (0.97, 6),
            "StoveBurner": (1.0, 4),
            "GarbageCan": (1.0, 1),
            "CoffeeMachine": (1.0, 1),
            "Toaster": (1.0, 1),
            "DiningTable": (0.61, 1),
            "Shelf": (0.17, 3),
            "SideTable": (0.11, 1),
        },
        _names(
            "Apple Bowl Bread ButterKnife Cup DishSponge Egg Fork Glassbottle Kettle Knife Ladle Lettuce Mug Pan "
            "PepperShaker Plate Pot Potato SaltShaker SoapBottle Spatula Spoon Statue Tomato Vase WineBottle"
        ),
    ),
    "living room": Room(
        201,
        {
            "Sofa": (1.0, 1),
            "SideTable": (0.82, 2),
            "CoffeeTable": (0.86, 1),
            "ArmChair": (0.92, 1),
            "Drawer": (0.76, 5),
            "GarbageCan": (1.0, 1),
            "Shelf": (0.39, 6),
            "DiningTable": (0.47, 1),
            "Dresser": (0.33, 1),
            "Ottoman": (0.13, 1),
            "Cabinet": (0.13, 4),
            "Safe": (0.05, 1),
        },
        _names(
            "Book Bowl Box Candle CellPhone CreditCard KeyChain Laptop Newspaper Pen Pencil Pillow Plate RemoteControl "
            "Statue TissueBox Vase Watch WateringCan"
        ),
    ),
    "bedroom": Room(
        301,
        {
            "Bed": (1.0, 1),
            "Desk": (0.71, 1),
            "SideTable": (0.62, 1),
            "Drawer": (0.96, 6),
            "Dresser": (0.48, 1),
            "Shelf": (0.64, 4),
            "GarbageCan": (1.0, 1),
            "LaundryHamper": (0.26, 1),
            "Cabinet": (0.18, 3),
            "ArmChair": (0.2, 1),
            "Safe": (0.14, 1),
            "DiningTable": (0.11, 1),
        },
        _names(
            "AlarmClock BaseballBat BasketBall Book Bowl Box CD CellPhone Cloth CreditCard KeyChain Laptop Mug Pen "
            "Pencil Pillow RemoteControl Statue TennisRacket TissueBox Vase Watch"
        ),
    ),
    "bathroom": Room(
        401,
        {
            "SinkBasin": (1.0, 1),
            "Toilet": (1.0, 1),
            "CounterTop": (0.88, 1),
            "Cabinet": (0.47, 4),
            "Drawer": (0.59, 5),
            "GarbageCan": (1.0, 1),
            "BathtubBasin": (0.71, 1),
            "Shelf": (0.21, 2),
            "HandTowelHolder": (1.0, 1),
            "ToiletPaperHanger": (1.0, 1),
            "SideTable": (0.07, 1),
            "Dresser": (0.09, 1),
            "Cart": (0.04, 1),
        },
        _names("Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper"),
    ),
}

ABLE: dict[str, frozenset[str]] = {
    "cleanable": _set(
        "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan Plate Pot Potato "
        "SoapBar Spatula Spoon Tomato"
    ),
    "heatable": _set("Apple Bread Cup Egg Mug Plate Potato Tomato"),
    "coolable": _set("Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle"),
    "sliceable": _set("Apple Bread Egg Lettuce Potato Tomato"),
    "isReceptacleObject": _set("Bowl Box Cup Mug Pan Plate Pot"),
}
"""Property -> the objects that have it. Everything listed in a room can be picked up."""


def able(thing: str, ability: str) -> bool:
    """Whether an object has a property such as "heatable"."""
    return thing in ABLE[ability]


_CONTAINS = {
    "ArmChair": "Book Box CellPhone Cloth CreditCard KeyChain Laptop Newspaper Pillow RemoteControl",
    "BathtubBasin": "Cloth DishSponge HandTowel SoapBar",
    "Bed": "BaseballBat BasketBall Book CellPhone Laptop Pillow TennisRacket",
    "Cabinet": "Book Bowl Box CD Candle Cloth Cup DishSponge Glassbottle HandTowel Kettle Ladle Mug Newspaper Pan "
    "PepperShaker Plate Pot SaltShaker SoapBar SoapBottle SprayBottle TissueBox ToiletPaper Vase WateringCan "
    "WineBottle",
    "Cart": "Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper",
    "CoffeeMachine": "Mug",
    "CoffeeTable": "Book Bowl Box Candle CellPhone CreditCard KeyChain Laptop Newspaper Pen Pencil Plate "
    "RemoteControl Statue TissueBox Vase Watch WateringCan",
    "CounterTop": "AlarmClock Apple Book Bowl Bread ButterKnife CD Candle CellPhone Cloth CreditCard Cup "
    "DishSponge Egg Fork Glassbottle HandTowel Kettle KeyChain Knife Ladle Laptop Lettuce Mug Pan Pen Pencil "
    "PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle Statue "
    "TissueBox ToiletPaper Tomato Vase WineBottle",
    "Desk": "AlarmClock BasketBall Book Bowl Box CD CellPhone Cloth CreditCard KeyChain Laptop Mug Pen Pencil "
    "RemoteControl Statue TennisRacket TissueBox Vase Watch WateringCan",
    "DiningTable": "AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle CellPhone "
    "Cloth CreditCard Cup DishSponge Egg Fork Glassbottle Kettle KeyChain Knife Ladle Laptop Lettuce Mug Newspaper "
    "Pan Pen Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBottle Spatula Spoon SprayBottle "
    "Statue TennisRacket TissueBox Tomato Vase Watch WateringCan WineBottle",
    "Drawer": "Book ButterKnife CD Candle CellPhone Cloth CreditCard DishSponge Fork HandTowel KeyChain Knife "
    "Ladle Newspaper Pen Pencil PepperShaker RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle "
    "TissueBox ToiletPaper Watch WateringCan",
    "Dresser": "AlarmClock BasketBall Book Bowl Box CD Candle CellPhone Cloth CreditCard KeyChain Laptop Mug "
    "Newspaper Pen Pencil Plate RemoteControl SprayBottle Statue TennisRacket TissueBox ToiletPaper Vase Watch "
    "WateringCan",
    "Fridge": "Apple Bowl Bread Cup Egg Glassbottle Lettuce Mug Pan Plate Pot Potato Tomato WineBottle",
    "GarbageCan": "Apple Bread CD Cloth DishSponge Egg HandTowel Lettuce Newspaper Pen Pencil Potato SoapBar "
    "SoapBottle SprayBottle TissueBox ToiletPaper Tomato WineBottle",
    "HandTowelHolder": "HandTowel",
    "LaundryHamper": "Cloth",
    "Microwave": "Apple Bowl Bread Cup Egg Glassbottle Mug Plate Potato Tomato",
    "Ottoman": "Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl",
    "Safe": "CD CellPhone CreditCard KeyChain Statue Vase",
    "Shelf": "AlarmClock Book Bowl Box CD Candle CellPhone Cloth CreditCard Cup DishSponge Glassbottle HandTowel "
    "Kettle KeyChain Mug Newspaper Pen Pencil PepperShaker Plate Pot RemoteControl SaltShaker SoapBar SoapBottle "
    "SprayBottle Statue TissueBox ToiletPaper Vase Watch WateringCan WineBottle",
    "SideTable": "AlarmClock Apple BaseballBat BasketBall Book Bowl Box Bread ButterKnife CD Candle CellPhone "
    "Cloth CreditCard Cup DishSponge Egg Fork HandTowel Kettle KeyChain Knife Laptop Lettuce Mug Newspaper Pan Pen "
    "Pencil PepperShaker Plate Pot Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle "
    "Statue TennisRacket TissueBox ToiletPaper Tomato Vase Watch WateringCan WineBottle",
    "SinkBasin": "Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Glassbottle HandTowel Kettle Knife Ladle "
    "Lettuce Mug Pan Plate Pot Potato SoapBar Spatula Spoon Tomato",
    "Sofa": "Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl",
    "StoveBurner": "Kettle Pan Pot",
    "TVStand": "TissueBox",
    "Toaster": "",
    "Toilet": "Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper",
    "ToiletPaperHanger": "ToiletPaper",
    "TowelHolder": "Towel",
}
CONTAINS: dict[str, frozenset[str]] = {receptacle: _set(names) for receptacle, names in _CONTAINS.items()}
"""Receptacle -> the objects that may be put into or onto it."""
