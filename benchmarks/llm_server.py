#!/usr/bin/env python3
"""A small, deterministic, OpenAI-compatible load server for RAG/graph-indexing benchmarks (stdlib only).

It is NOT a language model.  It recognises which kind of prompt it was sent (GraphRAG / nano-graphrag tuple
extraction, LightRAG extraction, description summaries, community reports, global-search map, DRIFT, DSPy
ChatAdapter / JSONAdapter, instructor JSON mode, any json_schema / tool call) and answers in that prompt's own
format with content taken from the prompt's own text: capitalised spans = entities, sentence co-occurrence =
relations, first sentences = summaries.  The same request always gets the same answer.

  python llm_server.py --port 8199 --latency-ms 200 --per-token-ms 0 --dim 384
Endpoints: POST /v1/chat/completions, POST /v1/embeddings, GET /v1/models,
           GET /stats, POST /reset, POST /config {"latency_ms": 200, "rate_429": 0.05, ...}, GET /log?n=5
Knobs (CLI --latency-ms style, or JSON body of /config):
  latency_ms        fixed delay per chat call           per_token_ms   extra delay per completion token
  per_ktok_in_ms    extra delay per 1000 prompt tokens  jitter         0..1, deterministic +-share of the delay
  embed_latency_ms  fixed delay per embedding call      slots          0 = unlimited, else concurrent calls served
  rate_429, rate_500, rate_503, rate_timeout, rate_malformed, rate_empty    fault probabilities per attempt
  context_tokens    0 = off, else prompts above it (len/4) get the 400 that vLLM gives
  timeout_s         how long a 'timeout' hangs before the socket is closed      retry_after   seconds in the 429
  rpm               0 = off, else requests/min bucket that yields real 429s     fault_kinds   "" = all, or "a,b"
Faults depend on (seed, request text, attempt number of that text), so they do not depend on arrival order.
Tokens in `usage` are len/4; /stats counts exactly with tiktoken cl100k_base if it can be imported (deferred, so
that counting costs nothing during the run).
"""

import argparse, asyncio, hashlib, json, math, os, re, sys, time
from collections import Counter, defaultdict

# ------------------------------------------------------------------ text -> entities / relations / sentences
STOP = set(
    """The A An In On At But And Or If It He She They We I You His Her Its Their This That These Those There
Here When While As After Before For From With By To Of Not No Yes So Then Since Because Who What Where Why How Which
Is Are Was Were Be Been Has Have Had Do Does Did Will Would Can Could Should May Might Must Also Still Just Even Some
Many Most More Other Another Such Each Every All Both Few One Two Three Four Five Last Next Now Our My Your Mr Mrs Ms Dr
About Under Over During Until According Meanwhile However Although Though Instead Among Between Both Earlier Later
Entities Relationships Reports Data Sources Claims Text Description Entity Relationship id title""".split()
)
ENT = re.compile(
    r"[A-Z][\w'’&\-]*(?:\.[A-Z]\.?)*(?:(?: (?:of|for|the|and|de|van|on) (?=[A-Z])| (?=[A-Z]))[A-Z][\w'’&\-]*(?:\.[A-Z]\.?)*)*"
)
SENT = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“A-Z(])|\n+")
ORG = re.compile(
    r"\b(Inc|Corp|Co|Ltd|LLC|Company|Department|University|Court|Association|Center|Centers|Committee|Agency|Administration|Group|Hospital|Institute|Council|Party|Press|House|Senate|Congress|Foundation|Organization|Board|Ministry|Bank|Union|Legislature|News)\b",
    re.I,
)
PERSONW = re.compile(r"^[A-Z][a-z]+(?: [A-Z]\.?)? [A-Z][a-z'’\-]+$")


def h64(*parts):
    return int.from_bytes(
        hashlib.blake2b("\x1f".join(map(str, parts)).encode("utf-8", "replace"), digest_size=8).digest(), "big"
    )


def unit(*parts):
    return h64(*parts) / 2.0**64


def sentences(text, cap=400):
    out = [s.strip() for s in SENT.split(text[:200_000]) if len(s.strip()) > 15]
    return out[:cap]


def ents_of(sentence):
    out = []
    for m in ENT.finditer(sentence):
        words = m.group().split(" ")
        while words and words[0] in STOP:
            words.pop(0)
        while words and (words[-1] in STOP or words[-1].islower()):
            words.pop()
        name = re.sub(r"(’s|'s|[’'\-])$", "", " ".join(words[:6])).strip()
        if len(name) > 2 and not name.isdigit():
            out.append(name)
    return list(dict.fromkeys(out))


def kind_of(name, allowed=None):
    if ORG.search(name):
        k = "organization"
    elif PERSONW.match(name):
        k = "person"
    elif " " not in name:
        k = "geo"
    else:
        k = "event"
    if not allowed:
        return k
    low = [a.strip().lower() for a in allowed if a.strip()]
    for want in (k, {"geo": "location"}.get(k, k)):
        if want in low:
            return allowed[low.index(want)].strip()
    return allowed[h64(name) % len(allowed)].strip()


def clip(s, words=28):
    w = s.split()
    return " ".join(w[:words])


class Ctx:
    """Entities, relations and sentences of one piece of text."""

    __slots__ = ("sents", "ents", "rels", "desc")

    def __init__(self, text, max_e=14, max_r=16):
        self.sents = sentences(text)
        desc, rels = {}, {}
        for s in self.sents:
            es = ents_of(s)
            for e in es:
                desc.setdefault(e, s)
            for a, b in zip(es, es[1:]):
                if a != b and (a, b) not in rels and (b, a) not in rels:
                    rels[(a, b)] = s
        self.ents = list(desc)[:max_e]
        keep = set(self.ents)
        self.rels = [(a, b, s) for (a, b), s in rels.items() if a in keep and b in keep][:max_r]
        self.desc = desc

    def summary(self, n=3):
        return " ".join(clip(s, 40) for s in self.sents[:n]) or "No information is given."

    def verb(self, a, b, s):
        i, j = s.find(a), s.find(b)
        mid = s[i + len(a) : j] if 0 <= i < j else ""
        mid = " ".join(re.findall(r"[a-z]+", mid)[:4])
        return mid or "is mentioned with"


