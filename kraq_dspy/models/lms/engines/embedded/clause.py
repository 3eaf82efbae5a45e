"""Turns a sentence round: "Acme bought Globex in 1990" answers "Who bought Globex in 1990?"."""

import re
from collections.abc import Iterator
from itertools import pairwise

from kraq_dspy.models.lms.engines.embedded.names import REFERENCE, names_in
from kraq_dspy.models.lms.engines.embedded.text import content_words
from kraq_dspy.models.lms.engines.embedded.vocabulary import BASE_OF_PAST, BASES, MONTH, NOUNS, STOP, _set

ADVERBIAL = (
    r"(?:(?:(?:In|On|After|During|By|Since|At|From|Until|Before|As of) [^,;:]{2,45}|However|Meanwhile|Additionally|"
    r"Moreover|Furthermore|Also|Instead|Finally|First|Second|[A-Z]\w+ly), |We (?:find|found|show|observe|note) that )?"
)
LEAD = rf"{ADVERBIAL}(?:[Tt]he )?"
"""What may come before the name with which a sentence begins."""
START = re.compile(
    rf"(?:^{LEAD}|[:;,] (?:and |but |so )?(?:the )?|"
    r"\b(?:when|while|that|because|although|though|after|before|as|where|how|whether|if|since) (?:the )?)$"
)
"""What comes before the name with which a clause begins."""
ASIDE = r"(?:, [^,;:]{3,70},)?"
ADVERB = r"(?: (?:also|later|then|first|once|now|still|even|soon|both|all|subsequently|recently|\w+ly))?"
CLAUSE = re.compile(
    r"(?P<others>(?:(?:, (?:and )?|,? and )(?:the )?[A-Z][\w’'.-]+(?: (?:of (?:the )?)?[A-Z][\w’'.-]+)*)*)"
    rf"{ASIDE}{ADVERB} (?P<verb>[a-z]+(?: up| over)?) (?P<rest>.+)$"
)
"""What follows the name: perhaps others that do the same, a verb, and the rest."""
WE = re.compile(
    rf"^{ADVERBIAL}(?:Here,? |Then,? |Thus,? |To [^,]{{3,60}}, )?[Ww]e(?: then| also| first| further| \w+ly)? "
    r"(?P<verb>[a-z-]+) (?P<rest>.+)$"
)
PERSON_DOES = re.compile(rf"^{ADVERBIAL}(?:He|She){ADVERB} (?P<verb>[a-z]+) (?P<rest>.+)$")
BY_SOMEBODY = re.compile(r"(?P<done>[a-z]{3,}ed|led|built|made|held|won|sold|bought|fought|found) by .*[A-Z]")
"""A participle that is the verb's past as well, and who did it."""
MAKES = _set("write direct found invent discover design create compose paint produce develop publish establish coin")
"""Verbs of which one asks who did it."""
SHOWS = _set("star feature include contain comprise consist")
"""Verbs of which nobody asks why."""
FINDS = _set("find see show observe note believe think hope know hypothesize")
MEASURES = _set("measure train evaluate compute calculate estimate test compare construct build collect create extract")
WHO = re.compile(rf",? (?:who|which){ADVERB} (?P<verb>[a-z]+) (?P<rest>[^,]+)")
"""A clause that tells something of the name before it."""
BE = _set("is was are were")
HAVE = _set("has have")
AUXILIARIES = BE | HAVE | _set("will would can could did does should must")
SAYING = _set("said says told added asked replied tweeted cried exclaimed noted explained need used claimed argued")
SAYS = f"(?:{'|'.join(sorted(SAYING - _set('need used')))})"
LOOSE = re.compile(
    r"\b(?:I|me|my|we|us|our|you|your|he|she|him|they|them|it|this|these|those|here|there|who|which|what|"
    r"himself|herself|itself|themselves)\b|[·$\\{}<>|@#*]"
)
"""What would leave a question hanging on its text."""
BOUNDARY = re.compile(
    r"\s*[;:—–]|(?<=[A-Z]{2})\. "
    r"|,? (?:but|because|although|though|while|whereas|which|who|whose|where|so that|when|unless|if|as)\b"
    r"|, (?:and|or|with|[a-z]+ing)\b| - |"
    r",? and (?:the )?[A-Z][\w’'-]+ (?!of\b|in\b|for\b|at\b|and\b|to\b)[a-z]+"
    r"|,? and (?:has|had|is|was|are|were|also|then|later|will|[a-z]+ed)\b"
)
RELATIVE = re.compile(
    r",? (?:(?:on|last|this|next|every) )?(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|week|weekend|"
    r"month|year|season|night|today|yesterday|tomorrow|tonight|now|too|already|again)(?: (?:night|morning|evening))?$"
)
PARTICIPLE = re.compile(
    r"(?:(?:been|\w+ly) )?(?:[a-z]{3,}(?:ed|ing)|fought|built|made|held|known|won|led|sold|bought|lost|set|written|"
    r"shot|drawn|seen|given|taken|found|born|chosen|become|begun|run|put|cut|hit|likely to|unlikely to|able to)\b"
)
"""What makes a verb with "is" or "has"."""
DATED = re.compile(
    r",? (?:in|on|since|by|from|around|during) (?:early |late |mid-)?"
    rf"(?:(?:{MONTH},? )?(?:\d{{1,2}},? )?(?:1[5-9]|20)\d\d|(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?)\b"
    r"(?! [A-Za-z]*(?:season|Cup|Olympics|Games|campaign))"
)
REASON = re.compile(r",? (?:because|due to|thanks to|in order to)\b")
PLACED = re.compile(
    r"((?:held|built|located|based|born|filmed|buried|recorded|situated|set|lived)\b.*?)"
    r" (?:in|at|near|on) (?:the )?[A-Z]"
)
ACHIEVED = _set("""
    won beat defeated reached achieved achieves improved improves became got outperformed outperforms acquired bought
    learns learned predicts predicted solved solves works worked performs performed boosts boosted met changed changes
""")
"""Verbs of which one asks how rather than why."""
DETERMINERS = _set("the a an most many some all each both several")
OBJECT = re.compile(
    r"(?:the|a|an|its|their|his|her|to|in|on|at|for|from|with|into|over|all|more|no|not|first|new|better|higher|\w+ly|\d[\d,.]*|[A-Z].*)$"
)
"""What follows a verb rather than a noun that looks like one."""
NOT_LAST = STOP | _set("including like such as than about both")
MOST_WORDS = 14
LONGEST_THING = 8
CLAUSE_WORDS = _set("that which who whose if when where while because although but")
ROLES = NOUNS["person"] | _set("""
    founder co-founder ceo owner manager captain chairman chairwoman chair host wife husband son daughter brother sister
    mother father nephew niece uncle clerk friend partner editor spokesperson spokesman spokeswoman analyst quarterback
    receiver striker goalkeeper midfielder defender winger linebacker cornerback head chief executive creator boss
    member leader librettist conductor mayor governor senator judge ambassador secretary successor predecessor rival
    inventor developer designer showrunner presenter broadcaster songwriter drummer bassist vocalist frontman
""")
ROLE = r"(?P<role>(?:[a-z][a-z\-]+ ){0,3}?(?:" + "|".join(sorted(ROLES)) + r"))"
ONE, TWO = "\ue000", "\ue001"
"""Stand in a sentence for the names that are asked about, so that no pattern is compiled for a name."""
WAS = re.compile(rf"{ONE}(?: \([^)]*\))? was\b")
ROLE_OF = tuple(
    re.compile(form)
    for form in (
        rf"{ONE}(?: \([^)]*\))?,? (?:(?:is|was) )?(?:the|an?|its) {ROLE} (?:of|at|for) (?:the )?{TWO}(?!\w)",
        rf"\b[Tt]he {ROLE} of (?:the )?{TWO}, {ONE}(?!\w)",
    )
)
ROLE_BEFORE = re.compile(rf"(?<!\w){TWO}(?:['’]s?)? {ROLE},? {ONE}(?!\w)")
DEMONYM = re.compile(r"^[A-Z][a-z]+(?:an|ish|ese|ch|ic)$")
"""A name that may be an adjective: "Nigerian artist"."""
STATES = re.compile(rf"{ONE}(?: (?:also|further|\w+ly))? {SAYS}\b|\b{SAYS} (?:[a-z]+ |[A-Z]\w+ ){{0,4}}{ONE}(?!\w)")


