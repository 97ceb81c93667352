import numpy as np
from hopfuse.diagnose import CachedEncoder
from hopfuse.errors import FormatError
from refusals import refused


class Lengths:
    name, dim, normalize = "lengths", 1, False

    def __init__(self):
        self.asked = []

    def encode_queries(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(text)] for text in texts], np.float32).reshape(-1, 1)

    encode_passages = encode_queries


def test_a_text_is_encoded_once():
    encoder = Lengths()
    cached = CachedEncoder(encoder)
    assert cached.encode_queries(["a", "bb", "a"]).tolist() == [[1], [2], [1]]
    assert cached.encode_queries(["ccc", "bb"]).tolist() == [[3], [2]]
    assert cached.encode_queries([]).shape == (0, 1)
    assert encoder.asked == [["a", "bb"], ["ccc"]]
    assert cached.encode_passages(["dd"]).tolist() == [[2]]
    assert (cached.name, cached.dim, cached.normalize) == ("lengths", 1, False)


def test_a_folder_keeps_vectors_for_the_next_time(tmp_path):
    folder = tmp_path / "made" / "here"
    texts = ["a", "b\ud800"]
    CachedEncoder(Lengths(), folder).encode_passages(texts)
    again = Lengths()
    assert CachedEncoder(again, folder).encode_passages(texts).tolist() == [[1], [2]]
    assert again.asked == []
    # Other texts, queries, and another encoder have files of their own.
    CachedEncoder(again, folder).encode_queries(texts)
    CachedEncoder(again, folder).encode_passages(texts[::-1])
    other = Lengths()
    other.name = "other"
    CachedEncoder(other, folder).encode_passages(texts)
    assert (len(again.asked), len(other.asked), len(list(folder.iterdir()))) == (2, 1, 4)


def test_a_file_of_other_vectors_is_refused(tmp_path):
    CachedEncoder(Lengths(), tmp_path).encode_passages(["a", "b"])
    (path,) = tmp_path.iterdir()
    np.save(path, np.zeros((3, 1), np.float32))
    with refused(FormatError, "damaged"):
        CachedEncoder(Lengths(), tmp_path).encode_passages(["a", "b"])
