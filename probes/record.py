"""record: run every probe on a GPU and write what it did.

``python -m probes.record OUT`` writes one file per probe, ``tensor_map`` and
``exhaustive``. ``--compiled FOLDER`` takes cubins that ``--build FOLDER`` made on
another machine; ``--only NAME`` asks one probe; ``--quick`` runs each kernel with
little work, for compute-sanitizer. A case that kills the context is noted and the rest
run in a new process.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import lzma
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.device import DeviceError, find_gpu
from fp4ref.device.launch import Module, encode_tiled
from fp4ref.ptx.instructions.approximate import TABLES
from probes import ex2, exhaustive, tanh, tensor_map
from probes.probe import Probe, probes

TIMEOUT_S = 120


def facts() -> dict[str, str]:
    """What ran, where and when."""
    gpu = find_gpu()
    major, minor = gpu.capability
    return {
        "card": gpu.card,
        "capability": f"{major}.{minor}",
        "driver": gpu.driver,
        "date": datetime.date.today().isoformat(),
    }


def build(folder: Path, names: Iterable[str]) -> None:
    """Compile probes into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        probe = probes()[name]
        made = probe.compiled()
        (folder / f"{name}.cubin").write_bytes(made.cubin)
        (folder / f"{name}.ptx").write_text(made.ptx)
        (folder / f"{name}.json").write_text(json.dumps({"nvrtc": made.nvrtc}))


def load(probe: Probe, folder: Path | None) -> tuple[Module, str, str]:
    """Return the module, its PTX and the compiler's version."""
    if folder is None:
        made = probe.compiled()
        return Module(made.cubin), made.ptx, made.nvrtc
    cubin = (folder / f"{probe.name}.cubin").read_bytes()
    ptx = (folder / f"{probe.name}.ptx").read_text()
    version = json.loads((folder / f"{probe.name}.json").read_text())["nvrtc"]
    return Module(cubin), ptx, version


def worker(name: str, out: Path, first: int, folder: Path | None, quick: bool) -> int:
    """Run the cases of one probe from `first` on; 3 if the context died."""
    probe = probes()[name]
    module, ptx, version = load(probe, folder)
    arrays: dict[str, Any] = {}
    errors: dict[str, str] = {}
    status = 0
    cases = probe.cases[first:]
    for place, case in enumerate(cases, first):
        (out / f"{name}.at").write_text(str(place))
        if quick and case.refusal not in ("", "NotModelled"):
            continue  # what no rule allows is no subject for a checker
        try:
            found = module.run(case.call)
        except DeviceError as error:
            errors[case.name] = str(error)
            if "Encode" in str(error):
                continue
            status = 3
            break
        for output in case.outputs:
            arrays[f"{case.name}/{output}"] = found[output]
    if quick and name in exhaustive.CHANGES:
        for each in exhaustive.CHANGES[name]:
            exhaustive.changes(module, each, 1)
    meta = facts() | {
        "probe": name,
        "sources": probe.sources_digest(),
        "calls": probe.calls_digest(),
        "nvrtc": version,
        "errors": errors,
    }
    arrays["ptx"] = np.frombuffer(lzma.compress(ptx.encode()), np.uint8)
    arrays["meta"] = np.array(json.dumps(meta))
    np.savez_compressed(out / f"{name}.{first}.npz", **arrays)
    return status


