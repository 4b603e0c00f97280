"""Words that made-up people, places and goods are put together from."""

GIVEN_NAMES = (
    "Amara", "Bram", "Chiara", "Dilan", "Esra", "Freya", "Goran", "Hanneke", "Ilse", "Jonas", "Katya", "Leif",
    "Mirela", "Noor", "Oskar", "Pilar", "Quentin", "Ragna", "Søren", "Tamsin", "Ursula", "Viktor", "Wanda",
    "Yusuf", "Zoë",
)  # fmt: skip

FAMILY_NAMES = (
    "Albers", "Bergström", "Castellan", "Dragan", "Eskelinen", "Fontaine", "Groothuis", "Haugen", "Ivers",
    "Jansma", "Kowal", "Lindqvist", "Moretti", "Nakagawa", "Oyelaran", "Petrov", "Quist", "Riedel",
    "Saarinen", "Tavares", "Uhland", "Vermeer", "Wójcik", "Ystad", "Zanetti",
)  # fmt: skip

STREETS = (
    "Boathouse Row", "Canal Walk", "Dyke Road", "Ferry Lane", "Harbour Street", "Lock Lane", "Mill Race",
    "Quayside", "Reed Court", "Sluice Road", "Towpath", "Weir Street",
)  # fmt: skip

# Town and country.
TOWNS = (
    ("Aveiro", "PT"), ("Bruges", "BE"), ("Colmar", "FR"), ("Delft", "NL"), ("Galway", "IE"),
    ("Giethoorn", "NL"), ("Lübeck", "DE"), ("Porvoo", "FI"), ("Ribe", "DK"), ("Sète", "FR"),
    ("Stavanger", "NO"), ("Treviso", "IT"),
)  # fmt: skip

# People there do without postcodes, in this scenario.
WITHOUT_POSTCODE = frozenset({"IE"})

# By category, in the order of the schema's symbols.
GOODS = (
    ("canoe", "kayak", "paddle", "rowing boat", "spray deck"),
    ("camp stove", "dry bag", "hammock", "lantern", "tent"),
    ("life vest", "neoprene boots", "rain jacket", "sun hat", "wool socks"),
    ("compass", "depth sounder", "headlamp", "river chart", "signal horn"),
    ("coffee tin", "oat biscuits", "rye bread mix", "soup packs", "water filter"),
)

QUALITIES = ("Alder", "Brook", "Cascade", "Delta", "Eddy", "Ford", "Gorge", "Heron", "Islet", "Otter")

COLOURS = ("black", "blue", "green", "grey", "orange", "red", "white", "yellow")

NOTES = (
    "Please leave it at the boathouse.",
    "Ring twice; the bell is slow.",
    "A present: no invoice in the box, please.",
    "We set off on Saturday.",
    "Naïve question: does it float? 🛶",
)

CAMPAIGNS = ("spring-tide", "regatta", "low-water", "winter-store")