def ask_for_subject(part: str, subject: str, question_word: str) -> str:
    """Who or what does as the sentence tells of `subject`; "" where no clause begins with it, or what is told of it
    cannot stand alone."""
    for verb, rest, _ in _clauses(part, subject):
        is_role = verb in BE and rest.split()[0] in ROLES
        may_be_somebody = question_word == "What" and not is_role and not (verb in BE and rest.startswith("the "))
        if not may_be_somebody and (ended := clause_end(rest)):
            return f"{'Who' if is_role else question_word} {verb} {ended}?"
    return ""


def ask_about_act(part: str, subject: str, called: str) -> str:
    """When, why or how `subject` did what the sentence tells: "When did Acme buy Globex?"; "" as `ask_for_subject`,
    and where it is told what the subject is rather than what it does."""
    alone = (_inverted(called, verb, rest) for verb, rest, others in _clauses(part, subject) if not others)
    return next(filter(None, alone), "")


def ask_for_person(part: str) -> str:
    """Who did what the sentence tells of "he" or "she"; "" for another sentence, and as `ask_for_subject`."""
    clause = PERSON_DOES.match(without_asides(part))
    if not clause or not (_is_verb(clause["verb"], clause["rest"]) or clause["verb"] in BE):
        return ""
    ended = clause_end(clause["rest"])
    return f"Who {clause['verb']} {ended}?" if ended and names_in(f"· {ended}") else ""


