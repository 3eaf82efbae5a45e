"""Lists the English words that the embedded model knows by heart. Other languages go without."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _set("""
    a an the and or but nor so yet if then than that this these those there here it its he him his she her hers they
    them their theirs we us our ours you your yours i me my mine who whom whose which what when where why how is are was
    were be been being am do does did done has have had having will would can could shall should may might must of in on
    at by for with from to into onto upon about over under between among through during before after above below as not
    no also such some any each every all both few more most other another same own only very too just while until
    because since although though however within without against per via one two first many much several called named
    known
""")

MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"

OPENERS = _set("""
    According Additionally Afterwards Later Meanwhile Moreover Furthermore Today Yesterday Now Still Even Yes Based Born
    Following Despite Like Unlike Along Together Set Starring Directed Written Produced Released Published Founded
    Located Originally Currently Recently Formerly Previously Eventually Finally Perhaps Once Whether Instead Besides
    Using Various Around Mr Mrs Ms Dr
""") | {word.capitalize() for word in STOP}
"""Words that have a capital only because they begin a sentence."""

COMMON = _set("""
    able accept access account accuracy across action active actually add advertisement advice age agree agreement ago
    ahead air allow almost alone already always amazing amount analysis answer anybody anyone anything apart appear
    apply approach area argue art article ask attention available avoid away baby back bad base baseline basic bear beat
    beautiful become begin behind believe benefit best better beyond big bit blue body book born bottom box boy break
    brief bring broad build business buy buying call care career carry case cases cause century certain chance change
    changes charge chapter cheap check child children choose city clear click clearly close cold color come comes coming
    comment common community company compare complete conclusion condition conduct consequential consider contact
    contents continue control cook copy cost country couple course cover create culture current cut daily damages data
    date day days deal dear decide deep definitely degree describe design despite detail details develop die different
    difficult digital direct discover discussion distribution distributor donation door double doubt down draw dream
    drink drive drop dry early earth easily easy eat economic edge editor effect effort eight either else empty end
    energy enjoy enough enter entire especially essentially even evening event ever everybody everyone everything
    exactly example examples except exclusive expect experience experiments expert explain expression eye face fact
    facts fail fair fall family far fast faster father feature features feel field fifth fight figure fill final find
    fine finish fire fit five fix follow food foot force foreign forget form fortunately forward foundation four fourth
    free fresh friend friends full fun fund future game games gas general get getting ghostly gift girl give given glad
    go goal god going good got government great green ground group grow growth guess guest guy hair half hand hang
    happen happy hard hate head health hear heart heat heavy help hey high higher hit hold holiday home honestly hope
    host hot hour hours house huge human hundred husband idea identity image imagine impact important improve include
    including income indeed indirect individual industry inform information initially insert inside install instance
    interesting internal interview introduction issue item items job join jump keep key kid kids kind know lack land
    language large last late latest laugh laughs law lead league learn leave left legal less let letter level liability
    liable license life light likely limited line link links list listen little live local long look lose lost lot love
    low luck lunch machine mad main make making man manage market matter maybe mean meaning means measure media meet
    meeting member mention menu merry message method methods middle mind minute miss mission model modern moment money
    month months morning mother move movie music name names nature near nearly necessary need needless never new news
    next nice night nine nobody none normal note nothing notice number numbers obviously off offer office official often
    oh okay old ones online open opening opinion opponents option options order ordinary ought outside overview owner
    page paid pain paper parent park part particularly parties partner party pass past pay people percent perfect
    performance period person photo phrase pick picture piece place plan plate play player players please plenty plus
    point poor popular position possible possibly post potential power practice present press pretty previous price
    prior private prize probably problem problems process product products professor profile program project promise
    proper property provide public published pull punitive purpose push put quality question questions quick quickly
    quite raise range ranked rarely rate rather reach read reader reading ready real really reason receive recent
    recommending record redistributing references refund related relationship release remember remedies remove
    replacement reply report reporter request require research reserved respond response rest result results return
    review rich ride right rights rise risk road role room rule run sad safe sale save say says scene school score
    search season seat second section secret see seek seem sell seller send sense separate series serious servant set
    seven share shares ship shop short show shows sick side sign significance significant similarly simple simply sing
    single sister sit six size skill sleep slow small social somebody somehow someone something sometimes song soon
    sorry sort sound source space speak special specifically spend spot spring staff stage stand star start state
    statement station status stay stave step steps stock stop stores story straight strange street strict strike strong
    stronger student study style subject succeed success successful suddenly suggest suit summary summer sunny super
    support suppose sure surely surprisingly system table take takes taking talk task taste team techniques tell ten
    term terms test thank thanks theme therefore thing things think third thought thousand three throughout ticket tie
    time times tip tips today together tomorrow tonight tools top topic total touch toward town track trade training
    transcriber travel treat trip trouble true truly trust truth try turn type typically ultimately understand
    unfortunately unit unless up update upset usage use used useful user users usually value valuation various version
    video view visit voice vote wait walk wall want war warranty watch water way ways wear weather website week weekend
    weeks weight welcome well west wet whatever whenever whether white whole wide wife wild win winter wish woman women
    wonder word words work workers world worse worst worth write wrong yeah year years yes yesterday young avenue chef
    chairman chair ceo cfo cto judge president senator minister secretary coach captain prince king queen lord lady sir
    uncle aunt ghost spirit spirits advertising illustration illustrations transportation committee emergency
    promotional motto headquarters external internet tv fm mhz ep dvd cd fig audience parliament attraction st mt jr sr
    absolutely agreed appreciate awesome busy cool exactly haha hello hi hmm lol looking nah sounds totally ugh wow yay
    yep yup mondays tuesdays wednesdays thursdays fridays saturdays sundays
    inc ltd co op ed vol pp al etc pm bc ad ii iii iv vs feb mar apr jan jun jul aug sep sept oct nov dec
