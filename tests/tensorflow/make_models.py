"""Writes the models of `data/`, with what TensorFlow makes of them: run it where TensorFlow 2 is.

    python tests/tensorflow/make_models.py

Each file holds a frozen graph, inputs, outputs, names, and where asked for the gradient of the
outputs' sum by the first input.
"""

import os
import shutil
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

DATA = Path(__file__).parent / "data"
K = tf.keras
random = np.random.RandomState(7)


def normal(*shape):
    return random.randn(*shape).astype(np.float32)


def write(name, function, inputs, lower=False, gradient=False, free=True):
    specs = [
        tf.TensorSpec((None, *v.shape[1:]) if free and v.ndim else v.shape, v.dtype) for v in inputs
    ]
    concrete = tf.function(function).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    data = frozen.graph.as_graph_def().SerializeToString()
    facts = {f"input_{i}": v for i, v in enumerate(inputs)}
    tensors = [tf.constant(v) for v in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors[0])
        outputs = tf.nest.flatten(function(*tensors))
        total = tf.add_n([tf.reduce_sum(y * y) for y in outputs])
    facts |= {f"output_{i}": np.asarray(y) for i, y in enumerate(outputs)}
    if gradient:
        facts["gradient"] = np.asarray(tape.gradient(total, tensors[0]))
    np.savez_compressed(
        DATA / f"{name}.npz",
        graph=np.frombuffer(data, np.uint8),
        inputs=[t.name for t in frozen.inputs],
        outputs=[t.name for t in frozen.outputs],
        **facts,
    )
    print(name, len(data), (DATA / f"{name}.npz").stat().st_size)


def network(model):
    for weight in model.weights:
        weight.assign(np.abs(weight) + 0.1 * normal(*weight.shape) ** 2 if "variance" in weight.path
                      else weight + 0.1 * normal(*weight.shape))  # fmt: skip
    return lambda x: model(x, training=False)


def convolutions():
    x = K.Input((12, 12, 3))
    h = K.layers.Conv2D(4, 3, strides=2, padding="same")(x)
    h = K.layers.ReLU(6.0)(K.layers.BatchNormalization()(h))
    h = K.layers.BatchNormalization()(K.layers.DepthwiseConv2D(3, padding="same")(h))
    h = K.layers.ZeroPadding2D(1)(K.layers.Activation("swish")(h))
    h = K.layers.GlobalAveragePooling2D()(K.layers.MaxPooling2D(2)(h))
    return K.Model(x, K.layers.Dense(4, activation="softmax")(h))


def transformer():
    x = K.Input((6, 8))
    a = K.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    h = K.layers.LayerNormalization()(x + a)
    f = K.layers.Dense(8)(K.layers.Dense(16, activation="gelu")(h))
    return K.Model(x, K.layers.Dense(5, activation="softmax")(K.layers.LayerNormalization()(h + f)))


def recurrent():
    x = K.Input((5, 3))
    h = K.layers.Bidirectional(K.layers.LSTM(3, return_sequences=True))(x)
    return K.Model(x, K.layers.Dense(2)(K.layers.GRU(3)(h)))


@tf.function
def square(x):
    return x * x


@tf.function
def control(x, n):
    y = square(x) + square(square(x))
    if tf.reduce_sum(y) > 10.0:
        y = tf.sin(y)
    else:
        y = tf.cos(y) + 1.0
    i = tf.constant(0)
    while i < n:
        if i % 2 == 0:
            y = y + 1.0
        else:
            y = y * 0.5 * x
        i += 1
    z = tf.switch_case(n % 3, [lambda: y, lambda: y + 1.0, lambda: square(y) * 2.0])
    return y, z


KINDS = [
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "complex64", "complex128", "bool",
]  # fmt: skip