def tells_why(part: str) -> bool:
    """Whether the sentence gives a reason, or a way, so that one may ask for it."""
    return REASON.search(part) is not None or re.search(r"\bby [a-z]+ing\b|,? so that\b", part) is not None


def ask_the_authors(part: str) -> str:
    """Why or how the authors of the text did what they tell of themselves, as papers do: "We trained on X."; "" for
    anything else."""
    statement = WE.match(without_asides(part))
    if not statement or re.search(r"[“”\"?!]|\b(?:our|us|you|your)\b", part):
        return ""
    verb = statement["verb"]
    if verb in BASE_OF_PAST:
        auxiliary, base = "did", BASE_OF_PAST[verb]
    else:
        auxiliary, base = "do", verb if verb in BASES else ""
    rest = clause_end(statement["rest"]) if base and base not in FINDS else ""
    return f"{'How' if base in MEASURES else 'Why'} {auxiliary} the authors {base} {rest}?" if rest else ""


def ask_about_thing(part: str) -> str:
    """As `ask_about_act`, of a sentence that begins with anything else that has no comma in it: "The first flight of
    the Wright Flyer was made in 1903."; "" where its subject cannot be told from the rest."""
    plain = without_asides(part)
    parts = plain[len(str(re.match(ADVERBIAL, plain)[0])) :].split(" ")  # type: ignore[index]
    thing: list[str] = []
    for word, following in pairwise(parts):
        at_end = thing and thing[-1].endswith((",", ";", ":", "”", '"'))
        if at_end or len(thing) > LONGEST_THING or LOOSE.search(word) or word.lower() in CLAUSE_WORDS:
            return ""
        if word in AUXILIARIES and not _is_verb(word, following):
            return ""
        is_after_noun = len(thing) > 1 and thing[-1].lower() not in STOP
        if is_after_noun and (word in AUXILIARIES or OBJECT.match(following)) and _is_verb(word, following):
            if thing[0].lower() not in DETERMINERS and not thing[0].endswith(("'s", "’s")):
                return ""
            lowered = thing[0].lower() if thing[0].lower() in DETERMINERS else thing[0]
            return _inverted(" ".join([lowered, *thing[1:]]), word, " ".join(parts[len(thing) + 1 :]))
        thing.append(word)
    return ""


def _inverted(subject: str, verb: str, rest: str) -> str:
    if verb in AUXILIARIES:
        if verb in HAVE | BE and not PARTICIPLE.match(rest):
            return ""
        auxiliary, base = verb, ""
    elif verb in BASE_OF_PAST:
        auxiliary, base = "did", BASE_OF_PAST[verb]
    else:
        auxiliary, base = "does", _base(verb)
    if verb in BE and (by := BY_SOMEBODY.match(rest)):
        return f"Who {by['done']} {subject}?"
    question_word, kept = _asked_by(verb, rest)
    if question_word == "Why" and base in MAKES | SHOWS:
        return ""
    kept = clause_end(kept, least=1 if base else 0)
    return " ".join(filter(None, (question_word, auxiliary, subject, base, kept))) + "?" if kept else ""


