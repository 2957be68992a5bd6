"""The programs of TensorFlow 1's guide to reading data, from files to batches."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DataLossError, OutOfRangeError

MODES = ("compiled", "op", "tokens")


@pytest.fixture(autouse=True)
def graph():
    """Each program has a graph, and so runners, of its own."""
    with fs.Graph().as_default() as made:
        yield made


def batches(fetches, mode: str) -> list:
    """What a session gives until the input ends, as the guide's programs run it."""
    found = []
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(sess, coord)
        try:
            while not coord.should_stop():
                found.append(sess.run(fetches))
        except OutOfRangeError:
            pass
        finally:
            coord.request_stop()
        coord.join(threads)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_lines_of_csv_in_random_order(mode: str, tmp_path) -> None:
    names = []
    for f in range(2):
        rows = [f"{f},{i},{i / 2},,w{i}" for i in range(10)]
        names.append(str(tmp_path / f"file{f}.csv"))
        (tmp_path / f"file{f}.csv").write_text("a,b,c,d,e\n" + "\n".join(rows) + "\n")
    queue = fs.train.string_input_producer(names, num_epochs=2)
    _, value = fs.TextLineReader(skip_header_lines=1).read(queue)
    a, b, c, d, word = fs.decode_csv(value, [[0], [0], [0.0], [7], [""]])
    features = fs.stack([a, b, d])
    found = batches(
        fs.train.shuffle_batch([features, c, word], 4, capacity=12, min_after_dequeue=6, seed=1),
        mode,
    )
    assert {len(x[0]) for x in found} == {4}
    rows = [(tuple(f), c, w) for x in found for f, c, w in zip(*(y.tolist() for y in x))]
    each = [((f, i, 7), i / 2, f"w{i}".encode()) for f in range(2) for i in range(10)]
    assert sorted(rows) == sorted(each * 2)
    assert rows != sorted(rows)


@pytest.mark.parametrize("mode", MODES)
def test_records_of_one_length(mode: str, tmp_path) -> None:
    """Images as in CIFAR's binary files: a byte for the label, then depth, height, width."""
    r = np.random.default_rng(0)
    data = r.integers(0, 256, (9, 1 + 3 * 4 * 4), np.uint8)
    (tmp_path / "images.bin").write_bytes(data.tobytes())
    queue = fs.train.string_input_producer([str(tmp_path / "images.bin")], num_epochs=1)
    _, value = fs.FixedLengthRecordReader(data.shape[1]).read(queue)
    record = fs.decode_raw(value, fs.uint8)
    label = fs.cast(fs.strided_slice(record, [0], [1]), fs.int32)
    major = fs.reshape(fs.strided_slice(record, [1], [data.shape[1]]), [3, 4, 4])
    image = fs.transpose(major, [1, 2, 0])
    label.set_shape([1])
    found = batches(fs.train.batch([image, label], 2, allow_smaller_final_batch=True), mode)
    assert [len(x[0]) for x in found] == [2, 2, 2, 2, 1]
    images, labels = (np.concatenate(x) for x in zip(*found))
    np.testing.assert_array_equal(labels[:, 0], data[:, 0])
    np.testing.assert_array_equal(images, data[:, 1:].reshape(-1, 3, 4, 4).transpose(0, 2, 3, 1))


def written(path, count: int) -> list[np.ndarray]:
    """Writes examples with an image, its sizes and a label."""
    images = [np.full((2, 3, 1), i, np.uint8) for i in range(count)]
    with fs.python_io.TFRecordWriter(str(path)) as writer:
        for i, image in enumerate(images):
            ints = lambda *v: fs.train.Feature(int64_list=fs.train.Int64List(value=v))  # noqa: E731
            raw = fs.train.Feature(bytes_list=fs.train.BytesList(value=[image.tobytes()]))
            feature = {"height": ints(2), "width": ints(3), "label": ints(i), "image_raw": raw}
            features = fs.train.Features(feature=feature)
            writer.write(fs.train.Example(features=features).SerializeToString())
    return images


FEATURES = {
    "image_raw": fs.FixedLenFeature([], fs.string),
    "label": fs.FixedLenFeature([], fs.int64),
}


