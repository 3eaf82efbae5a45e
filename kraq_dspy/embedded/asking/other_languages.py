"""Asks questions in languages other than English: those that a text's headings are, or whose form its words give.

Nothing is asked where no heading and no sentence says what to ask. A rule is one only if it is right whatever the
words are: an infinitive or a noun of doing after "how", and what a sentence of definition begins with after "what is".

>>> asked_in("de", ["Pakete mit APT installieren"], [])
'Wie kann man Pakete mit APT installieren?'
>>> asked_in("fr", [], ["APT est un gestionnaire de paquets."])
"Qu'est-ce que APT ?"
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 140  # characters of a question
_WORDS = range(3, 19)  # of a heading that is a question
_LETTERS = range(7, 80)  # the same, in Japanese and Chinese
_ENDS = re.compile(r"[?？؟]$")
_NAME = r"(?P<name>{article}(?:[^\W\d_][\w.+-]*)(?: [A-ZÀ-ÞА-Я][\w.+-]*){{0,3}})"
_GENERIC = re.compile(
    r"(?:das|dies|dieses|es|er|sie|hier|esto|este|esta|ello|aquí|ce|cela|ceci|il|elle|ici|это|он|она|оно|здесь|to|jest"
    r"|ten|ta|tu|isto|isso|ele|ela|aqui|dit|dat|het|hier|questo|questa|qui|lui|lei|che|que|qui|wer|was|wie|qué|quién"
    r"|これ|それ|ここ|この|その|ce|man|one|there|nie|tak|non|no|nein|oui|sí|da|там|что|как|все|когда|где|если|warum|wann|wo|weil|wenn|comme|si|quand|où|como|cuando|donde|cuándo|quando|onde|se|als|waar|jak|gdy|ale|aber|aus|auch|mais|pero|ma|maar|но|также|außerdem|wszystko|tudo|alles)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is put around a heading that tells of doing something, and around what a sentence says that a thing is.

    `doing` are patterns of headings with the question that each makes; "{0}" is the heading, begun small where the
    question has "{small}". `article` stands before a thing, or nothing. `definition` is the beginning of a sentence
    that says what a thing is; `what` asks for it.
    """

    doing: tuple[tuple[re.Pattern[str], str], ...]
    article: re.Pattern[str]
    definition: re.Pattern[str]
    what: str


def _rules(doing: Sequence[tuple[str, str]], article: str, defining: str, what: str) -> _Rules:
    compiled = tuple((re.compile(pattern), asks) for pattern, asks in doing)
    return _Rules(compiled, re.compile(article), re.compile(_NAME.format(article=article) + defining), what)