def checkpoint():
    """A checkpoint of all dtypes and of partitioned variables; what is in it as one .npz file."""
    v1 = tf.compat.v1
    values = {}
    for i, kind in enumerate(KINDS):
        values[kind] = tf.cast(normal(3, i % 3 + 1) * 50, kind).numpy()
    values["text"] = np.array([b"", b"a\x00b", "\u00fc".encode() * 70], object)
    values["scalar"] = np.float32(3.5)
    values["empty"] = np.zeros((0, 4), np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in values.items():
            v1.get_variable(f"v/{name}", initializer=tf.constant(value))
        parts = {
            "rows": ([7, 5], v1.fixed_size_partitioner(3)),
            "columns": ([2, 300], v1.fixed_size_partitioner(2, axis=1)),
        }
        for name, (shape, partitioner) in parts.items():
            initializer = v1.random_normal_initializer(seed=1)
            v1.get_variable(name, shape, initializer=initializer, partitioner=partitioner)
        session.run(v1.global_variables_initializer())
        folder = DATA / "checkpoint"
        saver = v1.train.Saver(save_relative_paths=True)
        saver.save(session, str(folder / "model"), 7, write_meta_graph=False)
    reader = tf.train.load_checkpoint(str(folder))
    found = {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}
    found.pop("v/text")
    found["v/bfloat16"] = found["v/bfloat16"].view(np.uint16)
    np.savez_compressed(
        folder / "expected.npz", **{n.replace("/", "|"): v for n, v in found.items()}
    )


def saved_by_version_1():
    """A model with variables of both kinds, one in parts, two graphs and an init operation."""
    v1 = tf.compat.v1
    folder = DATA / "saved_1"
    shutil.rmtree(folder, ignore_errors=True)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        parts = v1.fixed_size_partitioner(2)
        normally = v1.random_normal_initializer(seed=1)
        w = v1.get_variable("w", [3, 2], initializer=normally, partitioner=parts)
        b = v1.get_variable("b", initializer=tf.constant([1.0, 2.0]), use_resource=False)
        runs = v1.get_variable("runs", initializer=0.0, trainable=False, use_resource=False)
        y = tf.identity(tf.matmul(x, w.as_tensor()) + b + runs, name="y")
        session.run(v1.global_variables_initializer())
        build = v1.saved_model.build_signature_def
        info = v1.saved_model.build_tensor_info
        signature = build({"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict")
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            main_op=v1.assign_add(runs, 10.0).op,
            strip_default_attrs=True,
        )
        builder.add_meta_graph(["serve", "gpu"], {"other": signature})
        builder.save()
        value = normal(4, 3)
        expected = session.run(y, {x: value}) + 10.0
    np.savez_compressed(folder / "expected.npz", x=value, y=expected)


class Counter(tf.Module):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(2.0)
        self.count = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        self.count.assign_add(1)
        return {"scaled": x * self.scale, "count": tf.cast(self.count, tf.float32) + 0.0 * x}


def saved_by_version_2():
    """A recurrent network, and a module that counts its calls."""
    quiet = tf.saved_model.SaveOptions(save_debug_info=False)
    counter = Counter()
    tf.saved_model.save(counter, str(DATA / "saved_counter"), counter.__call__, quiet)
    x = K.Input((5, 3))
    model = K.Model(x, K.layers.Dense(2)(K.layers.GRU(3)(x)))
    model.export(str(DATA / "saved_2"), verbose=False)
    value = normal(4, 5, 3)
    np.savez_compressed(DATA / "saved_2" / "expected.npz", x=value, y=model(value).numpy())


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    checkpoint()
    saved_by_version_1()
    saved_by_version_2()
    K.utils.set_random_seed(5)
    write("convolutions", network(convolutions()), [normal(2, 12, 12, 3)], gradient=True)
    write("transformer", network(transformer()), [normal(2, 6, 8)], gradient=True)
    model = network(recurrent())
    write("recurrent", model, [normal(4, 5, 3)], gradient=True)
    write("recurrent_lowered", model, [normal(4, 5, 3)], lower=True)
    for n, lower in ((5, False), (4, True)):
        name = "control_lowered" if lower else "control"
        write(name, control, [normal(5) * 2, np.int32(n)], lower=lower, gradient=not lower)