def decoded(serialized):
    features = fs.parse_single_example(serialized, FEATURES)
    image = fs.reshape(fs.decode_raw(features["image_raw"], fs.uint8), [2, 3, 1])
    return fs.cast(image, fs.float32) / 255 - 0.5, fs.cast(features["label"], fs.int32)


@pytest.mark.parametrize("mode", MODES)
def test_records_of_examples(mode: str, tmp_path) -> None:
    images = written(tmp_path / "train.tfrecords", 10)
    queue = fs.train.string_input_producer([str(tmp_path / "train.tfrecords")], num_epochs=1)
    _, serialized = fs.TFRecordReader().read(queue)
    found = batches(fs.train.batch([*decoded(serialized)], 5, capacity=20), mode)
    assert [x[1].tolist() for x in found] == [list(range(5)), list(range(5, 10))]
    got = np.concatenate([x[0] for x in found])
    np.testing.assert_allclose(got, np.stack(images).astype("f4") / 255 - 0.5, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_of_records_is_parsed_at_once(mode: str, tmp_path) -> None:
    written(tmp_path / "train.tfrecords", 10)
    queue = fs.train.string_input_producer([str(tmp_path / "train.tfrecords")], num_epochs=1)
    _, serialized = fs.TFRecordReader().read(queue)
    some = fs.train.batch([serialized], 4, allow_smaller_final_batch=True)
    found = batches(fs.parse_example(some, FEATURES)["label"], mode)
    assert [x.tolist() for x in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("mode", MODES)
def test_a_damaged_record_in_the_middle_is_told_and_can_be_left_behind(mode: str, tmp_path) -> None:
    written(tmp_path / "a.tfrecords", 6)
    data = bytearray((tmp_path / "a.tfrecords").read_bytes())
    size = len(data) // 6
    data[3 * size + 20] ^= 1
    (tmp_path / "a.tfrecords").write_bytes(data)
    written(tmp_path / "b.tfrecords", 2)
    names = [str(tmp_path / f"{n}.tfrecords") for n in "ab"]
    queue = fs.FIFOQueue(2, fs.string, [[]])
    fill = queue.enqueue_many([names])
    reader = fs.TFRecordReader()
    _, serialized = reader.read(queue)
    _, label = decoded(serialized)
    reset, close = reader.reset(), queue.close()
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fill)
        sess.run(close)
        assert [sess.run(label) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(DataLossError, match="a.tfrecords"):
            sess.run(label)
        sess.run(reset)
        assert [sess.run(label) for _ in range(2)] == [0, 1]
        with pytest.raises(OutOfRangeError):
            sess.run(label)


def test_a_damaged_record_ends_the_program_with_its_error(tmp_path) -> None:
    written(tmp_path / "a.tfrecords", 6)
    data = bytearray((tmp_path / "a.tfrecords").read_bytes())
    data[len(data) // 2 + 20] ^= 1
    (tmp_path / "a.tfrecords").write_bytes(data)
    queue = fs.train.string_input_producer([str(tmp_path / "a.tfrecords")], num_epochs=1)
    _, serialized = fs.TFRecordReader().read(queue)
    fetches = fs.train.batch([*decoded(serialized)], 2)
    with pytest.raises(DataLossError, match="a.tfrecords"):
        batches(fetches, "compiled")


def test_images_in_records(tmp_path) -> None:
    pytest.importorskip("PIL")
    given = [np.full((4, 4, 3), 20 * i, np.uint8) for i in range(6)]
    with fs.Session() as sess:
        one = fs.placeholder(fs.uint8, [4, 4, 3])
        packed = fs.image.encode_png(one)
        with fs.python_io.TFRecordWriter(str(tmp_path / "i")) as writer:
            for image in given:
                example = fs.train.Example()
                png = sess.run(packed, {one: image})
                example.features.feature["png"].bytes_list.value.append(png)
                writer.write(example.SerializeToString())
    queue = fs.train.string_input_producer([str(tmp_path / "i")], num_epochs=1)
    _, serialized = fs.TFRecordReader().read(queue)
    png = fs.parse_single_example(serialized, {"png": fs.FixedLenFeature([], fs.string)})["png"]
    image = fs.image.decode_png(png, channels=3)
    image.set_shape([4, 4, 3])
    found = batches(fs.train.batch([image], 3), "compiled")
    np.testing.assert_array_equal(np.concatenate(found), np.stack(given))