RULES = {
    "de": _rules(
        [
            (r"(?!.*[:,–]).+ (?![A-ZÄÖÜ])\w{3,}(?:en|ern|eln)", "Wie kann man {0}?"),
            (r"(?:Installation|Konfiguration|Einrichtung|Verwaltung|Aktualisierung|Erstellung|Überprüfung|Wartung"
             r"|Anpassung|Verwendung|Nutzung|Sicherung|Wiederherstellung|Entfernung|Bearbeitung) "
             r"(?:von|des|der|eines|einer|mit)\b.+", "Wie geht man bei der {0} vor?"),
        ],
        r"(?:(?:Der|Die|Das|Ein|Eine) )?", r" (?:ist|war) (?:ein|eine|einer|das|die|der|eines)\b", "Was ist {0}?",
    ),
    "es": _rules(
        [
            (r"(?=\w*?[aeiou]\w{3})\w+(?:ar|ir) (?!\w+(?:ar|er|ir)\b).+", "¿Cómo se puede {small}?"),
            (r"\w{2,}er (?:un|una|el|la|los|las|del|al|con|en|por|su|sus)\b.+", "¿Cómo se puede {small}?"),
            (r"(?:Instalación|Configuración|Administración|Gestión|Actualización|Creación|Comprobación|Verificación"
             r"|Recuperación|Eliminación|Compilación|Preparación|Selección|Búsqueda) .+", "¿Cómo se hace la {small}?"),
        ],
        r"(?:(?:El|La|Un|Una) )?", r" (?:es|era|fue) (?:un|una|el|la|uno|una)\b", "¿Qué es {0}?",
    ),
    "fr": _rules(
        [
            (r"(?:\w{2,}(?:er|ir|re)) (?:un|une|le|la|les|des|du|de|son|sa|votre|vos|l['’]|à|avec|en|dans|sur)\b.+",
             "Comment {small} ?"),
            (r"(?:[Ii]nstallation|[Ii]nitialisation|[Aa]dministration|[Aa]ctualisation|[Uu]tilisation|[Ii]dentification"
             r"|[Oo]ptimisation|[Aa]mélioration|[Ee]xécution|[Ee]xtraction|[Aa]uthentification) .+",
             "Comment se fait l'{small} ?"),
            (r"(?:Configuration|Gestion|Création|Vérification|Mise à jour|Récupération|Suppression|Compilation"
             r"|Préparation|Sélection|Recherche|Restauration|Personnalisation|Surveillance|Sauvegarde) .+",
             "Comment se fait la {small} ?"),
        ],
        r"(?:(?:Le|La|Un|Une) |L['’])?", r" (?:est|était) (?:un|une|le|la|l['’])(?=\W)", "Qu'est-ce que {0} ?",
    ),
    "pt": _rules(
        [
            (r"(?=\w*?[aeiou]\w{3})\w+(?:ar|ir) .+", "Como {small}?"),
            (r"\w{2,}er (?:um|uma|o|a|os|as|do|da|com|em|por)\b.+", "Como {small}?"),
            (r"(?:Instalação|Configuração|Administração|Gestão|Atualização|Criação|Verificação|Recuperação|Remoção) .+",
             "Como é feita a {small}?"),
        ],
        r"(?:(?:O|A|Um|Uma) )?", r" (?:é|era|foi) (?:um|uma|o|a)\b", "O que é {0}?",
    ),
    "it": _rules(
        [
            (r"(?:\w{2,}(?:are|ere|ire)) .+", "Come {small}?"),
            (r"(?:Configurazione|Gestione|Creazione|Verifica|Rimozione|Preparazione) .+", "Come si fa la {small}?"),
        ],
        r"(?:(?:Il|La|Lo|Un|Una) |L['’])?", r" è (?:un|una|uno|il|la|lo)\b", "Che cos'è {0}?",
    ),
    "nl": _rules(
        [
            (r"(?!.*[:,–]).+ (?:[a-z]{2,}(?:en|eren))", "Hoe kun je {0}?"),
            (r"(?:Installatie|Configuratie) van .+", "Hoe gaat de {small}?"),
        ],
        r"(?:(?:De|Het|Een) )?", r" is (?:een|de|het)\b", "Wat is {0}?",
    ),
    "ru": _rules(
        [
            (r"(?:\w{3,}(?:ть|ться|ти)) .+", "Как {small}?"),
            (r"(?:Установка|Настройка|Создание|Удаление|Обновление|Проверка|Управление|Использование|Изменение|Запуск"
             r"|Сборка|Поиск|Подготовка|Восстановление|Переход|Загрузка|Выбор|Подключение|Резервное копирование) .+",
             "Как выполняется {small}?"),
        ],
        "", r"(?: [—–-] это\b| [—–] )", "Что такое {0}?",
    ),
    "pl": _rules(
        [
            (r"(?:Instalacja|Konfiguracja|Aktualizacja|Instalowanie|Konfigurowanie|Tworzenie|Usuwanie|Sprawdzanie"
             r"|Zarządzanie|Budowanie|Kompilacja|Używanie) .+", "Jak przebiega {small}?"),
        ],
        "", r" (?:to|jest to) (?!(?:znaczy|nie)\b)", "Co to jest {0}?",
    ),
    "ja": _rules(
        [
            (r".{2,40}(?:の設定|の構成|のインストール|の使い方|の作成|の管理|の確認|の変更|の更新|の削除|の検索|の選択|のカスタム化|の復元"
             r"|の無効化|の有効化|の取得|のコンパイル|のビルド|の作り方|へのアップグレード)",
             "{0}はどのように行いますか？"),
            (r".{2,40}方法", "{0}は何ですか？"),
        ],
        "", "", "{0}とは何ですか？",
    ),
}  # fmt: skip
"""By language. Polish and Russian decline what is done, so there only nouns of doing that keep their form are asked."""

_MAY_BE_A_VERB = re.compile(r"[A-ZĄĆĘŁŃÓŚŹŻ](?:\w*[aeiyąęćłoń]|[A-ZĄĆĘŁŃÓŚŹŻ]{5,})")
"""What stands before "to" where that means "this" ("Wymaga to uprawnień"), and headings in capitals."""
_ADJECTIVE = re.compile(r"[А-ЯЁ]\w*(?:ая|яя|ый|ий|ое|ее|ые|ие)")
"""A Russian word whose noun is left out: "Первая — ..." is the first of what was just named."""
_DEFINED_IN_JAPANESE = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9.+-]{1,20}|[ァ-ヶー]{3,20}|「[^」]{2,20}」)(?:とは|は)、?[^。、]{4,60}(?:です|である|の一つ|をいう)"
)