# ------------------------------------------------------------------ generic JSON-schema filler
def norm(name):
    return re.sub(r"[^a-z]", "", (name or "").lower())


SRC = {"subject", "source", "head", "src", "from", "sourceentity", "entitya", "entity1", "start", "subj", "srcid"}
TGT = {"object", "target", "tail", "dst", "to", "targetentity", "entityb", "entity2", "end", "obj", "tgtid"}
PRED = {"predicate", "relation", "relationship", "rel", "verb", "edge", "label", "relationtype", "relationshiptype"}


def question(c, i):
    if c.rels:
        a, b, _ = c.rels[i % len(c.rels)]
        return f"How is {a} connected with {b}?"
    e = c.ents[i % len(c.ents)] if c.ents else "the text"
    return f"What is the role of {e}?"


def fill(sch, name, c, i=0, defs=None, parent=None):
    if not isinstance(sch, dict):
        return None
    defs = {**(defs or {}), **sch.get("$defs", {}), **sch.get("definitions", {})}
    if "$ref" in sch:
        return fill(defs.get(sch["$ref"].split("/")[-1], {}), name, c, i, defs, parent)
    if "const" in sch:
        return sch["const"]
    if "enum" in sch:
        low = [str(x).lower() for x in sch["enum"]]
        for want in ("done", kind_of(c.ents[i % len(c.ents)]) if c.ents else ""):
            if want in low:
                return sch["enum"][low.index(want)]
        return sch["enum"][i % len(sch["enum"])]
    for k in ("anyOf", "oneOf", "allOf"):
        if k in sch:
            opts = [o for o in sch[k] if o.get("type") != "null"]
            return fill(opts[0] if opts else {}, name, c, i, defs, parent)
    t, n = sch.get("type"), norm(name)
    if isinstance(t, list):
        t = next((x for x in t if x != "null"), "string")
    if t == "object" or "properties" in sch:
        props = sch.get("properties")
        if not props:
            ap = sch.get("additionalProperties")
            if isinstance(ap, dict) and ap:
                return {e: fill(ap, e, c, k, defs, None) for k, e in enumerate(c.ents[:5])}
            a, b, s = c.rels[i % len(c.rels)] if c.rels else ("A", "B", "")
            return {"subject": a, "predicate": c.verb(a, b, s), "object": b}
        names = {norm(p) for p in props}
        rel = bool(names & SRC and names & TGT)
        return {p: fill(ps, p, c, i, defs, ("rel" if rel else "ent", i)) for p, ps in props.items()}
    if t == "array":
        if "prefixItems" in sch:
            if len(sch["prefixItems"]) == 3 and c.rels:
                a, b, s = c.rels[i % len(c.rels)]
                return [a, c.verb(a, b, s), b]
            return [fill(x, name, c, i + k, defs, parent) for k, x in enumerate(sch["prefixItems"])]
        item = sch.get("items", {"type": "string"})
        it = item
        if "$ref" in it:
            it = defs.get(it["$ref"].split("/")[-1], {})
        if it.get("type") in ("integer", "number"):
            ids = []
        else:
            ids = None
        props = {norm(p) for p in it.get("properties", {})}
        if props & {"ids"}:
            return []
        if (
            (props & SRC and props & TGT)
            or "prefixItems" in it
            or n in ("triples", "relations", "relationships", "edges")
        ):
            k = len(c.rels)
        elif "question" in n or "queries" in n or "quer" in n:
            k = 5
        elif "finding" in n or "point" in n or "insight" in n:
            k = min(5, max(1, len(c.rels)))
        elif ids is not None:
            k = min(3, len(c.ents))
        else:
            k = len(c.ents)
        lo, hi = sch.get("minItems", 0), sch.get("maxItems", 10**6)
        k = max(lo, min(hi, k))
        return [fill(item, name, c, j, defs, parent) for j in range(k)]
    if t == "boolean":
        return True
    if t in ("integer", "number"):
        lo, hi = sch.get("minimum", sch.get("exclusiveMinimum")), sch.get("maximum", sch.get("exclusiveMaximum"))
        if lo is None and hi is None:
            if t == "number" and any(w in n for w in ("confid", "prob", "weight")):
                return 0.8
            if ids_like(n):
                return i
            return 7 if t == "integer" else 7.0
        lo = lo if lo is not None else 0
        hi = hi if hi is not None else lo + 10
        v = lo + 0.75 * (hi - lo)
        return int(round(v)) if t == "integer" else v
    # strings
    if parent and parent[0] == "rel" and c.rels:
        a, b, s = c.rels[i % len(c.rels)]
        if n in SRC:
            return a
        if n in TGT:
            return b
        if n in PRED:
            return c.verb(a, b, s)
        if "keyword" in n:
            return c.verb(a, b, s)
        return f"{a} is related to {b}: {clip(s)}"
    e = c.ents[i % len(c.ents)] if c.ents else "Unknown"
    if "question" in n or "quer" in n:
        return question(c, i)
    if parent and parent[0] == "ent" and n in ("name", "entity", "entityname", "id", "text", "mention"):
        return e
    if n in ("type", "entitytype", "category", "label", "kind", "class"):
        return kind_of(e)
    if n.startswith("entit") or n in (
        "named",
        "generic",
        "names",
        "keywords",
        "topics",
        "lowlevelkeywords",
        "highlevelkeywords",
        "aliases",
    ):
        return e
    if "title" in n or "theme" in n:
        return " and ".join(c.ents[:2]) or "Untitled"
    if n in ("triples", "relations", "relationships") and c.rels:
        a, b, s = c.rels[i % len(c.rels)]
        return f"{a} | {c.verb(a, b, s)} | {b}"
    if n in ("desc", "description") and e in c.desc:
        return f"{e} is described: {clip(c.desc[e])}"
    if n == "explanation" and parent:
        return " ".join(clip(s, 40) for s in (c.sents[i : i + 2] or c.sents[:1])) + " [Data: Entities (0)]"
    if n == "summary" and parent and i:
        return clip(c.sents[i % len(c.sents)], 12) if c.sents else "Finding"
    return c.summary(3)


