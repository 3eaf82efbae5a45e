"""Tells by the styles of a text of Word which of its runs nobody sees (ECMA-376, part 1, section 17.7)."""

from xml.etree import ElementTree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFF = ("0", "false", "off", "none")
_UNSEEN = {"vanish": "hidden", "dstrike": "struck", "strike": "struck"}


def find(element: ElementTree.Element | None, *names: str) -> ElementTree.Element | None:
    """The first child of that name, of it the first of the next name, and so on."""
    for name in names:
        element = None if element is None else element.find(W + name)
    return element


def value(element: ElementTree.Element | None) -> str:
    return "" if element is None else element.get(W + "val", "")


def is_on(element: ElementTree.Element | None) -> bool:
    """Whether a switch is there and not turned off."""
    return element is not None and element.get(W + "val", "true").lower() not in _OFF


class Styles:
    """The styles of a text by id. A style says what it does not inherit."""

    def __init__(self, tree: ElementTree.Element | None) -> None:
        styles = [] if tree is None else tree.findall(W + "style")
        self._style_of = {style.get(W + "styleId", ""): style for style in styles}
        self._default = next(
            (
                style.get(W + "styleId", "")
                for style in styles
                if style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true")
            ),
            "",
        )

    def line(self, style_id: str) -> list[ElementTree.Element]:
        """The style and those that it is based on, the nearest first."""
        line: list[ElementTree.Element] = []
        while (style := self._style_of.get(style_id)) is not None and style not in line and len(line) < 20:
            line.append(style)
            style_id = value(find(style, "basedOn"))
        return line

    def unseen(self, run: ElementTree.Element, paragraph_style: str) -> str:
        """Why nobody sees the run: "hidden" or "struck"; "" if it is seen. Its own word goes before its styles'."""
        own = find(run, "rPr")
        properties = [own] if own is not None else []
        for style_id in (value(find(own, "rStyle")), paragraph_style or self._default):
            properties += [found for style in self.line(style_id) if (found := find(style, "rPr")) is not None]

        for name, reason in _UNSEEN.items():
            switch = next((found for each in properties if (found := find(each, name)) is not None), None)
            if is_on(switch):
                return reason
        return ""
