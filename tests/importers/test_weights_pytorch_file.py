"""PyTorch's own files are read; hostile files are refused, and nothing in them is run."""

from __future__ import annotations

import io
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.importers.files import import_weights
from tests.importers.weight_files import (
    glob,
    number,
    state_dict,
    tensor,
    text,
    torch_stream,
    torch_tensors,
    torch_zip,
    under,
    zipped,
)

ARRAYS = torch_tensors("gru", 3, 2)


def weights_of(path: Path) -> Any:
    (model,) = import_weights(path)
    assert model.network is not None
    return model.network.passes[0][0]


def check(path: Path) -> None:
    weights = weights_of(path)
    np.testing.assert_array_equal(weights.matrices["r", "x"], ARRAYS["weight_ih_l0"][:3])
    np.testing.assert_array_equal(weights.matrices["nh", "h"], ARRAYS["weight_hh_l0"][6:])
    np.testing.assert_array_equal(weights.biases["nh"], ARRAYS["bias_hh_l0"][6:])


@pytest.mark.parametrize("write", [torch_zip, torch_stream])
@pytest.mark.parametrize("keys", [(), ("model_state",), ("checkpoint", "state_dict")])
def test_both_formats_wherever_the_state_is(write: Any, keys: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    body = state_dict(ARRAYS, old=write is torch_stream)
    for key in keys:
        body = under(key, body)
    path.write_bytes(write(ARRAYS, body))
    check(path)


def test_two_state_dictionaries_are_two_models(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    body = b"}(" + text("net") + state_dict(ARRAYS, old=False) + text("ema") + state_dict(ARRAYS, old=False) + b"u"
    path.write_bytes(torch_zip(ARRAYS, body))
    assert [each.model.name for each in import_weights(path)] == ["a-ema", "a-net"]


class _Storage:
    def __init__(self, kind: str, key: str, size: int) -> None:
        self.identity = ("storage", getattr(sys.modules["torch"], kind), key, "cpu", size)


class _Made:
    """An object that pickles itself as a call of a fake torch function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = (function, arguments)

    def __reduce__(self) -> Any:
        return self.made


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_what_pickle_itself_writes(protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for module, name in ((utils, "_rebuild_tensor_v2"), (utils, "_rebuild_parameter")):

        def function(*_: Any) -> None: ...

        function.__module__, function.__qualname__ = module.__name__, name
        setattr(module, name, function)
    for name in ("FloatStorage", "Size"):
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            return value.identity if isinstance(value, _Storage) else None

    state: Any = OrderedDict()
    for at, (name, array) in enumerate(ARRAYS.items()):
        strides = tuple(step // 4 for step in array.strides)
        storage = _Storage("FloatStorage", str(at), array.size)
        made = _Made(utils._rebuild_tensor_v2, storage, 0, array.shape, strides, False, OrderedDict())
        state[name] = _Made(utils._rebuild_parameter, made, True, OrderedDict())
    state["shape"] = _Made(torch.Size, (1, 2))
    whole = {"model": state, "lr": 0.1, "steps": [1, 2**70, None, True], "same": state, "bits": (1.5, ("a", "b"))}
    buffer = io.BytesIO()
    Pickler(buffer, protocol).dump(whole)
    path = tmp_path / "a.pt"
    members = {f"a/data/{at}": array.tobytes() for at, array in enumerate(ARRAYS.values())}
    path.write_bytes(zipped({"a/data.pkl": buffer.getvalue(), **members}))
    check(path)


def test_views_of_one_storage(tmp_path: Path) -> None:
    flat = np.arange(100, dtype=np.float32) / 100
    views = {"weight_ih": (4, (2, 3), (1, 2)), "weight_hh": (20, (2, 2), (2, 1))}
    body = b"}("
    for name, (offset, shape, strides) in views.items():
        body += text(name) + tensor("0", flat, False, offset=offset, shape=shape, strides=strides)
    path = tmp_path / "a.pt"
    path.write_bytes(torch_zip({"all": flat}, body + b"u"))
    (model,) = import_weights(path, cell="rnn")
    assert model.network is not None
    weights = model.network.passes[0][0]
    np.testing.assert_array_equal(weights.matrices["a", "x"], flat[4:10].reshape(3, 2).T)
    np.testing.assert_array_equal(weights.matrices["a", "h"], flat[20:24].reshape(2, 2))


MARKER = "marker-of-the-attack"
CALL = b"(" + text(f"open('{MARKER}', 'w')") + b"tR"
ATTACKS = {
    "reduce": (glob("os", "system") + CALL, "names os.system"),
    "eval": (glob("builtins", "eval") + CALL, "names builtins.eval"),
    "old eval": (glob("__builtin__", "eval") + CALL, "names __builtin__.eval"),
    "stack": (b"\x8c\x02os\x8c\x06system\x93" + CALL, "names os.system"),
    "inst": (b"(" + text("touch x") + b"ios\nsystem\n", "make an object of 'os.system' (INST)"),
    "obj": (b"(" + glob("collections", "OrderedDict") + b"o", "make an object (OBJ)"),
    "newobj": (glob("posix", "system") + b")\x81", "names posix.system"),
    "newobj_ex": (glob("subprocess", "Popen") + b")}\x92", "names subprocess.Popen"),
    "build": (b"]}b", "set the state of an object (BUILD)"),
    "build text": (b"}(" + text("a") + number(1) + b"uK\x01b", "set the state of an object (BUILD)"),
    "extension": (b"\x82\x01", "make an object (EXT1)"),
    "persistent text": (b"Pid\n", "has the opcode PERSID"),
    "buffer": (b"\x97", "has the opcode NEXT_BUFFER"),
    "class called": (glob("torch", "FloatStorage") + b")R", "calls torch.FloatStorage, which is no function"),
    "load_from_bytes": (glob("torch.storage", "_load_from_bytes") + CALL, "names torch.storage._load_from_bytes"),
    "dotted": (b"\x8c\x0aos.path.os\x8c\x06system\x93" + CALL, "names os.path.os.system"),
    "long number": (b"\x8b" + (1000).to_bytes(4, "little") + b"\x7f" * 1000, "a number of 7999 bits"),
    "many digits": (b"L" + b"9" * 100_000 + b"L\n", "its pickle cannot be read"),
    "long text": (b"\x8d" + (2**62).to_bytes(8, "little") + b"a", "its pickle cannot be read"),
    "no text": (b"X\xff\xff\xff\x7fa", "its pickle cannot be read"),
    "opcode": (b"\xff", "its pickle cannot be read"),
    "key": (b"}(}K\x01u", "its pickle cannot be read"),
    "call text": (text("a") + b")R", "its pickle cannot be read"),
    "append to text": (text("a") + b"K\x01a", "its pickle cannot be read"),
    "empty stack": (b"R", "its pickle cannot be read"),
    "no mark": (b"t", "its pickle cannot be read"),
    "memo": (b"h\x07", "its pickle cannot be read"),
    "persistent number": (b"K\x01Q", "its pickle cannot be read"),
    "persistent short": (b"(" + text("storage") + b"tQ", "its pickle cannot be read"),
    "persistent dict": (b"}Q", "its pickle cannot be read"),
    "persistent class": (b"(" + text("storage") + text("FloatStorage") + text("0") * 2 + b"K\x01tQ", "cannot be read"),
    "persistent odd class": (
        b"(" + text("storage") + glob("torch", "Size") + text("0") * 2 + b"K\x01tQ",
        "has numbers of a kind that is not known here: torch.Size",
    ),
    "tensor of text": (glob("torch._utils", "_rebuild_tensor_v2") + b"(" + text("a") + b"K\x00))tR", "cannot be read"),
    "parameter of text": (
        glob("torch._utils", "_rebuild_parameter") + b"(" + text("a") + b"\x88Nt" + b"R",
        "cannot be read",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("write", [torch_zip, torch_stream])
def test_attacks_are_refused_by_name(attack: str, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    body, sentence = ATTACKS[attack]
    path = tmp_path / "a.pt"
    # The call stands after a whole network, where a reader may have stopped already.
    path.write_bytes(
        write(ARRAYS, b"}(" + text("net") + state_dict(ARRAYS, write is torch_stream) + text("x") + body + b"u")
    )
    with pytest.raises(InputError) as caught:
        import_weights(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert sentence in line
    assert "\n" not in line
    assert ("nothing was executed" in line) == (
        "names" in line or "calls" in line or "asks to" in line or "opcode" in line
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.pt"]


OBJECTS = {
    "class": glob("my.net", "Model") + b")R",
    "new": glob("my.net", "Model") + b")\x81",
    "new with keywords": glob("my.net", "Model") + b")}\x92",
    "state": glob("my.net", "Model") + b")\x81}(" + text("a") + number(1) + b"ub",
    "mapping": glob("my.net", "Config") + b")R" + text("a") + number(1) + b"s",
    "list": glob("my.net", "Names") + b")R" + text("a") + b"a",
    "nested class": b"\x8c\x06my.net\x8c\x0bOuter.Inner\x93)R",
    "old protocol": glob("copy_reg", "_reconstructor") + b"(" + glob("my.net", "Model") + glob("x", "object") + b"NtR",
    "function": glob("torch", "tanh"),
    "set": glob("__builtin__", "set") + b"]K\x01a\x85R",
    "new set": b"\x8f(K\x01\x90",
    "bytes": b"C\x01a",
    "class as key": b"}" + glob("my.net", "Model") + b"K\x01s",
    "tuple key": b"}()K\x01u",
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("write", [torch_zip, torch_stream])
def test_objects_beside_the_weights_do_no_harm(kind: str, write: Any, tmp_path: Path) -> None:
    """Checkpoints hold settings of any class; these are passed over, and none is imported or called."""
    path = tmp_path / "a.ckpt"
    state = state_dict(ARRAYS, write is torch_stream)
    path.write_bytes(write(ARRAYS, b"}(" + text("settings") + OBJECTS[kind] + text("state_dict") + state + b"u"))
    check(path)
    assert "my.net" not in sys.modules


def test_a_whole_module(tmp_path: Path) -> None:
    """torch.save(module): parameters of modules in modules, and the class that a user wrote."""
    state = b"}(" + text("_parameters") + state_dict(ARRAYS, False) + text("_modules") + b"}"
    inner = glob("my.net", "Reader") + b")\x81" + state + b"ub"
    outer = glob("my.net", "Model") + b")\x81}(" + text("_parameters") + b"}" + text("_modules")
    outer += b"}" + text("enc") + inner + b"s" + b"ub"
    path = tmp_path / "a.pt"
    path.write_bytes(torch_zip(ARRAYS, outer))
    check(path)
    (model,) = import_weights(path)
    assert model.source == "a.pt: 'enc'"
    assert model.notes == (
        "'enc' is of class 'my.net.Reader', not PyTorch's own: the equations of torch.nn are taken for it",
    )


def test_torchscript_may_end_in_jit(tmp_path: Path) -> None:
    path = tmp_path / "net.jit"
    path.write_bytes(torch_zip(ARRAYS))
    check(path)


@pytest.mark.parametrize("name", ["_all_weight_values", "_packed_weight_ih"])
def test_a_whole_module_after_quantize_dynamic_is_named(name: str, tmp_path: Path) -> None:
    """Its weights are modules of packed parameters, which hold objects of another library."""
    packed = glob("torch.ao.nn.quantized.dynamic.modules.rnn", "PackedParameter") + b")\x81}("
    packed += text("_parameters") + b"}" + text("_modules") + b"}" + b"ub"
    lstm = glob("torch.ao.nn.quantized.dynamic.modules.rnn", "LSTM") + b")\x81}(" + text("_parameters") + b"}"
    lstm += text("_modules") + b"}" + text(name) + packed + b"s" + b"ub"
    outer = glob("my.net", "Model") + b")\x81}(" + text("_parameters") + b"}" + text("_modules")
    outer += b"}" + text("enc") + lstm + b"s" + b"ub"
    path = tmp_path / "a.pt"
    path.write_bytes(torch_zip({}, outer))
    with pytest.raises(InputError, match="a quantised recurrent layer, whose packed weights cannot be read"):
        import_weights(path)


def test_a_module_that_holds_itself(tmp_path: Path) -> None:
    outer = glob("my.net", "Model") + b")\x81q\x07}(" + text("_parameters") + state_dict(ARRAYS, False)
    outer += text("_modules") + b"}" + text("again") + b"h\x07s" + b"ub"
    path = tmp_path / "a.pt"
    path.write_bytes(torch_zip(ARRAYS, outer))
    check(path)


def test_a_real_attack_pickle_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in range(6):
        attack = pickle.dumps(_Made(os.mkdir, MARKER), protocol)
        for content in (attack, zipped({"a/data.pkl": attack})):
            (tmp_path / "a.pt").write_bytes(content)
            with pytest.raises(InputError):
                import_weights("a.pt")
    pickle.loads(attack)
    assert (tmp_path / MARKER).exists(), "the attack of this test is none"


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"count": 10**6}, "bytes, its 1000000 numbers need 4000000"),
        ({"count": 5}, "weight_ih_l0: has a tensor beyond the 5 numbers of storage"),
        ({"offset": 1}, "beyond the"),
        ({"offset": -1}, "cannot be read"),
        ({"strides": (2**40, 1)}, "beyond the"),
        ({"strides": (-1, 1)}, "cannot be read"),
        ({"strides": (1,)}, "cannot be read"),
        ({"shape": (9, 10**9), "strides": (0, 0)}, "a size of 1000000000, must be between 1 and"),
        ({"shape": (10**9, 2), "strides": (0, 0)}, "1000000000 rows and 2 hidden units"),
        ({"mark": "stowage"}, "cannot be read"),
        ({"kind": "IntStorage"}, "expected F64, F32, F16 or BF16"),
        ({"kind": "UntypedStorage"}, "numbers of a kind that is not known here: torch.UntypedStorage"),
        ({"kind": "DoubleStorage"}, "bytes, its 18 numbers need 144"),
    ],
)
def test_tensors_that_claim_what_is_not_there(claims: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    names = [name for name in ARRAYS if name.startswith("weight")]
    arrays = {name: ARRAYS[name] for name in names}
    path.write_bytes(torch_zip(arrays, state_dict(arrays, False, **claims)))
    with pytest.raises(InputError) as caught:
        import_weights(path)
    assert sentence in str(caught.value)


def test_an_expanded_tensor_is_not_expanded(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    one = np.ones(1, np.float32)
    size = {"weight_ih": (10**6, 10**6), "weight_hh": (10**6, 10**6)}
    body = b"}(" + b"".join(text(name) + tensor("0", one, False, shape=s, strides=(0, 0)) for name, s in size.items())
    path.write_bytes(torch_zip({"a": one}, body + b"u"))
    with pytest.raises(InputError, match="beyond the 1 numbers"):
        import_weights(path, cell="rnn")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04", "a zip file that is damaged or cut off"),
        (torch_zip(ARRAYS)[:-30], "a zip file that is damaged or cut off"),
        (zipped({"a.txt": b""}), "is no PyTorch file of tensors"),
        (zipped({"a/data.pkl": b"", "b/data.pkl": b""}), "is no PyTorch file of tensors"),
        (zipped({"a/data.pkl": b"\x80\x02" + state_dict(ARRAYS, False) + b"."}), "has no member 'a/data/0'"),
        (zipped({"a/data.pkl": b"\x80\x02}.", "a/byteorder": b"big"}), "big-endian"),
        (zipped({"a/data.pkl": b"\x80\x02}."}), "holds no recurrent layer by PyTorch's names"),
        (zipped({"a/data.pkl": bytes(10**7)}, zipfile.ZIP_DEFLATED), "no network does"),
        (b"\x80\x02}.", "is a pickle, but not one of PyTorch's"),
        (b"(dp0\n.", "neither a zip file nor a pickle"),
        (torch_stream(ARRAYS)[:-100], "is cut off: storage '"),
        (torch_stream(ARRAYS)[:40], "its pickle cannot be read"),
        (torch_stream(ARRAYS).replace(b"little_endian", b"latter_endian"), "from a little-endian machine"),
        (torch_stream(ARRAYS, state_dict(ARRAYS, True, count=10**15)), "has not the length that its tensors state"),
    ],
)
def test_files_that_are_something_else(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        import_weights(path)
    assert sentence in str(caught.value)


def test_names_in_a_zip_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(ARRAYS["weight_ih_l0"].tobytes())
    path = tmp_path / "inner" / "a.pt"
    path.parent.mkdir()
    body = b"}(" + b"".join(text(name) + tensor("../../../secret", ARRAYS[name], False) for name in ARRAYS) + b"u"
    path.write_bytes(zipped({"a/data.pkl": b"\x80\x02" + body + b".", "../../evil": b"x"}))
    with pytest.raises(InputError, match=r"has two lengths or kinds|states two lengths|has no member"):
        import_weights(path)
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a.pt", "inner", "secret"]