def ids_like(n):
    return n == "id" or n.endswith("id") or n.endswith("index")


# ------------------------------------------------------------------ prompt kinds
def between(s, a, b, last=False):
    i = s.rfind(a) if last else s.find(a)
    if i < 0:
        return None
    i += len(a)
    j = s.find(b, i) if b else len(s)
    return s[i : j if j >= 0 else len(s)]


def tuples(c, td, rd, done, part, types=None, quoted=True, upper=True):
    """GraphRAG tuple records.  part 0 = first answer (about 3/4), 1 = gleaning (the rest)."""
    ke, kr = math.ceil(len(c.ents) * 0.75), math.ceil(len(c.rels) * 0.75)
    es, rs = (c.ents[:ke], c.rels[:kr]) if part == 0 else (c.ents[ke:], c.rels[kr:])
    if part == 0:
        ok = set(es)
        rs = [r for r in rs if r[0] in ok and r[1] in ok]
    up = (lambda x: x.upper()) if upper else (lambda x: x)
    rec = [f'("entity"{td}{up(e)}{td}{kind_of(e, types).upper()}{td}{e} is described: {clip(c.desc[e])})' for e in es]
    rec += [
        f'("relationship"{td}{up(a)}{td}{up(b)}{td}{a} {c.verb(a, b, s)} {b}: {clip(s)}{td}{1 + h64(a, b) % 9})'
        for a, b, s in rs
    ]
    return ("\n" + rd + "\n").join(rec) + ("\n" + rd + "\n" if rec else "") + done


def content_text(m):
    x = m.get("content")
    if isinstance(x, list):
        return "\n".join(p.get("text", "") for p in x if isinstance(p, dict))
    return x or ""


def dspy_answer(sysm, user, body):
    outs = between(sysm, "Your output fields are:", "All interactions will be structured") or ""
    fields = re.findall(r"^\d+\. `(\w+)` \(((?:[^()]|\([^()]*\))*)\)", outs, re.M)
    schemas = {}
    for f, note in re.findall(r"\{(\w+)\}\s+# note: the value you produce ([^\n]*)", sysm):
        schemas[f] = note
    if "Outputs will be a JSON object" in sysm:  # JSONAdapter: the notes sit inside a JSON object
        i = sysm.find("{", sysm.find("Outputs will be a JSON object"))
        try:
            for f, note in json.JSONDecoder(strict=False).raw_decode(sysm[i:])[0].items():
                schemas[f] = note.split("the value you produce ", 1)[-1]
        except ValueError:
            pass
    rs = (
        ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        if isinstance(body.get("response_format"), dict)
        else None
    )
    xml = bool(fields) and f"<{fields[0][0]}>" in sysm and "[[ ## " not in sysm
    if xml:
        secs = [""] + re.split(r"<(\w+)>\n(.*?)\n</\1>", user, flags=re.S)
        text = "\n".join(m[1] for m in re.findall(r"<(\w+)>\n(.*?)\n</\1>", user, re.S)) or user
    else:
        secs = re.split(
            r"\[\[ ## (\w+) ## \]\]\n?",
            user.split("Respond with the corresponding output fields")[0].split(
                "Respond with a JSON object in the following order"
            )[0],
        )
        text = "\n".join(secs[2::2]) if len(secs) > 2 else user
    c = Ctx(text)
    if rs and rs.get("properties"):
        return json.dumps(fill(rs, "root", c), ensure_ascii=False)
    vals = {}
    for f, typ in fields:
        note = schemas.get(f, "")
        if "JSON schema:" in note:
            try:
                vals[f] = fill(json.loads(note.split("JSON schema:", 1)[1]), f, c)
                continue
            except ValueError:
                pass
        m = re.search(r"must exactly match \(no extra characters\) one of: (.*)|must be one of: (.*)", note)
        if m:
            opts = [o.strip() for o in (m.group(1) or m.group(2)).split(";")]
            vals[f] = opts[h64(text, f) % len(opts)]
        elif "True or False" in note or typ == "bool":
            vals[f] = True
        elif typ == "int":
            vals[f] = 7
        elif typ == "float":
            vals[f] = 0.8
        elif typ.startswith("list"):
            vals[f] = fill({"type": "array", "items": {"type": "string"}}, f, c)
        else:
            vals[f] = fill({"type": "string"}, f, c)
    if xml:
        return "\n\n".join(
            f"<{k}>\n{v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}\n</{k}>" for k, v in vals.items()
        )
    want_json = (
        "Outputs will be a JSON object" in sysm
        or "Respond with a JSON object" in user
        or bool(body.get("response_format"))
    )
    if want_json:
        return json.dumps(vals, ensure_ascii=False)
    return (
        "\n\n".join(
            f"[[ ## {k} ## ]]\n{v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}"
            for k, v in vals.items()
        )
        + "\n\n[[ ## completed ## ]]"
    )