def run_probe(name: str, out: Path, options: list[str]) -> None:
    """Run all cases of one probe, in new processes after one that died."""
    first, parts = 0, []
    last = len(probes()[name].cases)
    while first < last:
        command = [sys.executable, "-m", "probes.record", str(out), *options]
        command += ["--worker", name, "--first", str(first)]
        at = out / f"{name}.at"
        at.write_text(str(first))
        try:
            done = subprocess.run(command, timeout=TIMEOUT_S, check=False)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = -1
        if (out / f"{name}.{first}.npz").exists():
            parts.append(out / f"{name}.{first}.npz")
        if code == 0:
            break
        first = int(at.read_text()) + 1
    arrays: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for part in parts:
        with np.load(part) as loaded:
            arrays |= dict(loaded)
        errors |= json.loads(str(arrays["meta"]))["errors"]
        part.unlink()
    if arrays:
        meta = json.loads(str(arrays["meta"])) | {"errors": errors}
        arrays["meta"] = np.array(json.dumps(meta))
        np.savez_compressed(out / f"{name}.npz", **arrays)
        print(f"{name}: {len(arrays) - 2} outputs, {len(errors)} ended in an error")
    (out / f"{name}.at").unlink(missing_ok=True)


def record_maps(out: Path, folder: Path | None) -> None:
    """Ask the driver about every row of the table."""
    load(probes()["cta"], folder)  # the driver encodes only inside a context
    statuses, rows = [], []
    for m in tensor_map.table():
        status, data = encode_tiled(m, tensor_map.ADDRESS + m.offset)
        statuses.append(status)
        rows.append(data if status == 0 else bytes(128))
    meta = facts() | {"probe": "tensor_map", "calls": tensor_map.table_digest()}
    np.savez_compressed(
        out / "tensor_map.npz",
        meta=np.array(json.dumps(meta)),
        status=np.array(statuses, np.int32),
        words=np.frombuffer(b"".join(rows), np.uint32).reshape(-1, 32),
    )
    print(f"tensor_map: {statuses.count(0)} of {len(statuses)} accepted")


def record_exhaustive(out: Path, folder: Path | None) -> None:
    """Run the kernels over all inputs; the tables of ex2 and tanh are a file apart."""
    arrays: dict[str, Any] = {}
    counts = {}
    for name, functions in exhaustive.CHANGES.items():
        module, _, _ = load(probes()[name], folder)
        for each in functions:
            counts[each], pairs = exhaustive.changes(module, each)
            arrays[f"changes/{each}"] = exhaustive.pack_changes(pairs)
    module, _, version = load(probes()["convert"], folder)
    for each in ("ex2", "tanh_approx"):
        counts[each], _ = exhaustive.changes(module, each)
    for each in exhaustive.CHECKSUMS:
        arrays[f"checksum/{each}"] = exhaustive.checksums(module, each)
    rcp = exhaustive.table(module, "rcp", 0x3F800000)
    significands = exhaustive.table(module, "ex2", 0x3F800000)
    binades = [exhaustive.table(module, "tanh_approx", first) for first in tanh.FIRST]
    np.savez_compressed(
        out / TABLES,
        ex2_steps=ex2.pack_table(significands),
        tanh_steps=tanh.pack_table(binades),
    )
    meta = facts() | {
        "probe": "exhaustive",
        "nvrtc": version,
        "sources": exhaustive.sources(),
        "counts": counts,
        "rcp_sha256": hashlib.sha256(rcp.tobytes()).hexdigest(),
    }
    arrays["meta"] = np.array(json.dumps(meta))
    np.savez_compressed(out / "exhaustive.npz", **arrays)
    print("exhaustive:", counts)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.record")
    parser.add_argument("out", type=Path)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--compiled", type=Path)
    parser.add_argument("--only", choices=tuple(probes()))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker")
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    if given.build:
        build(given.out, [given.only] if given.only else probes())
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    if not find_gpu():
        print(find_gpu().missing)
        return 1
    if given.worker:
        return worker(given.worker, given.out, given.first, given.compiled, given.quick)
    if given.quick:
        return max(
            worker(name, given.out, 0, given.compiled, True) for name in probes()
        )
    print(find_gpu())
    options = ["--compiled", str(given.compiled)] if given.compiled else []
    if given.only:
        run_probe(given.only, given.out, options)
        return 0
    record_maps(given.out, given.compiled)
    for name in probes():
        run_probe(name, given.out, options)
    record_exhaustive(given.out, given.compiled)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
