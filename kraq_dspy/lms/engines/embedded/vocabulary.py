"""The English words that the embedded model knows by heart. Other languages go without."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ABBREVIATIONS = _set("""
    mr mrs ms dr prof st sr jr vs no vol fig gen col lt sgt capt rev hon gov sen rep pres dept univ
    approx ca cf eg ie al jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n d.c e.g i.e a.m p.m ph.d
""")

STOP = _set("""
    a an the and or but nor so yet if then than that this these those there here it its he him his she her hers they
    them their theirs we us our ours you your yours i me my mine who whom whose which what when where why how is are was
    were be been being am do does did done has have had having will would can could shall should may might must of in on
    at by for with from to into onto upon about over under between among through during before after above below as not
    no also such some any each every all both few more most other another same own only very too just while until
    because since although though however within without against per via one two first many much several called named
    known
""")

OPENERS = _set("""
    According Additionally Afterwards Later Meanwhile Moreover Furthermore Today Yesterday Now Still Even Yes Based Born
    Following Despite Like Unlike Along Together Set Starring Directed Written Produced Released Published Founded
    Located Originally Currently Recently Formerly Previously Eventually Finally Perhaps Once Whether Instead Besides
    Using Various Around Mr Mrs Ms Dr
""") | {word.capitalize() for word in STOP}
"""Words that have a capital only because they begin a sentence."""

NO_NAMES = _set("""
    January February March April May June July August September October November December Monday Tuesday Wednesday
    Thursday Friday Saturday Sunday American British English French German Italian Spanish Russian Chinese Japanese
    Indian Canadian Australian Irish Scottish Welsh Dutch Swedish Norwegian Danish Finnish Polish Greek Turkish Korean
    Mexican Brazilian Argentine Portuguese African European Asian Israeli Iranian Egyptian Austrian Swiss Belgian
    Hungarian Czech Romanian Ukrainian Pakistani Christian Jewish Muslim Catholic Roman Latin Western Eastern Northern
    Southern North South East West Academy Award I II III IV
""")
"""Capitalised words that name nothing on their own."""

NOUNS = {
    "work": _set("""
        film movie novel book album song single series show play opera poem video game magazine newspaper comic manga
        documentary sitcom episode painting musical soundtrack
    """),
    "person": _set("""
        actor actress singer writer author director producer politician player footballer musician composer scientist
        painter poet journalist lawyer businessman businesswoman king queen president general rapper comedian model
        filmmaker screenwriter novelist coach wrestler boxer professor historian philosopher physicist artist guitarist
        drummer architect engineer nurse activist officer minister economist chef swimmer golfer cricketer
    """),
    "organisation": _set("""
        company band group university college school team club organization organisation agency party corporation label
        studio network publisher airline brand institution franchise duo trio orchestra manufacturer retailer
    """),
    "place": _set("""
        city town village county district municipality country state river lake mountain island region province
        neighborhood neighbourhood suburb building museum park castle station airport mosque church mansion street hotel
        capital
    """),
    "event": _set("war battle election festival tournament championship competition award ceremony season race league"),
    "species": _set("genus species plant breed bird fish insect family flower tree"),
}
KIND_OF_NOUN = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}

FUNCTION_LETTERS = frozenset(
    "的了是在和与及也有不他她它这那一为中于以到之而或被把从对就都并个们年月日はがをにのとでもへたてる"
)
"""Letters at which no Chinese or Japanese name begins or ends."""