_NAME_IN = {
    "NAME": "en",
    "BEZEICHNUNG": "de",
    "NOM": "fr",
    "NOMBRE": "es",
    "NOME": "it",
    "NAAM": "nl",
    "NAZWA": "pl",
    "ИМЯ": "ru",
    "НАИМЕНОВАНИЕ": "ru",
    "名前": "ja",
}
"""The heading of the first section of a manual's page, and its language; "NAME" is German, too."""
_NAMES_ITSELF = re.compile(
    rf"^(?:#+ )?(?P<heading>(?i:{'|'.join(_NAME_IN)}))[^\S\n]*+\n\s*+"
    r"(?P<name>[a-zA-Z_][\w.+-]+)(?:, [\w.+-]+)*\s+[-–—‐−]+\s+[^\W\d_]",
    re.MULTILINE,
)
_WHAT_FOR = {
    "en": "What does {0} do?",
    "de": "Wozu dient {0}?",
    "fr": "À quoi sert {0} ?",
    "es": "¿Para qué sirve {0}?",
    "it": "A che cosa serve {0}?",
    "nl": "Waarvoor dient {0}?",
    "pl": "Do czego służy {0}?",
    "ru": "Для чего служит {0}?",
    "ja": "{0}は何をするものですか？",
}


def asked_in(language: str, headings: Sequence[str], sentences: Sequence[str]) -> str:
    """The first heading that asks or tells of doing something, else what a sentence defines; "" if none does."""
    questions = (question_of_heading(language, heading) for heading in headings)
    announced = next((question for question in questions if question), "")
    definitions = (_definition(language, sentence) for sentence in sentences)
    return announced or next(filter(None, definitions), "")


def asked_of_manual_page(language: str, passages: Sequence[str]) -> str:
    """Ask what the thing is for that a passage names as pages of manuals do; "" if none does.

    >>> asked_of_manual_page("pl", ["NAZWA\\n    dirname - usuwa przyrostek nazwy pliku"])
    'Do czego służy dirname?'
    """
    for passage in passages:
        match = _NAMES_ITSELF.search(passage)
        if match is not None:
            own = language if match["heading"].upper() == "NAME" else _NAME_IN[match["heading"].upper()]
            return _WHAT_FOR.get(own, _WHAT_FOR["en"]).format(match["name"])
    return ""


def question_of_heading(language: str, heading: str) -> str:
    """The question that a heading is or announces; "" if it is a name or a topic.

    >>> question_of_heading("es", "Instalar un paquete"), question_of_heading("de", "Kapitel 2")
    ('¿Cómo se puede instalar un paquete?', '')
    """
    heading = heading.strip()
    if _ENDS.search(heading):
        size, allowed = (len(heading), _LETTERS) if language in ("ja", "zh") else (len(heading.split()), _WORDS)
        is_whole = not heading[:1].islower() and size in allowed and heading.count("?") <= 1
        return heading if is_whole else ""

    rules = RULES.get(language)
    if rules is None or len(heading) > LONGEST - 40 or (heading.isupper() and language != "ja"):
        return ""

    for pattern, asks in rules.doing:
        if pattern.fullmatch(heading):
            return asks.format(heading, small=_begun_small(heading))
    return ""


def may_announce(heading: str) -> bool:
    """Whether the heading is or announces a question in some language other than English.

    >>> may_announce("Instalar un paquete"), may_announce("Kapitel 2")
    (True, False)
    """
    return any(question_of_heading(language, heading) for language in RULES)


def _definition(language: str, sentence: str) -> str:
    """Return what a sentence says what it is: a name, or a thing with its article; "" if it
    defines nothing."""
    rules = RULES.get(language)
    if rules is None:
        return ""

    definition = _DEFINED_IN_JAPANESE if language == "ja" else rules.definition
    match = definition.match(sentence)
    if match is None or not _is_thing(match["name"], rules.article):
        return ""

    name = match["name"]
    if language == "pl" and _MAY_BE_A_VERB.fullmatch(name):
        return ""
    if language == "ru" and _ADJECTIVE.fullmatch(name):
        return ""

    has_article = _without_article(name, rules.article) != name
    if not has_article and name.split(" ")[0].islower():
        return ""
    return rules.what.format(_begun_small(name) if has_article else name)


def _without_article(name: str, article: re.Pattern[str]) -> str:
    match = article.match(name)
    return name[match.end() :] if match else name


def _is_thing(name: str, article: re.Pattern[str]) -> bool:
    bare = _without_article(name, article)
    return len(bare) > 1 and not bare.isdigit() and not any(map(_GENERIC.fullmatch, bare.split()))


def _begun_small(heading: str) -> str:
    first = heading.partition(" ")[0]
    return heading if first[1:] != first[1:].lower() else heading[:1].lower() + heading[1:]
