"""Arrays on a device: programs take and return them there, and nothing is copied in between."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.runtime.device_arrays import DeviceArray
from stepwell.runtime.opencl.device import Device, open_device

pytestmark = pytest.mark.opencl("cpu")

CPU = "cpu"
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@sw.jit(device=CPU, dynamic="never")
def scaled(x: Any, y: Any) -> Any:
    return x * 2 + y


@sw.jit(device=CPU)
def summed(x: Any) -> Any:
    return snp.sum(x, axis=1), x[0]


@pytest.fixture
def device() -> Device:
    return open_device(CPU)


@pytest.fixture(params=["shared", "apart"])
def memories(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, device: Device
) -> Generator[Device]:
    """A device that works in the host's memory, and one that has its own."""
    monkeypatch.setitem(device.__dict__, "shares_memory", request.param == "shared")
    yield device


def test_a_chain_of_calls_copies_nothing(device: Device) -> None:
    x = sw.device_put(X, CPU)
    scaled(x, x)  # compiled
    before = copy.copy(device.memory.transfers)
    y = scaled(scaled(scaled(x, x), x), x)
    assert device.memory.transfers == before
    assert isinstance(y, DeviceArray) and repr(y) == f"<device array float32[3, 4] on {device}>"
    np.testing.assert_array_equal(y, ((X * 3) * 2 + X) * 2 + X)
    after = device.memory.transfers
    assert (after.to_device, after.to_host) == (before.to_device, before.to_host + 1)
    assert after.bytes_to_host == before.bytes_to_host + X.nbytes


def test_results_are_where_arguments_are(memories: Device) -> None:
    x = sw.device_put(X, CPU)
    on_host, on_device, mixed = scaled(X, X), scaled(x, x), scaled(X, x)
    assert type(on_host) is np.ndarray
    assert type(on_device) is type(mixed) is DeviceArray
    for each in (on_host, on_device, mixed):
        np.testing.assert_array_equal(each, X * 3)
    sums, first = summed(x)
    assert type(sums) is type(first) is DeviceArray and first.shape == (4,)
    np.testing.assert_array_equal(sums, X.sum(1))
    total, _ = summed(X[:, ::2])  # copied, as it is not contiguous
    np.testing.assert_array_equal(total, X[:, ::2].sum(1))
    out = np.empty_like(X)
    assert scaled(x, x, out=out) is out
    np.testing.assert_array_equal(out, X * 3)


def test_an_argument_may_change_after_the_call(memories: Device) -> None:
    x, y = sw.device_put(X, CPU), X.copy()
    found = scaled(y, x)
    y[...] = 0  # what was enqueued has the numbers that it had
    np.testing.assert_array_equal(found, X * 3)


def test_what_it_is() -> None:
    tree = {"w": X, "b": [np.float64(2), 3]}
    put = sw.device_put(tree, CPU)
    w, (b, n) = put["w"], put["b"]
    assert (w.shape, w.dtype, w.ndim, w.size, w.nbytes, len(w)) == ((3, 4), X.dtype, 2, 12, 48, 3)
    assert float(b) == b.item() == 2 and int(n) == 3 and bool(n) and f"{b:.1f}" == "2.0"
    assert w.tolist() == X.tolist() and str(w) == str(X) and [*w][1].tolist() == X[1].tolist()
    np.testing.assert_array_equal(np.asarray(w, np.float64), X)
    np.testing.assert_array_equal(sw.device_get(put)["w"], X)
    assert sw.device_put(put, CPU)["w"] is w and w.block_until_ready() is w
    for other in (copy.copy(w), copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert other is not w and other.device is w.device
        np.testing.assert_array_equal(other, X)
    with pytest.raises(TypeError, match="has no parts on the host"):
        w[0]
    with pytest.raises(BufferError, match="only its device can name"):
        np.from_dlpack(w)
    with pytest.raises(ValueError, match="is copied to the host"):
        np.array(w, copy=False)
    with pytest.raises(TypeError, match="array without axes"):
        len(b)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64"])
def test_dtypes_and_shapes(dtype: str, memories: Device) -> None:
    for shape in ((), (0,), (1,), (17, 3), (3, 0, 2), (1025,)):
        x = (np.arange(np.prod(shape)) % 2).astype(dtype).reshape(shape)
        held = sw.device_put(x, CPU)
        assert held.shape == shape and held.dtype == x.dtype
        np.testing.assert_array_equal(held, x)
    swapped = np.arange(4, dtype=">f4")[::-1]
    np.testing.assert_array_equal(sw.device_put(swapped, CPU), swapped)


def test_of_another_device_or_deleted(device: Device) -> None:
    x = sw.device_put(X, CPU)
    other = Device(device.cl, device.handle, "gpu:7", device.process)
    y = DeviceArray(other, None, x.dtype, x.shape)
    with pytest.raises(
        TypeError, match=rf"lies on gpu:7, and the program runs on {device}; help: .*"
    ):
        scaled(y, x)
    on_host = sw.jit(lambda x: x + 1)
    with pytest.raises(TypeError, match=rf"'x' lies on {device}, and the program runs on the host"):
        on_host(x)
    with pytest.raises(TypeError, match=r"expected float32\[3, 4\], got float64\[3, 4\]"):
        scaled.trace(X, X).compile()(sw.device_put(X.astype("f8"), CPU), x)
    x.delete()
    x.delete()
    assert x.deleted and repr(x) == f"<device array float32[3, 4] on {device}, deleted>"
    for use in (lambda: scaled(x, x), lambda: np.asarray(x), x.block_until_ready):
        with pytest.raises(RuntimeError, match=r"the device array float32\[3, 4\] was deleted"):
            use()


def test_operators_beside_traced_values() -> None:
    held = {"w": sw.device_put(X, CPU)}
    weight = held.__getitem__  # read where no handle takes its place

    @sw.jit(device=CPU)
    def mixed(x: Any) -> Any:
        return (weight("w") - x) * weight("w") + snp.maximum(x, weight("w"))

    found = mixed(sw.device_put(X, CPU))
    np.testing.assert_array_equal(found, X)


def test_without_jit_and_in_graphs() -> None:
    x = sw.device_put(X, CPU)
    with sw.disable_jit():
        found = scaled(x, y=x)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, X * 3)
    with sw.Graph(device=CPU) as graph:
        a = graph.placeholder("a", shape=(3, 4), dtype="float32")
        graph.name("b", a + a)
    np.testing.assert_array_equal(graph.run("b", {"a": x}), X * 2)