def report_json(text, extra_dates=False):
    text = re.sub(
        r"(?m)^-{3,}.*$|^(human_readable_id|id|text_unit_id|community),.*$|^\d+,", "", text
    )  # CSV headers and ids
    c = Ctx(text, 10, 8)
    d = fill(
        {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "summary": {"type": "string"},
                "rating": {"type": "number", "minimum": 0, "maximum": 10},
                "rating_explanation": {"type": "string"},
                "findings": {
                    "type": "array",
                    "minItems": 3,
                    "items": {
                        "type": "object",
                        "properties": {"summary": {"type": "string"}, "explanation": {"type": "string"}},
                    },
                },
            },
        },
        "report",
        c,
    )
    if extra_dates:
        d["date_range"] = ["2023-11-01", "2024-12-31"]
    return json.dumps(d, ensure_ascii=False, indent=1)


def answer(body):
    """-> (kind, text)"""
    msgs = body.get("messages") or []
    sysm = "\n".join(content_text(m) for m in msgs if m.get("role") in ("system", "developer"))
    users = [content_text(m) for m in msgs if m.get("role") == "user"]
    last = users[-1] if users else sysm
    first = users[0] if users else sysm
    allp = sysm + "\n" + "\n".join(users)
    rf = body.get("response_format") or {}
    schema = ((rf.get("json_schema") or {}).get("schema")) if isinstance(rf, dict) else None
    # --- DSPy
    if "Your output fields are:" in sysm and "All interactions will be structured" in sysm:
        names = re.findall(
            r"`(\w+)`", (between(sysm, "Your output fields are:", "All interactions will be structured") or "")
        )
        return "dspy:" + ",".join(names[:4]), dspy_answer(sysm, last, body)
    # --- GraphRAG / nano-graphrag tuple extraction
    if '("entity"' in first and "entity_name" in first or ('("entity"' in first and "Entity_types:" in first):
        td = "<|>" if "<|>" in first else "{tuple_delimiter}"
        src = between(first, "Text:", None, last=True) or first
        src = src.split("######################")[0]
        types = (between(first, "Entity_types:", "\n", last=True) or "").strip(" []").split(",")
        if last is not first:
            if "single letter Y or N" in last or "YES | NO" in last or "Answer Y" in last:
                return "graphrag_loop", "N"
            return "graphrag_glean", tuples(Ctx(src), td, "##", "<|COMPLETE|>", 1, types)
        return "graphrag_extract", tuples(Ctx(src), td, "##", "<|COMPLETE|>", 0, types)
    # --- LightRAG extraction
    if "---Input Text---" in allp and "Knowledge Graph Specialist" in allp:
        u = next((x for x in users if "---Input Text---\n```" in x), first)
        src = between(u, "---Input Text---\n```", "\n```\n", last=True) or u
        c = Ctx(src)
        glean = "missed or incorrectly" in last
        ke, kr = math.ceil(len(c.ents) * 0.75), math.ceil(len(c.rels) * 0.75)
        es, rs = (c.ents[ke:], c.rels[kr:]) if glean else (c.ents[:ke], c.rels[:kr])
        if not glean:
            ok = set(es)
            rs = [r for r in rs if r[0] in ok and r[1] in ok]
        T = {"geo": "Location", "person": "Person", "organization": "Organization", "event": "Event"}
        if '"entities"' in sysm or "JSON Contract" in sysm:
            return "lightrag_glean" if glean else "lightrag_extract", json.dumps(
                {
                    "entities": [
                        {"name": e, "type": T[kind_of(e)], "description": f"{e} is described: {clip(c.desc[e])}"}
                        for e in es
                    ],
                    "relationships": [
                        {
                            "source": a,
                            "target": b,
                            "keywords": c.verb(a, b, s),
                            "description": f"{a} and {b}: {clip(s)}",
                        }
                        for a, b, s in rs
                    ],
                },
                ensure_ascii=False,
            )
        m = re.search(r"`?entity(<\|.*?\|>)entity_name", sysm) or re.search(r"entity(<\|[^|]*\|>)", sysm)
        td = m.group(1) if m else "<|#|>"
        rows = [f"entity{td}{e}{td}{T[kind_of(e)]}{td}{e} is described: {clip(c.desc[e])}" for e in es]
        rows += [f"relation{td}{a}{td}{b}{td}{c.verb(a, b, s)}{td}{a} and {b}: {clip(s)}" for a, b, s in rs]
        return "lightrag_glean" if glean else "lightrag_extract", "\n".join(rows + ["<|COMPLETE|>"])
    # --- LightRAG keywords
    if "high_level_keywords" in last and "low_level_keywords" in last:
        q = between(last, "User Query:", "---Output---", last=True) or last
        es = ents_of(q) or re.findall(r"[a-z]{5,}", q)[:3]
        return "lightrag_keywords", json.dumps(
            {"high_level_keywords": re.findall(r"[a-z]{6,}", q)[:3] or es[:1], "low_level_keywords": es[:4]}
        )
    # --- description summaries
    if "Description List" in last and ("Entities:" in last or " Name:" in last or "---Input---" in last):
        name = (between(last, "Entities:", "\n") or between(last, " Name:", "\n") or "It").strip()
        dl = (
            between(last, "Description List:", "#######")
            if "#######" in last
            else between(last, "Description List:", "---Output---")
        )
        ss = sentences((dl or last).replace('", "', ".\n").replace("[", " ").replace('{"Description":', " "))
        return "summarize_descriptions", f"{name}: " + " ".join(clip(s, 22) for s in ss[:6])
    if "Given the current description, summarize it" in allp:  # fast-graphrag (instructor JSON mode)
        u = next((x for x in users if "Current:" in x), last)
        t = Ctx(between(u, "Current:", "Updated:") or u).summary(4)
        return "summarize_descriptions", json.dumps(
            {"description": t}, ensure_ascii=False
        ) if "json_schema" in sysm else t
    # --- community reports
    if "IMPACT SEVERITY RATING" in last or "IMPORTANCE RATING" in last:
        src = between(last, "Text:\n", "The report should include the following sections", last=True)
        i = last.rfind("Use the following text for your answer")
        if i >= 0:
            src = (
                last[i:]
                .split("Text:", 1)[-1]
                .split("The report should include the following sections")[0]
                .split("Output:")[0]
            )
        elif "# Real Data" in last:
            src = last.split("# Real Data")[-1]
        return "community_report", report_json(
            src or last, "date_range" in last and (schema is None or "date_range" in (schema.get("properties") or {}))
        )
    if "IMPACT SEVERITY RATING" in sysm or "IMPORTANCE RATING" in sysm:
        return "community_report", report_json(last)
    # --- GraphRAG queries
    if "Importance Score" in allp and '"points"' in allp:
        c = Ctx(between(sysm, "---Data tables---", "---Goal---") or allp, 8, 8)
        return "global_map", json.dumps(
            {
                "points": [
                    {"description": f"{clip(s, 40)} [Data: Reports (0)]", "score": 90 - 10 * k}
                    for k, s in enumerate(c.sents[1:6])
                ]
            },
            ensure_ascii=False,
        )
    if "intermediate_answer" in allp and "follow_up_queries" in allp:
        c = Ctx(last)
        return "drift_primer", json.dumps(
            {
                "intermediate_answer": "# Answer\n" + c.summary(8),
                "score": 60,
                "follow_up_queries": [question(c, k) for k in range(5)],
            },
            ensure_ascii=False,
        )
    if "follow_up_queries" in allp and "'response'" in allp:
        c = Ctx(between(sysm, "---Data tables---", "---Goal---") or allp)
        return "drift_local", json.dumps(
            {"response": c.summary(6), "score": 70, "follow_up_queries": [question(c, k) for k in range(5)]},
            ensure_ascii=False,
        )
    # --- schema-driven answers (json_schema, instructor JSON mode)
    if schema is None and "json_schema" in sysm:
        m = re.search(r"json_schema:\s*(\{.*\})", sysm, re.S)
        if m:
            try:
                schema, _ = json.JSONDecoder().raw_decode(m.group(1))
            except ValueError:
                schema = None
    if schema:
        u = next((x for x in users if "<<DOCUMENT_START>>" in x), last)
        src = between(u, "<<DOCUMENT_START>>", "<<DOCUMENT_END>>") or between(last, "Query:", None, last=True) or last
        props = list((schema.get("properties") or {}))
        return "schema:" + ",".join(props[:3]), json.dumps(fill(schema, "root", Ctx(src)), ensure_ascii=False)
    if "key points" in allp and "---Analyst Reports---" in allp:
        return "global_reduce", Ctx(between(sysm, "---Analyst Reports---", "---Goal---") or allp).summary(8)
    if "---Data Reports---" in allp:
        return "drift_reduce", Ctx(between(sysm, "---Data Reports---", "---Target") or allp).summary(8)
    if isinstance(rf, dict) and rf.get("type") == "json_object":
        c = Ctx(last)
        return "json_object", json.dumps({"answer": c.summary(3), "entities": c.ents[:5]}, ensure_ascii=False)
    if "---Data tables---" in sysm:
        return "local_or_basic", Ctx(between(sysm, "---Data tables---", "---Goal---") or sysm).summary(8)
    if re.search(r"\b(answer|respond|reply)\b[^.\n]{0,60}\b(yes or no|yes/no)", last, re.I):
        return "yes_no", "Yes" if h64("yn", last) % 2 else "No"
    if re.search(r"(single|only the) letter|option letter", last, re.I):
        return "letter", "ABCD"[h64("letter", last) % 4]
    return "other", Ctx(allp[-20000:]).summary(5)


