"""Recognizes what people say to a chat that asks nothing: thanks, greetings, a word of assent."""

import re

MOST_WORDS = 12
"""Words of a social turn at most."""

THANKS, GREETING, ASSENT = "thanks", "greeting", "assent"
_CORE = {
    THANKS: """thanks thank thankyou thanx ta kudos appreciated appreciate obliged thx
    ty tysm cheers danke dank dankeschön merci gracias grazie obrigado obrigada
    bedankt dankjewel dziękuję dzięki спасибо благодарю tack takk tak kiitos
    ありがとう ありがとうございます 谢谢 多谢 謝謝
    감사합니다 teşekkürler mulțumesc""",
    GREETING: """hello hi hey hiya greetings howdy goodbye bye hallo servus moin tschüss bonjour salut hola adiós
    ciao buongiorno olá oi hoi dag cześć привет здравствуйте hej
    こんにちは 你好 안녕하세요 morning evening afternoon""",
    ASSENT: """ok okay okey great perfect cool awesome wonderful excellent fantastic brilliant lovely noted fab yay
    understood gotcha alright
    super prima toll genau parfait perfecto vale perfetto ótimo""",
}
_KIND_OF = {word: kind for kind, words in _CORE.items() for word in words.split()}
_FILLER_WORDS = """
you u very much so many a an lot lots that that's thats is was were it its it's this the for your help helping
answer answers info information all and then well there everyone everybody day night weekend have nice again
no problem really good fine one me my i see got sir madam dear friend kraq bot indeed too how are doing know
mate mates pal buddy bud folks guys bro helpful helped helps that'll do you've you're been i'm bit again later soon tons
now just what wanted needed makes sense sounds works oh ah wow yes yeah yep sure of course lol schön sehr
vielen guten gute tag morgen abend nacht dir ihnen das ist mille beaucoup bien muchas mucho molte muito
vriendelijk hartelijk wel je большое
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SIGNS = {
    THANKS: "🙏🤗❤♥💕💖💙💚💛💜🧡🥰😍😘💐🌹",
    GREETING: "👋",
    ASSENT: "👍👌✅☑✔🆗💯🎉🙌👏😀😃😄😁😊🙂😎🤩🥳🤝💪⭐🌟",
}
_SIGN_OF = {sign: kind for kind, signs in _SIGNS.items() for sign in signs}
_SMILE = re.compile(r"(?:[:;=8][-^o']?[)D(P/|]|\(:|<3|\^\^|xD)+", re.IGNORECASE)
_ASSENTS = frozenset(
    {"i see", "got it", "makes sense", "that makes sense", "sounds good", "no problem", "all good"}
    | {"nice one", "nice one mate", "good to know", "fair enough", "no worries", "all clear", "that'll do", "love it"}
)
_REPLIES = {
    THANKS: "You are welcome.",
    GREETING: "Hello. Ask a question that the documents may answer.",
    ASSENT: "Good. Ask on whenever you like.",
}


def social_kind(text: str) -> str:
    """THANKS, GREETING or ASSENT for a text that is nothing else; "" for all others, a question among them.

    >>> social_kind("ok great, thank you very much"), social_kind("Thanks! And who owns the mill?")
    ('thanks', '')
    """
    if len(text) > 40 * MOST_WORDS or re.search(r"\d", _SMILE.sub("", text)):
        return ""
    return _kind_of_signs(text) or _kind_of_words(text)


def _kind_of_words(text: str) -> str:
    """What a text says by its words alone; "" if one of them is none of thanks, greetings and assent, or asks."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    if not 0 < len(words) <= MOST_WORDS:
        return ""
    if " ".join(words) in _ASSENTS:
        return ASSENT

    kinds = {_KIND_OF[word] for word in words if word in _KIND_OF}
    only_social = all(word in _KIND_OF or word in _FILLERS for word in words)
    asks = "?" in text and " ".join(words[-3:]) != "how are you" and "you" not in words
    if not kinds or not only_social or asks:
        return ""
    return next(kind for kind in (THANKS, GREETING, ASSENT) if kind in kinds)


def _kind_of_signs(text: str) -> str:
    """What a text without a word says by its pictures, or by a smile of letters; "" if it has words, or none of these.

    >>> _kind_of_signs("👍🏽"), _kind_of_signs(":)"), _kind_of_signs("👍 and the mill?")
    ('assent', 'assent', '')
    """
    text, n_smiles = _SMILE.subn("", text)
    if _WORD.search(text):
        return ""
    kinds = {_SIGN_OF[sign] for sign in text if sign in _SIGN_OF} | ({ASSENT} if n_smiles else set())
    return next((kind for kind in (THANKS, GREETING, ASSENT) if kind in kinds), "")


def social_reply(kind: str) -> str:
    """What is said in return."""
    return _REPLIES[kind]