def test_what_cannot_be_put() -> None:
    with pytest.raises(TypeError, match=r"'x\[1\]' is a sw.Variable, which stays on the host"):
        sw.device_put([X, sw.Variable(X)], CPU)
    with pytest.raises(TypeError, match="expected an array or a number, got str"):
        sw.device_put("text", CPU)
    with pytest.raises(TypeError, match="complex"):
        sw.device_put(X * 1j, CPU)
    with pytest.raises(sw.CompileError, match="no OpenCL device is 'abacus'"):
        sw.device_put(X, "abacus")

    @sw.jit(device=CPU)
    def assigns(x: Any) -> Any:
        x[0] = 1
        return x

    with pytest.raises(
        TypeError, match=r"assigns to argument 'x', which is no NumPy array.*donate this"
    ):
        assigns(sw.device_put(X, CPU))


def test_donated(memories: Device) -> None:
    step = sw.jit(lambda w, g: w - g, device=CPU, donate_argnums=0)
    w, g = sw.device_put(X, CPU), sw.device_put(np.ones_like(X), CPU)
    held = w.memory
    step(sw.device_put(X, CPU), g)
    before = copy.copy(memories.memory.transfers)
    new = step(w, g)
    assert new is w and w.memory is held and memories.memory.transfers == before
    np.testing.assert_array_equal(step(new, g), X - 2)
    same = sw.device_put(X, CPU)  # given twice it is left as it is
    np.testing.assert_array_equal(step(same, same), X * 0)
    np.testing.assert_array_equal(same, X)
    mine = X.copy()
    assert step(mine, g) is mine
    np.testing.assert_array_equal(mine, X - 1)


