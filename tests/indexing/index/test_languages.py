"""Indexes small corpora in eight languages: right words, right questions or none, and an answer."""

from pathlib import Path

import pytest

from kraq_dspy import Index, build_index
from kraq_dspy.records import Document, Entity
from kraq_dspy.workspace import Workspace
from tests.conftest import KeywordEmbedder

TEXTS = {
    "es": (
        "El Museo del Prado está en Madrid y guarda obras de Diego Velázquez. Velázquez pintó a Felipe IV.",
        "Sevilla es la ciudad donde nació Diego Velázquez. El río Guadalquivir pasa por Sevilla y por Córdoba.",
        "Felipe IV fue rey de España. En su corte de Madrid vivió Diego Velázquez.",
    ),
    "de": (
        "Der Rhein entspringt in der Schweiz und fließt durch Basel. In Basel steht das Kunstmuseum Basel.",
        "Johann Wolfgang von Goethe schrieb den Faust und lebte lange in Weimar.",
        "Weimar liegt in Thüringen. Friedrich Schiller lebte wie Goethe in Weimar und starb dort 1805.",
    ),
    "fr": (
        "Marie Curie est née à Varsovie et a travaillé à Paris. Elle a reçu le prix Nobel avec Pierre Curie.",
        "La Sorbonne est une université de Paris. Marie Curie y fut la première femme professeur.",
        "Pierre Curie est mort à Paris en 1906. Marie Curie reprit son cours à la Sorbonne.",
    ),
    "zh": (
        "北京是中国的首都。曹雪芹生活在北京。《红楼梦》的作者是曹雪芹。",
        "《红楼梦》是中国的一部小说。曹雪芹在北京写了《红楼梦》。",
    ),
    "ar": (
        "القاهرة هي عاصمة مصر وتقع على نهر النيل. نجيب محفوظ ولد في القاهرة عام 1911. كتب نجيب محفوظ عن القاهرة.",
        "حصل نجيب محفوظ على جائزة نوبل. يمر نهر النيل عبر السودان. تقع أسوان على نهر النيل.",
    ),
    "hi": (
        "दिल्ली भारत की राजधानी है। यमुना नदी दिल्ली से होकर बहती है। लाल किला दिल्ली में है। यमुना नदी लंबी है।",
        "ताजमहल आगरा में है। शाहजहाँ ने ताजमहल बनवाया। शाहजहाँ आगरा में रहे।",
    ),
    "th": (
        "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย แม่น้ำเจ้าพระยาไหลผ่านกรุงเทพมหานคร",
        "วัดพระแก้วตั้งอยู่ในกรุงเทพมหานคร สร้างขึ้นในสมัยรัชกาลที่ 1",
    ),
    "lower": (
        "mira tolan founded the harbour institute in velmora in 1987.",
        "the harbour institute measures tides. velmora lies at the sea.",
    ),
    "code": (
        "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(add(i, 1))\n",
        "x = [1, 2]\ny = sum(x)\n",
    ),
    "short": ("hello.",),
}
NAMES = {
    "es": {"Diego Velázquez", "Madrid", "Felipe IV", "Sevilla"},
    "de": {"Weimar", "Thüringen", "Friedrich Schiller"},
    "fr": {"Marie Curie", "Pierre Curie", "Varsovie"},
    "zh": {"北京", "曹雪芹", "红楼梦"},
    "ar": {"القاهرة", "نجيب محفوظ", "نهر النيل"},
    "hi": {"दिल्ली", "यमुना नदी", "ताजमहल", "शाहजहाँ", "आगरा"},
}
WORD = {"hi": "ताजमहल", "ar": "النيل", "th": "กรุงเทพมหานคร", "zh": "红楼梦"}


def built(language: str, folder: Path, embedder: type[KeywordEmbedder]) -> tuple[Path, list[str], list[str], str]:
    """The folder, and the names, questions and problems of an index of the language's texts."""
    documents = [Document(f"d{number}", str(number), text) for number, text in enumerate(TEXTS[language])]
    report = build_index(documents, folder / "index", embedder=embedder("one", "two"))
    with Index.open(folder / "index") as index:
        names = [entity.name for entity in index.all(Entity)]
        questions = [question.text for question in index.questions(source="kraq") if not question.is_topic]
    return folder / "index", names, questions, " ".join(report.problems)


@pytest.mark.parametrize("language", TEXTS)
def test_names_are_right_and_nothing_is_asked_without_a_model(
    language: str, tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    folder, names, questions, problems = built(language, tmp_path, keyword_embedder)
    text = "\n".join(TEXTS[language])
    assert set(names) >= NAMES.get(language, set())
    assert all(name in text for name in names)
    assert not any(name.isdigit() for name in names)
    assert questions == []
    assert "answers by retrieval alone" in problems
    with Workspace.open(folder, embedder=keyword_embedder("one", "two")) as space:
        assert space.ask(WORD.get(language, "harbour institute founded")).hits


def test_no_fragments_of_words_are_names(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> None:
    """Of a script without spaces whose words nothing tells."""
    assert built("th", tmp_path, keyword_embedder)[1] == []