# ------------------------------------------------------------------ embeddings
WORD = re.compile(r"[^\W_]+", re.U)
_wcache = {}


def embed(text, dim):
    v = [0.0] * dim
    for w, n in Counter(x.lower() for x in WORD.findall(text[:40_000])).items():
        t = _wcache.get((w, dim))
        if t is None:
            x = h64("emb", w)
            t = _wcache[(w, dim)] = (x % dim, 1.0 if (x >> 40) & 1 else -1.0, (x >> 20) % dim)
        a = 1.0 + math.log(n)
        v[t[0]] += t[1] * a
        v[t[2]] += 0.5 * a
    s = math.sqrt(sum(x * x for x in v))
    if not s:
        v[0] = 1.0
        return v
    return [round(x / s, 6) for x in v]


# ------------------------------------------------------------------ server state
DEFAULTS = dict(
    latency_ms=0.0,
    per_token_ms=0.0,
    per_ktok_in_ms=0.0,
    jitter=0.0,
    embed_latency_ms=0.0,
    slots=0,
    rate_429=0.0,
    rate_500=0.0,
    rate_503=0.0,
    rate_timeout=0.0,
    rate_malformed=0.0,
    rate_empty=0.0,
    context_tokens=0,
    timeout_s=30.0,
    retry_after=1.0,
    rpm=0.0,
    seed=0,
    dim=384,
    fault_kinds="",
    keep_mb=256,
    verbose=0,
)
CFG = dict(DEFAULTS)


class Stats:
    def __init__(self):
        self.t0, self.cpu0 = time.time(), time.process_time()
        self.kinds = defaultdict(
            lambda: dict(requests=0, prompt_chars=0, completion_chars=0, busy_s=0.0, first=None, last=None, faults=0)
        )
        self.faults, self.modes = Counter(), Counter()
        self.inflight = self.max_inflight = 0
        self.einflight = self.max_einflight = 0
        self.embed = dict(requests=0, inputs=0, chars=0, first=None, last=None)
        self.texts, self.kept = [], 0  # (kind, prompt, completion) for exact token counts later
        self.tok = {}  # kind -> [p, c] already counted
        self.seen, self.attempts = Counter(), Counter()
        self.models = Counter()
        self.log = []


