"""Files of strangers: `olx.load` reads what `olx.save` writes and refuses everything else."""

import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hostile_files import (
    ARRAYS,
    FILES,
    HEADER,
    NAMES,
    ODD_NAMES,
    WRITES,
    file_of,
    predicting,
    with_part,
)

import olx
from olx import _archive as archive
from olx.engine import savable

FACTS = "learner", "fields", "facts"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "model.olx"


def load(place, content, **options):
    place.write_bytes(content)
    return olx.load(place, **options)


def refusal(place, content, **options):
    """What `load` says; anything but a ValueError in its own words fails."""
    with pytest.raises(ValueError, match=r"^load: ") as caught:
        load(place, content, **options)
    said = str(caught.value)
    assert said.endswith(".")
    assert len(said) < 1000
    return said


def test_a_file_of_the_first_format_is_read(place):
    learner, state = load(place, file_of(HEADER, ARRAYS))
    assert learner.predict_fn is olx.dot
    assert float(learner.hparams) == 0.0
    assert state["t"] == 3
    assert state["w"].tolist() == [1, 2, 3, 4, 5]
    olx.save(place, learner, state)
    assert olx.load(place).state["w"].dtype == jnp.float32


def test_a_model_of_olx_0_1_is_read_or_refused_with_the_remedy(place):
    facts = lambda coordinates: {
        "record": "olx.facts:Facts",
        "fields": {"adds": None, "coordinates": coordinates, "refresh": None, "conservative": True},
    }
    still = {"record": "olx.facts:Separable", "fields": {"still": True}}
    header = with_part(facts(still), *FACTS)
    learner, _ = load(place, file_of(header, ARRAYS))
    assert learner.facts == olx.Facts(coordinates=olx.facts.Separable(keeps_decision=True))
    view = {"record": "olx.theorem:View", "fields": {}}
    gone = with_part({"tuple": [view]}, "learner", "fields", "theorems")
    late = with_part(facts({"record": "olx.facts:Rowwise", "fields": {"new": 1}}), *FACTS)
    for header, name in (gone, "olx.theorem:View"), (late, "olx.facts:Rowwise has no field 'new'"):
        said = refusal(place, file_of(header, ARRAYS))
        assert name in said
        assert "of another version" in said
        assert "save the learner again" in said


def test_learners_of_recordings_and_of_optax_need_no_trust(place):
    structure = olx.alignment.align(2, 2, 2, cost=olx.alignment.off_by(1.0))
    aligner = olx.structured.structured_perceptron(structure)
    adam = olx.interop.optax.from_optax(optax.adam, learning_rate=0.1)
    for learner, start in (aligner, structure.zeros()), (adam, jnp.zeros(2)):
        saved = learner, learner.init(start)
        olx.save(place, *saved)
        assert jax.tree.structure(tuple(olx.load(place))) == jax.tree.structure(saved)


def test_names_that_are_no_part_of_a_learner_are_refused(place):
    assert len(NAMES) + len(ODD_NAMES) >= 60
    before = set(sys.modules)
    for name in [*NAMES, *ODD_NAMES]:
        forms = [{"name": name}, {"Partial": {"name": name}, "args": [], "keywords": {}}]
        forms += [{"record": name, "fields": {}}]
        for form in forms:
            said = refusal(place, file_of(predicting(form)))
            assert name[:60] in said or repr(name[:60])[1:-1] in said, name
            assert "trust=['olx" not in said
            assert "trust=['os" not in said
    own = [name for name in set(sys.modules) - before if not name.startswith(savable.LEARNERS)]
    assert [name for name in own if not name.startswith(("olx.", "optax"))] == []


def test_headers_that_are_not_written_are_refused(place):
    assert len(FILES) >= 60
    for what, content in FILES.items():
        try:
            said = refusal(place, content)
        except BaseException as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}"[:500]) from None
        assert str(place) in said, what