""")
"""Words that name nothing when they stand alone, with a capital or without; those of STOP do not either."""

LEADERS = _set("""
    add adding asked become begin bring bringing build buy buying call check click come consider create discover enjoy
    especially eventually find following get getting give go install join keep know learn leave let look make making
    meet needless note play please possibly probably put read recommending redistributing remember run say see show sign
    start stop take taking tell thank think try turn use using visit wait want watch when while why yes yeah oh well
    hey hi hello wow yay yep haha
    actually clearly finally fortunately generally honestly hopefully however ideally importantly indeed initially
    interestingly ironically likewise mainly maybe nearly notably obviously often perhaps previously really recently
    sadly seemingly similarly simply sometimes soon specifically suddenly surely surprisingly then therefore thus
    typically ultimately unfortunately usually
""")
"""Words that stand before a name because they begin a sentence."""

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
        documentary sitcom episode painting musical soundtrack recording compilation novella duology trilogy
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
        brewery chain service center centre board ministry
    """),
    "place": _set("""
        city town village county district municipality country state river lake mountain island region province
        neighborhood neighbourhood suburb building museum park castle station airport mosque church mansion street hotel
        capital community area creek tributary hamlet parish peninsula valley mall stadium venue reservoir
    """),
    "event": _set(
        "war battle election festival tournament championship competition award ceremony season race league outbreak"
    ),
    "species": _set("genus species plant breed bird fish insect family flower tree"),
}
KIND_OF_NOUN = {noun: kind for kind, nouns in NOUNS.items() for noun in nouns}

FUNCTION_WORDS = _set("""
    في من على إلى عن مع بعد قبل بين كل أو ثم قد أن إن لا ما هو هي هذا هذه ذلك تلك التي الذي الذين كان كانت عام عبر حول
    عند حتى كما ولد وقد وهو وهي غير أي
    है हैं था थी थे का की के में से को ने पर और यह वह वे एक भी कि जो हो होता होती गया गई गए कर करके लिए तक बाद द्वारा साथ
    अपने उसके इसके तथा या ही तो नहीं किया होकर
""")
"""Arabic and Hindi words that name nothing."""

FUNCTION_LETTERS = frozenset(
    "的了是在和与及也有不他她它这那一为中于以到之而或被把从对就都并个们年月日はがをにのとでもへたてる"
)
"""Letters at which no Chinese or Japanese name begins or ends."""

PEOPLE = NOUNS["person"] | _set("""
    man woman boy girl person politician character cinematographer solicitor singer-songwriter
    dancer choreographer sculptor photographer bishop priest pope saint emperor empress prince princess duke earl
    soldier astronaut mathematician chemist biologist astronomer theologian explorer entrepreneur jurist diplomat
    archaeologist linguist translator critic columnist anchor host athlete driver rower gymnast skater skier cyclist
    pianist violinist organist cellist jockey golfer gangster criminal spy pilot sailor surgeon physician founder
    co-founder ceo owner manager captain chairman chairwoman editor executive boss leader conductor mayor governor
    senator judge ambassador secretary inventor developer designer presenter broadcaster songwriter bassist vocalist
""")
"""What somebody is said to be who is asked for with "who"."""

PROCEDURES = _set("""
    accept access activate add adjust allow apply arrange ask assemble assign attach authenticate avoid bake block book
    boot browse build buy calculate calibrate call cancel change charge check choose clean clear close collect combine
    compare compile compose compute configure connect control convert cook copy create customize cut debug declare
    define delete deploy design detect develop diagnose disable display download draw edit enable encrypt enlarge enter
    evaluate execute export extend fill filter find fit fix format gather generate get give grow handle help identify
    implement import improve increase insert inspect install integrate invert invite join keep label launch listen load
    log maintain make manage measure merge migrate mirror monitor mount move name navigate open operate order organise
    organize pack paint pair park pass pay perform plan plant play prepare prevent print process program protect
    publish purchase put raise rate rearrange rebuild receive record recover recycle reduce register release remove
    rename repair replace report request require reset resolve restart restore return reuse review rewind run save scan
    schedule search secure select sell send serve set share show sign solve sort specify start stop store submit
    subscribe switch synchronize take teach test track transfer translate troubleshoot tune turn uninstall unlock update
    upgrade upload use validate verify view visit wash watch write
""")
"""What headings of instructions tell how to do."""

GENERIC_HEADINGS = _set("""
    introduction overview contents summary conclusion conclusions results methods method discussion references abstract
    background appendix acknowledgements acknowledgments index preface notes note example examples usage faq about
    license licence changelog readme home menu navigation search see-also objective objectives purpose aim aims untitled
    document title unknown none miscellaneous other others general introduction.
""") | {"table of contents", "see also", "related work", "external links", "further reading", "patients and methods",
        "materials and methods", "getting started", "other issues", "quick start"}  # fmt: skip
"""Headings of so many texts that they announce nothing."""