ST = Stats()
SEM = None
BUCKET = [0.0, 0.0]


def encoder():
    try:
        if "TIKTOKEN_CACHE_DIR" not in os.environ:
            import importlib.util

            sp = importlib.util.find_spec("litellm")
            if sp and sp.submodule_search_locations:
                os.environ["TIKTOKEN_CACHE_DIR"] = os.path.join(
                    list(sp.submodule_search_locations)[0], "litellm_core_utils", "tokenizers"
                )
        import tiktoken

        return tiktoken.get_encoding("cl100k_base")
    except (ImportError, OSError):  # no tokenizer here, or none to be had: tokens are not counted
        return None


ENC = None


def stats_json():
    global ENC
    if ENC is None:
        ENC = encoder() or False
    if ENC:
        for k, p, a in ST.texts:
            e = ST.tok.setdefault(k, [0, 0, 0, 0])
            e[0] += len(ENC.encode(p, disallowed_special=()))
            e[1] += len(ENC.encode(a, disallowed_special=()))
            e[2] += len(p)
            e[3] += len(a)
        ST.texts.clear()
        ST.kept = 0
    kinds, P, C, R = {}, 0, 0, 0
    for k, d in ST.kinds.items():
        e = ST.tok.get(k)
        pt = round(e[0] * d["prompt_chars"] / e[2]) if e and e[2] else d["prompt_chars"] // 4
        ct = round(e[1] * d["completion_chars"] / e[3]) if e and e[3] else d["completion_chars"] // 4
        kinds[k] = dict(
            d,
            prompt_tokens=pt,
            completion_tokens=ct,
            busy_s=round(d["busy_s"], 3),
            first=round(d["first"] - ST.t0, 3) if d["first"] else None,
            last=round(d["last"] - ST.t0, 3) if d["last"] else None,
        )
        P += pt
        C += ct
        R += d["requests"]
    firsts = [d["first"] for d in ST.kinds.values() if d["first"]]
    lasts = [d["last"] for d in ST.kinds.values() if d["last"]]
    span = (max(lasts) - min(firsts)) if firsts and lasts else 0.0
    busy = sum(d["busy_s"] for d in ST.kinds.values())
    emb = dict(ST.embed)
    emb["tokens"] = emb["chars"] // 4
    for k in ("first", "last"):
        emb[k] = round(emb[k] - ST.t0, 3) if emb[k] else None
    return dict(
        requests=R,
        prompt_tokens=P,
        completion_tokens=C,
        max_concurrency=ST.max_inflight,
        span_s=round(span, 3),
        avg_concurrency=round(busy / span, 2) if span else 0,
        unique_requests=len(ST.seen),
        repeated_requests=sum(ST.seen.values()) - len(ST.seen),
        faults=dict(ST.faults),
        malformed_modes=dict(ST.modes),
        kinds=kinds,
        embeddings=dict(emb, max_concurrency=ST.max_einflight),
        models=dict(ST.models),
        server_cpu_s=round(time.process_time() - ST.cpu0, 3),
        token_counter="cl100k_base" if ENC else "chars/4",
        config=CFG,
    )


def pick_fault(key, kind):
    n = ST.attempts[key]
    ST.attempts[key] += 1
    if CFG["fault_kinds"] and not any(kind.startswith(k) for k in CFG["fault_kinds"].split(",")):
        return None
    u, acc = unit(CFG["seed"], key, n), 0.0
    for f in ("429", "500", "503", "timeout", "malformed", "empty"):
        acc += CFG["rate_" + f]
        if u < acc:
            return f
    return None


def mangle(text, key):
    mode = ("truncate", "fence", "prose")[h64("mangle", key, ST.attempts[key]) % 3]
    ST.modes[mode] += 1
    if mode == "truncate":
        return text[: int(len(text) * 0.6)]
    if mode == "fence":
        return "Sure! Here is the result:\n```json\n" + text + "\n```\nLet me know if you need more."
    return "I could not find anything that matches the requested format in this passage."


def logprobs_for(text, top):
    toks = re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text) or [text]
    out = []
    for i, t in enumerate(toks):
        lp = -0.01 - 1.2 * unit("lp", t, i) ** 3
        alts = [{"token": t, "logprob": lp, "bytes": list(t.encode())}]
        pool = {"yes": ["no"], "no": ["yes"], "true": ["false"], "false": ["true"]}.get(t.strip().lower(), []) + [
            "A",
            "B",
            "C",
            "D",
            "the",
            "and",
            "Yes",
            "No",
        ]
        for k, a in enumerate(x for x in pool if x.lower() != t.strip().lower()):
            if len(alts) >= top:
                break
            alts.append({"token": a, "logprob": lp - 1.5 - k - unit("alt", t, a), "bytes": list(a.encode())})
        out.append({"token": t, "logprob": lp, "bytes": list(t.encode()), "top_logprobs": alts[:top] if top else []})
    return {"content": out, "refusal": None}


