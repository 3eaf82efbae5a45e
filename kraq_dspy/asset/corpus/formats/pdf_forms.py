"""Reads what was typed into a PDF: values of form fields, and text laid over a page."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from kraq_dspy.asset.corpus.normalise import is_blank, normalised

_PASSWORD = 1 << 13  # a flag of a field


def typed_in(page: Any, form: Any) -> Iterator[str]:
    """A line for each field of a page that has a value, as "label: value", and for each text laid over it.

    `form` is PDFium's form of the document, None if it has none. Passwords, buttons and what is hidden are left out.
    """
    import pypdfium2.raw as pdfium

    for place in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, place)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        line = ""
        if pdfium.FPDFAnnot_GetFlags(annotation) & (pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW):
            pass
        elif kind == pdfium.FPDF_ANNOT_FREETEXT:
            line = _text(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")
        elif kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
            line = _field(form, annotation)
        pdfium.FPDFPage_CloseAnnot(annotation)
        if not is_blank(line):
            yield line


def _field(form: Any, widget: Any) -> str:
    import pypdfium2.raw as pdfium

    kind = pdfium.FPDFAnnot_GetFormFieldType(form, widget)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        if not pdfium.FPDFAnnot_IsChecked(form, widget):
            return ""
        written = _text(pdfium.FPDFAnnot_GetFormFieldExportValue, form, widget)
        written = "yes" if written in ("", "Yes", "On", "1", "true") else written
    elif kind in (pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        is_password = pdfium.FPDFAnnot_GetFormFieldFlags(form, widget) & _PASSWORD
        written = "" if is_password else _text(pdfium.FPDFAnnot_GetFormFieldValue, form, widget)
    else:
        return ""

    label = _text(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, widget)
    name = _text(pdfium.FPDFAnnot_GetFormFieldName, form, widget)  # such as "form1[0].name[0]"
    label = label or name.rpartition(".")[2].partition("[")[0]
    return f"{label}: {written}" if label and written else written


def _text(read: Callable[..., int], *of: Any) -> str:
    """The text that a function of PDFium writes into a buffer, on one line."""
    import pypdfium2.raw as pdfium

    length = read(*of, None, 0)
    buffer = ctypes.create_string_buffer(length)
    read(*of, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return " ".join(normalised(buffer.raw.decode("utf-16-le", "replace").rstrip("\0")).split())