def test_nothing_that_a_file_names_is_called(place, tmp_path):
    for make in WRITES.values():
        refusal(place, make(tmp_path / "owned"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.olx"]


def test_trust_is_a_list_of_modules_and_covers_what_they_define(place, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hostile_mine.py").write_text(
        "import os\nfrom os import popen\nimport subprocess as sub\n"
        "class Rule:\n    @staticmethod\n    def play(hp, state, x):\n        return x\n"
        "    class Inner:\n        pass\n"
        "def play(hp, state, x):\n    return x\n"
    )
    for trust in ("os", "hostile_mine", 5, None):
        with pytest.raises(TypeError, match=r"load: `trust` must be a list of modules, got"):
            load(place, file_of(HEADER), trust=trust)
    for trust in ([""], [5], ["a:b"], ["../x"], ["__main__"]):
        with pytest.raises(ValueError, match=r"load: `trust` must hold names of modules"):
            load(place, file_of(HEADER), trust=trust)
    named = lambda path: file_of(predicting({"name": f"hostile_mine:{path}"}))
    assert "trust=['hostile_mine']" in refusal(place, named("play"))
    assert "hostile_mine" not in sys.modules
    for path in ("play", "Rule.play"):
        assert load(place, named(path), trust=["hostile_mine"]).learner.predict_fn(0, 0, 7) == 7
    for path in ("os.system", "popen", "sub.run", "os", "Rule", "Rule.Inner", "Rule.__init__"):
        refusal(place, named(path), trust=["hostile_mine"])


def test_what_cannot_be_read_is_not_saved(place):
    learner = olx.load(_written(place)).learner
    deep = 1
    for _ in range(2000):
        deep = (deep,)
    for state, words in {
        "objects": (np.array([print, None]), "dtype object cannot be saved"),
        "words": (np.array(["a"]), "dtype <U1 cannot be saved"),
        "a class": (pytest.Item, "move it to the top of a module"),
        "a method": (learner.init, "move it to the top of a module"),
        "depth": (deep, "nested too deeply"),
    }.values():
        with pytest.raises(TypeError, match=f"save: .*{words}"):
            olx.save(place, learner, state)


def _written(place):
    place.write_bytes(file_of(HEADER))
    return place


def test_plain_functions_of_jax_are_named_by_their_public_names(place):
    learner = load(place, file_of(predicting({"name": "jax.nn:relu"}))).learner
    olx.save(place, learner, [jnp.add, jnp.float32, np.float64, jnp.dot])
    assert b'"jax.nn:relu"' in place.read_bytes()
    assert olx.load(place).state == [jnp.add, jnp.float32, np.float64, jnp.dot]


ALLOWED = {  # what a module that makes learners may import
    "collections", "dataclasses", "fractions", "functools", "itertools", "jax", "jaxtyping", "math",
    "numpy", "olx", "optax", "scipy", "string", "typing", "inspect", "types",
}  # fmt: skip
CALLS = {
    "open", "exec", "eval", "compile", "__import__", "import_module", "pure_callback",
    "io_callback", "callback", "save", "savez", "savez_compressed", "savetxt", "load", "loadtxt",
    "genfromtxt", "fromfile", "tofile", "memmap", "dump", "system", "popen", "setattr", "delattr",
    "globals", "vars", "input", "breakpoint",
}  # fmt: skip


def test_modules_that_make_learners_touch_nothing_but_numbers():
    found = dict(_sources())
    assert len(found) > 150
    for module, source in found.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                roots = names if isinstance(node, ast.Import) else [node.module]
                assert {root.partition(".")[0] for root in roots} <= ALLOWED, (module, roots)
                assert "olx._archive" not in roots, module
                assert "_archive" not in names, module
            if isinstance(node, ast.Call):
                named = getattr(node.func, "attr", getattr(node.func, "id", ""))
                assert named not in CALLS, (module, node.lineno, named)


def _sources():
    root = Path(olx.__file__).parent
    for package in savable.LEARNERS:
        place = root.joinpath(*package.split(".")[1:])
        for file in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
            name = ".".join(["olx", *file.relative_to(root).with_suffix("").parts])
            if name not in savable.ON_HOST:
                yield name, file.read_text(encoding="utf-8")


def test_a_full_disk_and_an_interrupt_leave_the_old_file_and_no_draft(place, monkeypatch):
    learner, state = olx.load(_written(place))
    before = place.read_bytes()
    full, stop = OSError(28, "No space left on device"), KeyboardInterrupt("stopped")
    for error, words in (full, "cannot be written: No space left.*unchanged"), (stop, "stopped"):
        monkeypatch.setattr(archive.os, "fsync", lambda _, error=error: _raise(error))
        with pytest.raises(type(error), match=words):
            olx.save(place, learner, state)
        assert [path.name for path in place.parent.iterdir()] == ["model.olx"]
        assert place.read_bytes() == before


def _raise(error):
    raise error


def test_two_writers_and_a_reader_see_whole_files_only(place):
    learner = olx.load(_written(place)).learner
    states = [jnp.full(2000, float(i)) for i in range(2)]

    def write(i):
        for _ in range(40):
            olx.save(place, learner, states[i])

    def read():
        found = [olx.load(place).state for _ in range(40)]
        return [len(set(np.asarray(leaf).tolist())) for leaf in found if not isinstance(leaf, dict)]

    with ThreadPoolExecutor(3) as pool:
        writers, seen = [pool.submit(write, i) for i in range(2)], pool.submit(read)
        [each.result() for each in writers]
        assert set(seen.result()) <= {1}
    assert [path.name for path in place.parent.iterdir()] == ["model.olx"]


def test_planted_links_are_not_followed(place, tmp_path, monkeypatch):
    learner, state = olx.load(_written(place))
    victim = tmp_path / "victim"
    victim.write_text("mine")
    place.unlink()
    place.symlink_to(victim)
    (tmp_path / "model.olx.draft").symlink_to(victim)
    olx.save(place, learner, state)
    assert not place.is_symlink()
    monkeypatch.setattr(archive.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".guessed.draft").symlink_to(victim)
    with pytest.raises(FileExistsError, match="cannot be written"):
        olx.save(place, learner, state)
    assert victim.read_text() == "mine"
    assert (tmp_path / ".guessed.draft").is_symlink()