def test_a_device_without_room(device: Device) -> None:
    most = device.handle.max_mem_alloc_size
    held = np.broadcast_to(np.float32(0), (most // 2, 4))
    with pytest.raises(MemoryError, match=rf"{device} .* has no room for [\d,]+ bytes: it has"):
        device.memory.allocate(held.nbytes)


def test_threads_share_a_function() -> None:
    x, found = sw.device_put(X, CPU), list[Any]()

    def work(n: int) -> None:
        y = x
        for _ in range(20):
            y = scaled(y, x)
        found.append((n, np.asarray(y)))

    expected = X
    for _ in range(20):
        expected = expected * 2 + X
    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 6
    for _, y in found:
        np.testing.assert_array_equal(y, expected)


def test_buffers_are_used_again(device: Device) -> None:
    x = sw.device_put(np.ones(5000, np.float32), CPU)
    bigger = sw.jit(lambda x: snp.tanh(x) + x, device=CPU)
    bigger(x)
    gc.collect()
    made = [0]
    plain = device.memory._buffer  # pyright: ignore[reportPrivateUsage]

    def counted(*args: Any) -> Any:
        made[0] += 1
        return plain(*args)

    device.memory._buffer = counted  # pyright: ignore[reportPrivateUsage]
    try:
        y = x
        for _ in range(200):
            y = bigger(y)
    finally:
        del device.memory._buffer  # pyright: ignore[reportPrivateUsage]
    assert made[0] <= 4
    assert float(np.asarray(y)[0]) > 100


def test_weights_are_on_the_device_once(device: Device) -> None:
    weights = np.arange(6, dtype=np.float32)
    weights.flags.writeable = False
    held = device.memory.constant(weights)
    assert device.memory.constant(weights) is held
    number = id(weights)
    del weights, held
    assert number not in device.memory._weights  # pyright: ignore[reportPrivateUsage]


def test_bounds_are_checked_at_the_call() -> None:
    taken = sw.jit(lambda x, i: x[i], device=CPU)
    x, i = sw.device_put(X, CPU), sw.device_put(np.array([0, 2]), CPU)
    np.testing.assert_array_equal(taken(x, i), X[[0, 2]])
    with pytest.raises(IndexError):
        taken(x, sw.device_put(np.array([0, 3]), CPU))
    np.testing.assert_array_equal(taken(x, i), X[[0, 2]])


def test_many_calls_keep_nothing(device: Device) -> None:
    taken = sw.jit(lambda x, i: snp.sum(x) + x[i], device=CPU)
    i = np.array([0, 2])

    def calls(count: int) -> None:
        for _ in range(count):
            taken(X, i)
            x = sw.device_put(X, CPU)
            taken(x, sw.device_put(i, CPU))
            with pytest.raises(IndexError):
                taken(x, sw.device_put(i + 9, CPU))

    calls(20)
    gc.collect()
    kept = device.memory._kept  # pyright: ignore[reportPrivateUsage]
    objects = len(gc.get_objects())
    calls(60)
    gc.collect()
    assert device.memory._kept <= kept + 4096  # pyright: ignore[reportPrivateUsage]
    assert len(gc.get_objects()) < objects + 200


def test_arrays_from_outside_stay_where_they_are(memories: Device) -> None:
    parts = {"w": sw.device_put(X.T.copy(), CPU), "b": sw.device_put(X[:, 0].copy(), CPU)}
    on_host = np.arange(9, dtype=np.float32).reshape(3, 3)
    large = np.ones((1 << 15, 3), np.float32)

    @sw.jit(device=CPU)
    def layer(x: Any) -> Any:
        return x @ parts["w"] + parts["b"] + on_host

    @sw.jit(device=CPU)
    def longer(x: Any) -> Any:
        return large + x

    step = sw.jit(lambda w: w * 2, device=CPU, donate_argnums=0)
    x = sw.device_put(X, CPU)
    for _ in range(3):
        expected = X @ np.asarray(parts["w"]) + X[:, 0] + on_host
        np.testing.assert_allclose(layer(x), expected, rtol=1e-6)
        np.testing.assert_allclose(layer(X), expected, rtol=1e-6)
        assert step(parts["w"]) is parts["w"]  # a new content, which the next call sees
    assert layer.cache_info().traces == 1
    small = sw.device_put(np.ones(3, np.float32), CPU)
    found = longer(small)
    large[...] = 7
    assert type(found) is DeviceArray and float(np.asarray(found)[5, 1]) == 2
    np.testing.assert_array_equal(np.asarray(longer(small))[5], [8, 8, 8])
    parts["w"] = sw.device_put(X.T.copy(), CPU)
    before = copy.copy(memories.memory.transfers)
    layer(x)
    assert memories.memory.transfers.bytes_to_device == before.bytes_to_device


def test_a_step_of_training_transfers_nothing(device: Device) -> None:
    def loss(p: Any, x: Any) -> Any:
        return snp.mean((snp.tanh(x @ p["w"]) + p["b"]) ** 2)

    def step(p: Any, x: Any) -> Any:
        value, slopes = sw.value_and_grad(loss)(p, x)
        return value, {name: p[name] - 0.5 * slopes[name] for name in p}

    there = sw.jit(step, device=CPU, donate_argnames="p")
    params = {"w": X.T.copy(), "b": np.ones(3, np.float32)}
    held, x = sw.device_put((params, X), CPU)
    first, again = there(held, x)
    before = copy.copy(device.memory.transfers)
    second, again = there(again, x)
    assert device.memory.transfers == before
    assert all(again[name] is held[name] for name in held)
    assert f"{second:.5f}" < f"{first:.5f}"
    right = params
    for _ in range(2):
        right = sw.jit(step)(right, X)[1]
    np.testing.assert_allclose(again["w"], right["w"], rtol=1e-5)


def test_without_the_extension(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    from stepwell.runtime import program as programs

    monkeypatch.setattr(programs, "load_extension", lambda: None)
    plain = sw.jit(lambda x, y: x - y, device=CPU)
    x = sw.device_put(X, CPU)
    assert not plain.trace(X, X).compile().dispatched
    for _ in range(2):
        found = plain(x, X)
        assert type(found) is DeviceArray
        np.testing.assert_array_equal(found, X * 0)
    np.testing.assert_array_equal(plain(X, y=X * 2), -X)
    other = DeviceArray(Device(device.cl, device.handle, "gpu:7", 0), None, x.dtype, x.shape)
    with pytest.raises(TypeError, match=f"lies on gpu:7, and the program runs on {device}"):
        plain(other, x)
