// Answers the page's requests from the data within it, as the server would; see one_file.py for what stands where.

const FOUND = 500;

export function localSource(data) {
  const points = new Map(); // of documents, split into characters once
  const places = (records) => new Map(records.map((each, place) => [each[0], place]));
  const at = { documents: places(data.documents), entities: places(data.entities), communities: places(data.communities) };
  const linksOf = data.entities.map(() => []);
  data.links.forEach(([source, target], place) => {
    linksOf[source].push(place);
    if (target !== source) linksOf[target].push(place);
  });
  const communitiesOf = data.entities.map(() => []);
  data.communities.forEach((each, place) => each[4].forEach((entity) => communitiesOf[entity].push(place)));

  const answers = {
    status: () => data.status,

    questions: ({ level }) => data.questions.map(question).filter((each) => level === undefined || each.level === Number(level)),

    communities: ({ level, parent, telling, single }) => {
      const listed = parent === undefined ? data.communities.map((_, place) => place) : data.communities[place("communities", parent)][3];
      return listed.map(community).filter((each) => (level === undefined || each.level === Number(level)) && (!telling || each.question || each.n_children) && (single === undefined || (each.n_passages === 1) === single));
    },

    starters: ({ limit }) => ({ items: data.starters.slice(0, limit) }),

    coverage: () => data.coverage || fail("There are no questions or no passages."),

    search: ({ q, limit }) => {
      const words = q.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
      const has = (text) => { const lower = text.toLowerCase(); return words.length && words.every((word) => lower.includes(word)); };
      const some = (records, text, show) => { const found = []; for (let each = 0; each < records.length && found.length < limit; each += 1) if (has(text(records[each], each))) found.push(show(records[each], each)); return found; };
      return {
        questions: some(data.questions, (each) => each[1], (each) => question(each)),
        entities: some(data.entities, (each) => each[1], (_, each) => entity(each)),
        passages: some(data.chunks, (_, each) => passage(each).text, (_, each) => passage(each)),
      };
    },
  };

  const things = {
    communities: (id) => {
      const own = place("communities", id);
      const [, , , children, entities, chunks, , summary] = data.communities[own];
      const path = [];
      for (let up = data.communities[own][2]; up >= 0; up = data.communities[up][2]) path.unshift(community(up));
      return {
        ...community(own), path, children: children.map(community),
        summary: summary && { title: summary[0], text: summary[1], findings: summary[2].map(([short, long]) => ({ summary: short, explanation: long })) },
        entities: [...entities].sort((a, b) => data.entities[b][3] - data.entities[a][3]).slice(0, 200).map(entity),
        passages: page(chunks, 0, 20, passage),
      };
    },

    entities: (id) => {
      const own = place("entities", id);
      const [, , , , description, names, claims, chunks] = data.entities[own];
      const links = linksOf[own].slice(0, 200).map((each) => {
        const [source, target, predicate, weight, told] = data.links[each];
        return { to: source === own, predicate, weight, description: told, entity: entity(source === own ? target : source) };
      });
      return { ...entity(own), description, names, claims, links, communities: communitiesOf[own].map(community), passages: page(chunks, 0, 20, passage) };
    },

    documents: (id) => {
      const own = place("documents", id);
      const [, title, text, metadata] = data.documents[own];
      const passages = data.chunks.filter((each) => each[1] === own).map(([chunk, , start, end, position, mentions]) => ({ id: chunk, start, end, position, mentions: mentions.map((each) => mention(each, start)) }));
      const questions = data.questions.filter((each) => each[5].includes(own)).map(question).reverse().slice(0, 50);
      return { id, title, text, metadata, passages, questions };
    },
  };

  function graph(kind, id, limit) {
    const own = place(kind, id);
    const inside = kind === "entities" ? [own] : [...data.communities[own][4]].sort((a, b) => data.entities[b][3] - data.entities[a][3]).slice(0, limit);
    const core = new Set(inside);
    const links = new Set(inside.flatMap((each) => linksOf[each]));
    const around = new Map();
    for (const each of links) for (const end of data.links[each].slice(0, 2)) if (!core.has(end)) around.set(end, (around.get(end) || 0) + data.links[each][3]);
    const outside = [...around].sort((a, b) => b[1] - a[1]).map(([each]) => each);
    const nodes = [...inside, ...outside.slice(0, limit - inside.length)];
    if (kind === "entities") nodes.slice(1, 60).forEach((each) => linksOf[each].forEach((one) => links.add(one)));
    const shown = new Set(nodes);
    return {
      nodes: nodes.map((each) => ({ ...entity(each), inside: core.has(each) })),
      edges: [...links].map((each) => data.links[each]).filter(([source, target]) => shown.has(source) && shown.has(target)).slice(0, 4000)
        .map(([source, target, predicate, weight]) => ({ source: data.entities[source][0], target: data.entities[target][0], predicate, weight })),
      n_left_out: inside.length + outside.length - nodes.length,
    };
  }

  function place(kind, id) {
    const own = at[kind].get(id);
    return own === undefined ? fail(`There is no ${id}.`, 404) : own;
  }

  function question([id, text, level, own, passages, documents]) {
    return { id, text, level, community_id: own < 0 ? null : data.communities[own][0], n_passages: passages, n_documents: documents.length };
  }

  function community(own) {
    const [id, level, parent, children, entities, chunks, asked, summary] = data.communities[own];
    return { id, level, parent_id: parent < 0 ? null : data.communities[parent][0], n_children: children.length, n_entities: entities.length, n_passages: chunks.length, title: summary ? summary[0] : "", question: asked };
  }

  function entity(own) {
    const [id, name, type, degree, , , , chunks] = data.entities[own];
    return { id, name, type, degree, n_passages: chunks.length };
  }

  function passage(own) {
    const [id, document, start, end, position, mentions] = data.chunks[own];
    const [name, title, text] = data.documents[document];
    if (!points.has(document)) points.set(document, Array.from(text));
    return { id, document_id: name, title, position, text: points.get(document).slice(start, end).join(""), mentions: mentions.map((each) => mention(each, 0)) };
  }

  function mention([start, end, own], by) {
    return { start: start + by, end: end + by, entity_id: data.entities[own][0] };
  }

  function page(listed, offset, limit, show) {
    return { total: listed.length, offset, items: listed.slice(offset, offset + limit).map(show) };
  }

  return {
    local: true,

    async get(path, parameters = {}) {
      const given = Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
      const [kind, id, part] = path.split("/").map(decodeURIComponent);
      const [offset, limit] = [Number(given.offset || 0), Number(given.limit || 50)];
      if (id === undefined) {
        if (!answers[kind]) fail("This page holds no such thing.", 404);
        const value = answers[kind]({ ...given, limit: Math.min(limit, FOUND) });
        return Array.isArray(value) ? page(value, offset, limit, (each) => each) : value;
      }
      if (part === "graph") return graph(kind, id, limit);
      if (part === "passages") return page(kind === "entities" ? data.entities[place(kind, id)][7] : data.communities[place(kind, id)][5], offset, limit, passage);
      return things[kind] ? things[kind](id) : fail("This page holds no such thing.", 404);
    },

    async post() { fail("A page of one file is read-only."); },
    async ask() { fail("A page of one file cannot ask: kraq explore DIR"); },
  };
}

function fail(message, status = 0) {
  const error = new Error(message);
  error.status = status;
  throw error;
}