class Sse:
    """The finished answer sent as server-sent events (4 pieces, then usage if asked, then [DONE]); no true streaming."""

    def __init__(self, obj, body):
        ch = obj["choices"][0]
        text = ch["message"]["content"] or ""
        base = {k: obj[k] for k in ("id", "created", "model", "system_fingerprint")}
        base["object"] = "chat.completion.chunk"
        n = max(1, -(-len(text) // 4))
        ev = [
            dict(
                base,
                choices=[
                    {
                        "index": 0,
                        "delta": {"role": "assistant", "content": text[i : i + n]},
                        "logprobs": None,
                        "finish_reason": None,
                    }
                ],
            )
            for i in range(0, len(text), n)
        ]
        ev.append(
            dict(base, choices=[{"index": 0, "delta": {}, "logprobs": None, "finish_reason": ch["finish_reason"]}])
        )
        if (body.get("stream_options") or {}).get("include_usage"):
            ev.append(dict(base, choices=[], usage=obj["usage"]))
        self.data = (
            "".join("data: " + json.dumps(e, ensure_ascii=False) + "\n\n" for e in ev) + "data: [DONE]\n\n"
        ).encode()


class Reply(Exception):
    def __init__(self, status, obj, headers=None, close=False):
        self.status, self.obj, self.headers, self.close = status, obj, headers or {}, close


def err(status, msg, typ):
    return {"error": {"message": msg, "type": typ, "code": str(status), "param": None}}


async def chat(body):
    global SEM
    t = time.time()
    ST.inflight += 1
    ST.max_inflight = max(ST.max_inflight, ST.inflight)
    try:
        ST.models[body.get("model")] += 1
        prompt = "\n".join(content_text(m) for m in body.get("messages") or [])
        key = hashlib.blake2b(
            json.dumps(
                [body.get("messages"), body.get("response_format"), body.get("tools")], sort_keys=True, default=str
            ).encode(),
            digest_size=12,
        ).hexdigest()
        ST.seen[key] += 1
        kind, text = answer(body)
        tools = body.get("tools") or []
        call = None
        if tools and body.get("tool_choice") not in ("none",) and "Your output fields are:" not in prompt:
            want = (
                (body.get("tool_choice") or {}).get("function", {}).get("name")
                if isinstance(body.get("tool_choice"), dict)
                else None
            )
            fn = next(
                (x["function"] for x in tools if x.get("function", {}).get("name") == want), tools[0].get("function")
            )
            text = json.dumps(
                fill(fn.get("parameters") or {}, "root", Ctx(content_text((body["messages"] or [{}])[-1]))),
                ensure_ascii=False,
            )
            call, kind = fn["name"], "tool:" + fn["name"]
        d = ST.kinds[kind]
        d["requests"] += 1
        d["first"] = d["first"] or t
        d["prompt_chars"] += len(prompt)
        if CFG["rpm"]:
            now = time.time()
            cap = max(1.0, CFG["rpm"] / 6)
            BUCKET[0] = min(cap, BUCKET[0] + (now - BUCKET[1]) * CFG["rpm"] / 60) if BUCKET[1] else cap
            BUCKET[1] = now
            if BUCKET[0] < 1:
                ST.faults["rpm_429"] += 1
                d["faults"] += 1
                d["last"] = time.time()
                raise Reply(
                    429,
                    err(429, "Rate limit reached for requests", "rate_limit_exceeded"),
                    {"Retry-After": str(CFG["retry_after"])},
                )
            BUCKET[0] -= 1
        if CFG["context_tokens"] and len(prompt) > 4 * CFG["context_tokens"]:
            ST.faults["context"] += 1
            d["faults"] += 1
            d["last"] = time.time()
            said = f"This model's maximum context length is {CFG['context_tokens']} tokens; reduce the length."
            raise Reply(400, err(400, said, "invalid_request_error"))
        fault = pick_fault(key, kind)
        if fault in ("429", "500", "503"):
            ST.faults[fault] += 1
            d["faults"] += 1
            d["last"] = time.time()
            await asyncio.sleep(min(CFG["latency_ms"], 50) / 1000)
            raise Reply(
                int(fault),
                err(
                    int(fault),
                    {"429": "Rate limit reached", "500": "The server had an error", "503": "Overloaded"}[fault],
                    "server_error" if fault != "429" else "rate_limit_exceeded",
                ),
                {"Retry-After": str(CFG["retry_after"])} if fault == "429" else {},
            )
        if fault == "timeout":
            ST.faults[fault] += 1
            d["faults"] += 1
            await asyncio.sleep(CFG["timeout_s"])
            d["last"] = time.time()
            raise Reply(0, None, close=True)
        if fault == "malformed":
            ST.faults[fault] += 1
            d["faults"] += 1
            text = mangle(text, key)
        if fault == "empty":
            ST.faults[fault] += 1
            d["faults"] += 1
            text = ""
        mx = body.get("max_completion_tokens") or body.get("max_tokens")
        finish = "stop"
        if mx and len(text) > 4 * mx:
            text, finish = text[: 4 * mx], "length"
        pt, ct = max(1, len(prompt) // 4), max(1, len(text) // 4)
        delay = (CFG["latency_ms"] + CFG["per_token_ms"] * ct + CFG["per_ktok_in_ms"] * pt / 1000) / 1000
        if CFG["jitter"]:
            delay *= 1 + CFG["jitter"] * (2 * unit("jit", key) - 1)
        if SEM:
            async with SEM:
                if delay:
                    await asyncio.sleep(delay)
        elif delay:
            await asyncio.sleep(delay)
        d["completion_chars"] += len(text)
        d["last"] = time.time()
        d["busy_s"] += d["last"] - t
        if ST.kept < CFG["keep_mb"] * 1e6:
            ST.texts.append((kind, prompt, text))
            ST.kept += len(prompt) + len(text)
        if CFG["verbose"] and len(ST.log) < 400:
            ST.log.append(dict(kind=kind, body=body, answer=text))
        n = int(body.get("n") or 1)
        msg = {"role": "assistant", "content": text, "refusal": None}
        if call:
            msg = {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_" + key[:12], "type": "function", "function": {"name": call, "arguments": text}}
                ],
            }
        lp = logprobs_for(text, int(body.get("top_logprobs") or 0)) if body.get("logprobs") else None
        return {
            "id": "chatcmpl-" + key,
            "object": "chat.completion",
            "created": 1700000000,
            "model": body.get("model", "fake"),
            "choices": [
                {"index": k, "message": msg, "logprobs": lp, "finish_reason": "tool_calls" if call else finish}
                for k in range(n)
            ],
            "usage": {"prompt_tokens": pt, "completion_tokens": ct * n, "total_tokens": pt + ct * n},
            "system_fingerprint": "fake",
        }
    finally:
        ST.inflight -= 1


async def embeddings(body):
    t = time.time()
    ST.einflight += 1
    ST.max_einflight = max(ST.max_einflight, ST.einflight)
    try:
        inp = body.get("input")
        inp = inp if isinstance(inp, list) else [inp]
        if inp and isinstance(inp[0], int):
            inp = [inp]
        if inp and isinstance(inp[0], list):
            e = ENC or encoder()
            inp = [e.decode(x) if e else " ".join(map(str, x)) for x in inp]
        dim = int(body.get("dimensions") or CFG["dim"])
        ST.embed["requests"] += 1
        ST.embed["inputs"] += len(inp)
        ST.embed["chars"] += sum(map(len, inp))
        ST.embed["first"] = ST.embed["first"] or t
        if CFG["rate_429"] and CFG["fault_kinds"] == "" and pick_fault("emb" + str(h64(*inp)), "embed") == "429":
            ST.faults["embed_429"] += 1
            raise Reply(
                429, err(429, "Rate limit reached", "rate_limit_exceeded"), {"Retry-After": str(CFG["retry_after"])}
            )
        vecs = [embed(x, dim) for x in inp]
        if CFG["embed_latency_ms"]:
            await asyncio.sleep(CFG["embed_latency_ms"] / 1000)
        if body.get("encoding_format") == "base64":
            import base64, struct

            vecs = [base64.b64encode(struct.pack(f"<{dim}f", *v)).decode() for v in vecs]
        n = sum(map(len, inp)) // 4
        ST.embed["last"] = time.time()
        return {
            "object": "list",
            "model": body.get("model", "fake-embed"),
            "data": [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vecs)],
            "usage": {"prompt_tokens": n, "total_tokens": n},
        }
    finally:
        ST.einflight -= 1


async def route(method, path, raw):
    global ST, SEM
    p = path.split("?")[0].rstrip("/")
    if method == "GET":
        if p == "/stats":
            return stats_json()
        if p.endswith("/models"):
            return {
                "object": "list",
                "data": [{"id": m, "object": "model", "owned_by": "local"} for m in ("fake-chat", "fake-embed")],
            }
        if p == "/log":
            return ST.log[-int((re.search(r"n=(\d+)", path) or [0, 5])[1]) :]
        if p in ("", "/health"):
            return {"ok": True}
        raise Reply(404, err(404, "no such path " + p, "invalid_request_error"))
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        raise Reply(400, err(400, "bad json", "invalid_request_error"))
    if p == "/reset":
        inf = ST.inflight
        ST = Stats()
        ST.inflight = inf
        BUCKET[:] = [0.0, 0.0]
        return {"ok": True}
    if p == "/config":
        for k, v in body.items():
            if k not in CFG:
                raise Reply(400, err(400, "unknown knob " + k, "invalid_request_error"))
            CFG[k] = type(DEFAULTS[k])(v)
        SEM = asyncio.Semaphore(int(CFG["slots"])) if CFG["slots"] else None
        return CFG
    if p.endswith("/chat/completions"):
        obj = await chat(body)
        return Sse(obj, body) if body.get("stream") else obj
    if p.endswith("/embeddings"):
        return await embeddings(body)
    raise Reply(404, err(404, "no such path " + p, "invalid_request_error"))


REASON = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


async def client(r, w):
    try:
        while True:
            try:
                head = await r.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            lines = head.decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ", 2)
            hd = {k.strip().lower(): v.strip() for k, _, v in (l.partition(":") for l in lines[1:] if l)}
            if hd.get("transfer-encoding", "").lower() == "chunked":
                raw = b""
                while True:
                    n = int((await r.readline()).split(b";")[0], 16)
                    raw += (await r.readexactly(n)) if n else b""
                    await r.readline()
                    if not n:
                        break
            else:
                n = int(hd.get("content-length") or 0)
                raw = await r.readexactly(n) if n else b""
            status, extra = 200, {}
            try:
                obj = await route(method, path, raw)
            except Reply as e:
                if e.close:
                    break
                status, obj, extra = e.status, e.obj, e.headers
            except Exception as e:  # a bug here must be seen, not swallowed
                import traceback

                traceback.print_exc()
                status, obj = 500, err(500, f"server bug: {e!r}", "server_bug")
            sse = isinstance(obj, Sse)
            out = obj.data if sse else json.dumps(obj, ensure_ascii=False, default=str).encode()
            hdr = (
                f"HTTP/1.1 {status} {REASON.get(status, 'X')}\r\nContent-Type: {'text/event-stream' if sse else 'application/json'}\r\nContent-Length: {len(out)}\r\n"
                + "".join(f"{k}: {v}\r\n" for k, v in extra.items())
                + "\r\n"
            )
            w.write(hdr.encode() + out)
            await w.drain()
            if hd.get("connection", "").lower() == "close":
                break
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        w.close()


async def main():
    global SEM
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--port", type=int, default=8199)
    ap.add_argument("--host", default="127.0.0.1")
    for k, v in DEFAULTS.items():
        ap.add_argument("--" + k.replace("_", "-"), type=type(v), default=v)
    a = ap.parse_args()
    for k in DEFAULTS:
        CFG[k] = getattr(a, k)
    SEM = asyncio.Semaphore(int(CFG["slots"])) if CFG["slots"] else None
    srv = await asyncio.start_server(client, a.host, a.port, limit=2**26, backlog=1024)
    print(f"llm_server on http://{a.host}:{a.port}/v1 pid {os.getpid()} {CFG}", flush=True)
    async with srv:
        await srv.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