def without_asides(part: str) -> str:
    """Without references and what stands in brackets."""
    return REFERENCE.sub("", re.sub(r"\s*[\(\[][^)\]]*[\)\]]", "", part)).replace(" ,", ",").replace("  ", " ")


def _clauses(part: str, subject: str) -> Iterator[tuple[str, str, str]]:
    """(verb, rest, other subjects) of each clause that begins with the name, or with "who" after it."""
    plain = without_asides(part)
    for place in re.finditer(re.escape(subject) + r"\b", plain):
        clause = CLAUSE.match(plain, place.end())
        if clause and START.search(plain[: place.start()]) and _is_verb(clause["verb"], clause["rest"]):
            yield clause["verb"], clause["rest"], clause["others"]
        relative = WHO.match(plain, place.end())
        if relative and _is_verb(relative["verb"], relative["rest"]):
            yield relative["verb"], relative["rest"], ""


def _asked_by(verb: str, rest: str) -> tuple[str, str]:
    """The question word for what a clause tells, and the clause without what that asks for."""
    if dated := DATED.search(rest):
        return "When", rest[: dated.start()] + rest[dated.end() :]
    if reason := REASON.search(rest):
        return "Why", rest[: reason.start()]
    if placed := PLACED.match(rest):
        return "Where", placed[1]
    return "How" if verb in ACHIEVED or verb in ("can", "could") else "Why", rest


def ask_for_role(part: str, person: str, other: str) -> str:
    """Who stands to `other` as the sentence says of `person`: "Who is the founder of Acme?"; "" where it says
    nothing."""
    text = part.replace(person, ONE).replace(other.removeprefix("the "), TWO)
    was = "was" if WAS.search(text) else "is"
    for form in ROLE_OF:
        if stated := form.search(text):
            return f"Who {was} the {stated['role'].removeprefix('former ')} of {other}?"
    if not DEMONYM.search(other) and (stated := ROLE_BEFORE.search(text)):
        return f"Who is {other}'s {stated['role']}?".replace("s's ", "s' ")
    return ""


def ask_for_statement(part: str, person: str, other: str) -> str:
    """What `person` says about `other` in a sentence that quotes or reports; "" where the sentence does not."""
    if other.removeprefix("the ") in part and STATES.search(part.replace(person, ONE)):
        return f"What did {person} say about {other}?"
    return ""


def _is_verb(word: str, rest: str) -> bool:
    """Whether the word after a name is what the name does. What something is must be told by more than a kind."""
    if word in BE:
        return not re.match(r"(?:an?|one of|not|so|more|very|also|now|all|in|at|on|about|still|just|no|as|to)\b", rest)
    if word in SAYING or rest.startswith(("by ", "because ")):
        return False
    return word in AUXILIARIES or word in BASE_OF_PAST or bool(_base(word) and OBJECT.match(rest.partition(" ")[0]))


def _base(verb: str) -> str:
    """Of "acquires", acquire; "" for what is no verb in that form."""
    for base in (verb[:-1], verb[:-2], f"{verb[:-3]}y" if verb.endswith("ies") else ""):
        if verb.endswith("s") and base in BASES:
            return base
    return ""


def clause_end(rest: str, least: int = 2) -> str:
    """What follows the verb, up to the end of its clause, without times that only its day knows; "" where that is
    long, or hangs on what is not in it."""
    rest = rest.rstrip(" .!?\"”'’")
    for boundary in BOUNDARY.finditer(rest):
        if len(rest[: boundary.start()].split()) >= max(1, least):
            rest = rest[: boundary.start()]
            break
    before, comma, _ = rest.partition(", ")
    if comma and len(before.split()) >= 4:
        rest = before
    parts = RELATIVE.sub("", rest.strip(" ,")).split()
    while parts and parts[-1].lower().strip(",") in NOT_LAST:
        parts.pop()
    ended = " ".join(parts).strip(" ,")
    loose = LOOSE.search(ended) or ended.count('"') % 2 or ended.count("“") != ended.count("”")
    if loose or not max(1, least) <= len(parts) <= MOST_WORDS:
        return ""
    return ended if names_in(f"· {ended}") or len(content_words(ended)) >= 2 * least else ""
