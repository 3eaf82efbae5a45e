"""Chooses the form of a question by what a sentence tells of a name or of two."""

# What the words between two names tell, and the question that it answers. Several forms: the first that fits.
BETWEEN = (
    (r"\b(?:co-)?directed by$", "Who directed {a}?"),
    (r"\b(?:co-)?written by$", "Who wrote {a}?"),
    (r"\bproduced by$", "Who produced {a}?"),
    (r"\bcomposed by$", "Who composed {a}?"),
    (r"\b(?:co-)?founded by$|\bcreated by$|\bestablished by$", "Who founded {a}?"),
    (r"\bdesigned by$", "Who designed {a}?"),
    (r"\bdeveloped by$", "Who developed {a}?"),
    (r"\bpublished by$|\breleased by$", "Who published {a}?"),
    (r"\bowned by$", "Who owns {a}?"),
    (r"\b(?:acquired|bought|purchased) by$", "How did {b} come to own {a}?"),
    (r"\bperformed by$|\bsung by$", "Who performed {a}?"),
    (r"\bled by$|\bheaded by$|\bcommanded by$", "Who led {a}?"),
    (r"\bstarring$|\bstars$", "Who stars in {a}?"),
    (r"\bbased on$|\badapted from$", "What is {a} based on?"),
    (r"\bnamed (?:after|for)$", "Who or what is {a} named after?"),
    (r"\bborn\b.*\bin$", "Where was {a} born?"),
    (r"\bdied\b.*\b(?:in|at)$", "Where did {a} die?"),
    (r"\b(?:located|situated|lies|based|headquartered) (?:\w+ )?(?:in|on|at|near)$", "Where is {a}?"),
    (r"\b(?:is|was) an? (?:\w+ ){0,3}(?:city|town|village|municipality|county|district|river|lake|island)\b.*\bin$",
     "Where is {a}?"),
    (r"\bcapital (?:city )?of$", "What is {a} the capital of?"),
    (r"\bmarried(?: to)?$|\b(?:wife|husband) of$", "Who did {a} marry?"),
    (r"\b(?:son|daughter|child|brother|sister|father|mother|cousin) of$", "How are {a} and {b} related?"),
    (r"\bmember of$", "What part does {a} play in {b}?"),
    (r"\b(?:played|plays|playing) for$", "Which team did {a} play for?"),
    (r"\bplayed in$|\bappeared (?:in|on)$|\bstarred (?:in|as)$|\brole (?:in|of|as)$", "What was {a}'s part in {b}?"),
    (r"\b(?:worked|collaborated|teamed up|performed|toured) with$", "What did {a} and {b} do together?"),
    (r"\bknown for$|\bfamous for$|\bremembered for$", "What is {a} best known for?"),
    (r"\bwon$|\bawarded$|\breceived$", "How did {a} win {b}?"),
    (r"\bnominated for$", "What was {a} nominated for?"),
    (r"\bpart of$|\bdivision of$|\bsubsidiary of$", "How does {a} belong to {b}?"),
)  # fmt: skip
# What a sentence tells of its subject, and the question that it answers.
CUES = (
    (r"\bborn (?:on|in|at|\w+ \d)", "Where and when was {a} born?"),
    (r"\bdirected by\b", "Who directed {a}?"),
    (r"\bwritten by\b", "Who wrote {a}?"),
    (r"\bstarring\b|\bstars\b", "Who stars in {a}?"),
    (r"\bfounded\b|\bestablished\b", "How did {a} begin?"),
    (r"\blocated in\b|\bsituated\b", "Where is {a}?"),
    (r"\bwon\b|\bawarded\b", "What has {a} won?"),
    (r"\bbased on\b", "What is {a} based on?"),
    (r"\b(?:played|plays|playing) for\b", "Which teams did {a} play for?"),
    (r"\bbest known for\b|\bfamous for\b|\bnotable for\b", "What is {a} best known for?"),
    (r"\binvented\b|\bdeveloped\b|\bdiscovered\b", "What did {a} develop?"),
    (r"\bdied\b|\bkilled\b|\bdeath\b", "What became of {a}?"),
)
OF_PAIR = ("How are {a} and {b} connected?", "What does {b} have to do with {a}?", "What links {a} to {b}?")
OF_THREE = ("How are {a}, {b} and {c} connected?", "What links {a} to {b} and {c}?")
OF_KINDS = {
    ("person", "person"): ("What is there between {a} and {b}?", "How do {a} and {b} know each other?"),
    ("person", "organisation"): ("What is {a}'s role at {b}?", "What did {a} do for {b}?"),
    ("person", "place"): ("What did {a} do in {b}?", "What ties {a} to {b}?"),
    ("person", "work"): ("What was {a}'s part in {b}?",),
    ("person", "event"): ("What did {a} do at {b}?",),
    ("organisation", "organisation"): ("What is there between {a} and {b}?",),
    ("organisation", "place"): ("What does {a} do in {b}?",),
    ("organisation", "person"): ("What is {b}'s role at {a}?",),
    ("work", "person"): ("What was {b}'s part in {a}?",),
    ("work", "work"): ("What do {a} and {b} have in common?",),
    ("work", "place"): ("What does {a} have to do with {b}?",),
    ("event", "place"): ("What happened at {a} in {b}?",),
    ("event", "person"): ("What did {b} do at {a}?",),
    ("place", "person"): ("What did {b} do in {a}?",),
}
"""Forms by what the two names are known to be."""
ACTS = (
    r"(?:,? who\b| (?:said|says|told|added|wrote|tells|explained|tweeted|argued|claimed|believes|thinks|himself|"
    r"herself)\b)"
)
RANK = (
    r"(?:Mr|Mrs|Ms|Dr|President|CEO|Judge|Coach|coach|Senator|actor|actress|singer|director|author|founder|"
    r"quarterback)\.? "
)
OF_ONE = {
    "person": ("Who is {a}?", "What is {a} known for?", "What has {a} done?"),
    "work": ("What is {a} about?", "Who made {a}?", "What kind of work is {a}?"),
    "organisation": ("What does {a} do?", "What is {a} known for?", "Who is behind {a}?"),
    "place": ("What is {a} known for?", "What is there in {a}?", "Where is {a}?"),
    "event": ("What happened at {a}?", "Who took part in {a}?"),
    "": ("What is {a}?", "What is {a} known for?"),
}
CHINESE = ("{a}和{b}有什么关系？", "{a}以什么闻名？")
