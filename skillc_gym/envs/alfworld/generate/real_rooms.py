"""What the rooms of ALFWorld's 3,553 training games hold: how many of what, and where things lie at the start.

Counted over their 108 scenes, 27 of each kind of room, and rounded; houses of size "real" follow these tables.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

__all__ = ["DOORS", "FIXED", "LAMP_SHARE", "ROOM_WEIGHTS", "Furniture", "furniture", "inventory", "places"]

DOORS = 0.8
"""Share of cabinets and drawers that open; the others are like shelves, as where AI2-THOR found no way to open them."""
LAMP_SHARE = {"bedroom": 0.7, "living room": 0.25}
"""Room -> share of its scenes that have desk lamps, asked for or not."""
FIXED = frozenset({"HousePlant", "Television"})
"""Objects that are seen and cannot be taken."""

ROOM_WEIGHTS: dict[str, dict[str, int]] = {
    "pick": {"kitchen": 79, "living room": 210, "bedroom": 237, "bathroom": 264},
    "look": {"living room": 51, "bedroom": 257},
    "clean": {"kitchen": 501, "bathroom": 149},
    "heat": {"kitchen": 459},
    "cool": {"kitchen": 533},
    "pick2": {"kitchen": 124, "living room": 216, "bedroom": 240, "bathroom": 233},
}
"""Task type -> room -> number of training games."""

# Room -> receptacle -> its numbers in 27 scenes; "0x24 3x2 4" means none in 24 scenes, three in two, four in one.
_FURNITURE = {
    "kitchen": {
        "SinkBasin": "1x27",
        "StoveBurner": "4x26 7",
        "GarbageCan": "1x26 2",
        "Fridge": "1x23 2x4",
        "Cabinet": "2 4x2 8 9x2 10x3 11x2 12 13x4 15 17 18 19 20 21x3 23 26 27",
        "CoffeeMachine": "1x27",
        "Toaster": "1x27",
        "CounterTop": "1x3 2x12 3x9 4x3",
        "Microwave": "1x23 2x4",
        "Drawer": "0 1x2 2 3x5 4x4 5x4 6x3 8x2 9 12 13x2 27",
        "DiningTable": "0x12 1x10 2x3 3x2",
        "Shelf": "0x23 3x2 4x2",
        "SideTable": "0x24 2x3",
        "Safe": "0x26 1",
    },
    "living room": {
        "GarbageCan": "1x27",
        "Sofa": "1x16 2x9 3x2",
        "ArmChair": "0x2 1x12 2x8 3x5",
        "CoffeeTable": "0x4 1x18 2x5",
        "SideTable": "0x6 1x8 2x7 3x5 5",
        "Drawer": "0x6 1x5 2x2 4x6 6x2 7x2 8x2 12 21",
        "DiningTable": "0x13 1x11 2x2 3",
        "TVStand": "0x15 1x10 2x2",
        "Shelf": "0x17 1 2 3 4 5 6 8x2 13 14",
        "Dresser": "0x18 1x8 2",
        "Ottoman": "0x23 1x3 2",
        "Cabinet": "0x24 1 4 8",
        "Desk": "0x26 1",
        "Safe": "0x26 2",
    },
    "bedroom": {
        "GarbageCan": "1x27",
        "Bed": "1x21 2x6",
        "Drawer": "0 2x7 3x3 4x2 5x4 6x2 8 10x2 11x2 13 16 17",
        "Desk": "0x9 1x14 2x4",
        "Shelf": "0x9 1x6 2x2 3 5x3 6 7 8 9 12 15",
        "SideTable": "0x9 1x12 2x6",
        "Dresser": "0x14 1x11 2x2",
        "LaundryHamper": "0x20 1x7",
        "ArmChair": "0x21 1x3 2x2 3",
        "Safe": "0x23 1x4",
        "Cabinet": "0x23 1 2 4x2",
        "DiningTable": "0x23 1x2 2x2",
        "CounterTop": "0x26 1",
    },
    "bathroom": {
        "SinkBasin": "1x14 2x13",
        "GarbageCan": "1x25 2x2",
        "Toilet": "1x14 2x13",
        "HandTowelHolder": "1x16 2x10 4",
        "ToiletPaperHanger": "1x27",
        "TowelHolder": "1x19 2x8",
        "CounterTop": "0x4 1x16 2x5 3x2",
        "BathtubBasin": "0x8 1x19",
        "Drawer": "0x12 1x2 2x3 4x4 6x2 8x4",
        "Cabinet": "0x14 2 4x7 5x4 9",
        "Shelf": "0x20 1x3 2x2 3 4",
        "Cart": "0x25 2x2",
        "Dresser": "0x25 1 2",
        "SideTable": "0x25 1 2",
    },
}

# Room -> object:share of scenes in percent:mean number where there is any.
_INVENTORY = {
    "kitchen": "Apple:100:2.1 Book:11:1.5 Bowl:100:2.0 Bread:100:1.6 ButterKnife:97:1.9 CellPhone:11:1.9 "
    "CreditCard:9:2.0 Cup:100:2.1 DishSponge:100:2.0 Egg:100:2.1 Fork:100:2.0 Glassbottle:23:2.0 HousePlant:36:1.1 "
    "Kettle:52:1.8 Knife:100:1.9 Ladle:35:2.0 Lettuce:100:1.9 Mug:100:2.0 Pan:100:1.4 PaperTowelRoll:35:1.0 "
    "Pen:6:2.0 Pencil:7:1.8 PepperShaker:100:2.1 Plate:100:1.8 Pot:100:1.6 Potato:100:2.0 SaltShaker:100:2.0 "
    "SoapBottle:100:1.9 Spatula:100:1.9 Spoon:100:2.0 SprayBottle:7:1.9 Statue:15:1.8 Tomato:100:2.1 Vase:15:2.5 "
    "WineBottle:42:2.0",
    "living room": "Book:26:2.0 Bowl:11:2.0 Box:86:1.4 Candle:9:2.4 CellPhone:21:2.2 CreditCard:100:2.3 "
    "HousePlant:66:1.0 KeyChain:92:1.9 Laptop:100:1.5 Newspaper:62:2.2 Pen:20:2.1 Pencil:16:2.1 Pillow:100:1.2 "
    "Plate:35:1.8 RemoteControl:97:2.2 Statue:96:2.4 Television:71:1.0 TissueBox:34:2.3 Vase:49:3.0 Watch:49:2.2 "
    "WateringCan:9:1.7",
    "bedroom": "AlarmClock:99:1.8 Book:100:2.0 Bowl:45:1.6 Box:9:1.0 CD:93:2.1 "
    "CellPhone:100:2.3 Cloth:19:1.9 CreditCard:100:2.1 HousePlant:23:1.0 KeyChain:98:2.1 Laptop:100:1.6 Mug:49:1.9 "
    "Pen:100:2.2 Pencil:100:2.1 Pillow:100:1.7 RemoteControl:12:1.9 Statue:15:1.5 TeddyBear:27:1.0 "
    "TissueBox:14:2.0 Vase:6:2.2 Watch:7:2.3",
    "bathroom": "Candle:97:2.1 Cloth:100:2.1 DishSponge:23:2.4 HandTowel:100:1.3 HousePlant:4:1.0 "
    "PaperTowelRoll:13:1.0 SoapBar:97:2.2 SoapBottle:96:2.1 SprayBottle:100:2.3 TissueBox:25:2.0 ToiletPaper:99:2.2 "
    "Towel:100:1.1",
}

# Object -> receptacle and the percentage of such objects that lie there.
_PLACES = {
    "AlarmClock": "Desk 34 Shelf 21 SideTable 19 Dresser 17 DiningTable 7 CounterTop 1",
    "Apple": "CounterTop 25 Fridge 24 DiningTable 15 Microwave 13 GarbageCan 12 SinkBasin 9 SideTable 2",
    "Book": "Bed 37 Desk 14 CounterTop 10 Drawer 10 Dresser 6 DiningTable 5 Cabinet 4 SideTable 4 CoffeeTable 3 "
    "ArmChair 3 Sofa 2 Shelf 2",
    "Bowl": "Cabinet 30 CounterTop 18 Fridge 17 DiningTable 15 Desk 6 Shelf 5 SinkBasin 3 Microwave 2 Dresser 2 "
    "SideTable 1 CoffeeTable 1",
    "Box": "DiningTable 23 Sofa 22 CoffeeTable 21 Shelf 8 SideTable 7 Desk 6 Cabinet 4 Dresser 3 ArmChair 3 TVStand 3",
    "Bread": "CounterTop 55 DiningTable 31 Fridge 12 SideTable 1 GarbageCan 1",
    "ButterKnife": "CounterTop 59 DiningTable 27 Drawer 8 SinkBasin 5 SideTable 1",
    "CD": "Drawer 28 Desk 20 Dresser 14 SideTable 13 GarbageCan 8 Shelf 7 DiningTable 6 Cabinet 2 Safe 1",
    "Candle": "CounterTop 28 Toilet 28 Drawer 12 Cabinet 12 Shelf 6 SideTable 6 CoffeeTable 2 DiningTable 2 Cart 2 "
    "Dresser 1 TVStand 1",
    "CellPhone": "Bed 21 Drawer 21 Desk 13 Dresser 9 SideTable 9 CounterTop 7 DiningTable 6 Shelf 6 ArmChair 3 "
    "CoffeeTable 2 Safe 2 Sofa 1",
    "Cloth": "BathtubBasin 30 Cabinet 20 CounterTop 17 Drawer 15 SinkBasin 8 Shelf 4 Toilet 3 Cart 1 Dresser 1",
    "CreditCard": "Drawer 24 Shelf 13 SideTable 12 Desk 9 Dresser 9 Sofa 7 ArmChair 6 CounterTop 5 CoffeeTable 5 "
    "DiningTable 5 TVStand 3",
    "Cup": "Cabinet 23 CounterTop 21 Fridge 21 DiningTable 15 SinkBasin 9 Microwave 7 SideTable 2 Shelf 2",
    "DeskLamp": "SideTable 40 Desk 29 Dresser 21 Shelf 9",
    "DishSponge": "CounterTop 25 Cabinet 22 Drawer 21 DiningTable 12 SinkBasin 8 GarbageCan 5 Shelf 3 BathtubBasin 2 "
    "SideTable 1 Toilet 1",
    "Egg": "Fridge 25 CounterTop 24 SinkBasin 13 GarbageCan 13 Microwave 12 DiningTable 12 SideTable 2",
    "FloorLamp": "SideTable 40 Desk 29 Dresser 21 Shelf 9",
    "Fork": "CounterTop 44 DiningTable 24 Drawer 22 SinkBasin 9 SideTable 2",
    "Glassbottle": "Cabinet 31 CounterTop 27 DiningTable 14 SinkBasin 9 Fridge 9 GarbageCan 7 Shelf 4",
    "HandTowel": "HandTowelHolder 96 CounterTop 4",
    "HousePlant": "CounterTop 43 SideTable 16 DiningTable 14 Shelf 7 CoffeeTable 7 Desk 5 Dresser 4 TVStand 1",
    "Kettle": "StoveBurner 41 CounterTop 25 Cabinet 24 DiningTable 7 SinkBasin 2",
    "KeyChain": "Drawer 23 SideTable 16 Shelf 12 Desk 12 Dresser 11 CoffeeTable 7 DiningTable 5 ArmChair 5 Sofa 4 "
    "TVStand 3 Safe 3",
    "Knife": "CounterTop 48 DiningTable 25 Drawer 21 SinkBasin 5 SideTable 1",
    "Ladle": "CounterTop 41 Cabinet 25 Drawer 17 DiningTable 14 SinkBasin 2",
    "Laptop": "Bed 47 Desk 12 Sofa 10 DiningTable 9 CoffeeTable 9 Dresser 5 SideTable 3 ArmChair 2 TVStand 2 Ottoman 1",
    "Lettuce": "CounterTop 41 DiningTable 28 Fridge 23 SinkBasin 5 SideTable 2 GarbageCan 1",
    "Mug": "CounterTop 24 CoffeeMachine 15 Cabinet 14 Fridge 12 DiningTable 10 Microwave 6 Desk 5 SinkBasin 5 Shelf 4 "
    "SideTable 3 Dresser 2",
    "Newspaper": "Sofa 20 CoffeeTable 18 DiningTable 17 SideTable 14 Shelf 11 Dresser 8 ArmChair 7 TVStand 3 Drawer 2 "
    "Ottoman 1",
    "Pan": "StoveBurner 52 CounterTop 33 Cabinet 7 DiningTable 4 Fridge 4",
    "PaperTowelRoll": "CounterTop 54 GarbageCan 15 DiningTable 14 Shelf 10 Toilet 4 SideTable 2 Cart 1",
    "Pen": "Desk 22 Drawer 17 Dresser 14 SideTable 13 Shelf 13 DiningTable 9 CounterTop 5 CoffeeTable 3 GarbageCan 2 "
    "TVStand 1",
    "Pencil": "Drawer 20 Desk 19 SideTable 17 Shelf 14 Dresser 10 DiningTable 8 GarbageCan 6 CounterTop 4 "
    "CoffeeTable 2 TVStand 1",
    "PepperShaker": "Cabinet 33 CounterTop 30 DiningTable 16 Drawer 15 Shelf 3 SideTable 2",
    "Pillow": "Bed 69 Sofa 24 ArmChair 6",
    "Plate": "Cabinet 36 CounterTop 28 DiningTable 19 Fridge 8 Shelf 3 SinkBasin 2 CoffeeTable 2 SideTable 1",
    "Pot": "StoveBurner 73 CounterTop 14 Fridge 4 DiningTable 4 Cabinet 3",
    "Potato": "CounterTop 28 Fridge 26 DiningTable 17 SinkBasin 11 Microwave 10 GarbageCan 6 SideTable 1",
    "RemoteControl": "CoffeeTable 20 Sofa 16 SideTable 13 DiningTable 10 Drawer 8 ArmChair 8 Dresser 7 TVStand 7 "
    "Desk 5 Shelf 3 Ottoman 1",
    "SaltShaker": "CounterTop 32 Cabinet 32 DiningTable 18 Drawer 14 Shelf 3 SideTable 2",
    "SoapBar": "CounterTop 20 Toilet 16 SinkBasin 15 Cabinet 12 BathtubBasin 12 Drawer 11 GarbageCan 7 Shelf 4 "
    "SideTable 2 Cart 1",
    "SoapBottle": "CounterTop 32 Cabinet 28 DiningTable 15 GarbageCan 10 Toilet 6 Shelf 5 Drawer 2 SideTable 1 "
    "Dresser 1",
    "Spatula": "CounterTop 45 DiningTable 25 Drawer 21 SinkBasin 9 SideTable 1",
    "Spoon": "CounterTop 38 Drawer 28 DiningTable 22 SinkBasin 11 SideTable 2",
    "SprayBottle": "CounterTop 32 Toilet 23 Cabinet 18 GarbageCan 10 Shelf 6 Cart 3 DiningTable 3 SideTable 2 "
    "Dresser 1",
    "Statue": "Shelf 29 CoffeeTable 16 CounterTop 14 DiningTable 14 SideTable 12 Dresser 7 TVStand 5 Desk 3",
    "TeddyBear": "Bed 100",
    "Television": "Dresser 46 TVStand 42 CoffeeTable 9 SideTable 3",
    "TissueBox": "Shelf 18 CoffeeTable 15 Drawer 14 CounterTop 13 DiningTable 11 SideTable 11 Desk 8 TVStand 3 "
    "Cabinet 2 Cart 2 Dresser 1 Toilet 1 GarbageCan 1",
    "ToiletPaper": "Toilet 23 CounterTop 23 ToiletPaperHanger 12 Drawer 11 Cabinet 11 GarbageCan 9 Shelf 5 Dresser 2 "
    "Cart 2 SideTable 1",
    "Tomato": "Fridge 33 CounterTop 30 DiningTable 20 GarbageCan 9 SinkBasin 7 SideTable 2",
    "Towel": "TowelHolder 97 CounterTop 3",
    "Vase": "Shelf 34 CounterTop 15 Cabinet 15 CoffeeTable 9 DiningTable 8 Dresser 7 SideTable 6 TVStand 3 Desk 1",
    "Watch": "Drawer 23 CoffeeTable 21 SideTable 16 DiningTable 12 Dresser 11 TVStand 8 Shelf 7 Desk 3",
    "WateringCan": "CoffeeTable 53 Shelf 38 SideTable 9",
    "WineBottle": "CounterTop 37 Cabinet 25 DiningTable 24 GarbageCan 9 Shelf 3 Fridge 1",
}


@dataclass(frozen=True)
class Furniture:
    """A kind of receptacle and its numbers in the scenes of a kind of room, one for each scene, sorted."""

    kind: str
    numbers: tuple[int, ...]


@functools.cache
def furniture(room: str) -> tuple[Furniture, ...]:
    """What stands in rooms of a kind."""
    return tuple(Furniture(kind, _numbers(text)) for kind, text in _FURNITURE[room].items())


def _numbers(text: str) -> tuple[int, ...]:
    pairs = (part.partition("x") for part in text.split())
    return tuple(int(number) for number, _, times in pairs for _ in range(int(times or 1)))


@functools.cache
def inventory(room: str) -> dict[str, tuple[float, float]]:
    """Object -> share of the scenes that have any, mean number there."""
    parts = (part.split(":") for part in _INVENTORY[room].split())
    return {kind: (int(share) / 100, float(mean)) for kind, share, mean in parts}


@functools.cache
def places(thing: str) -> dict[str, int]:
    """Receptacle -> weight, for where an object lies at the start."""
    words = _PLACES[thing].split()
    return {kind: int(weight) for kind, weight in zip(words[::2], words[1::2], strict=True)}
