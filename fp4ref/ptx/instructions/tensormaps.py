"""tensormaps: tensor maps that a kernel changes, and the fences of their proxy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fp4ref.errors import OutOfBounds
from fp4ref.hardware import tensormap_proxy
from fp4ref.hardware.tensor_map import NBYTES, TensorMap
from fp4ref.hardware.tensor_map_bits import MAX_RANK
from fp4ref.ptx.run.operands import address_reader, reader
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.spaces import read_params, resolve
from fp4ref.ptx.run.state import Lanes, LaunchContext, WarpState
from fp4ref.ptx.text.syntax import Immediate, Instruction, PtxError

_SPACE = "(.(?P<space>global|shared::cta))?.b1024"
_SCOPE = "(?P<scope>cta|cluster|gpu|sys)"


def tensor_map(state: WarpState, address: int, operation: str) -> TensorMap:
    """Return the map at a generic address, for a copy or a prefetch of it now."""
    ((space, offset, _),) = resolve("generic", np.array([address], np.uint64))
    if space == "param":
        # Parameters were copied by value, and nothing writes them.
        return tensormap_proxy.decode(read_params(state, offset, NBYTES).tobytes())
    if operation.startswith("prefetch"):
        return tensormap_proxy.read(state.warp, address, operation)
    return tensormap_proxy.use(state.warp, address, operation)


def prefetched_map(state: WarpState, address: int, operation: str) -> TensorMap | None:
    """Return the map at a generic address; None for a parameter of zeros.

    A prefetch brings a cache line and does not look into it. CUTLASS 4.2's kernels
    without C leave C's map at zeros and prefetch it all the same
    (sm100_epilogue_tma_warpspecialized.hpp:307 and :428).
    """
    ((space, offset, _),) = resolve("generic", np.array([address], np.uint64))
    if space == "param" and not read_params(state, offset, NBYTES).any():
        return None
    return tensor_map(state, address, operation)


def _immediate(each: Instruction, operand: int, codes: range, what: str) -> int:
    """Return an operand that has to be a number of the text."""
    found = each.operands[operand]
    if not isinstance(found, Immediate) or found.value not in codes:
        raise PtxError(
            f"PTX line {each.line}: {each.opcode} takes {what} from {codes[0]} to "
            f"{codes[-1]}, as an immediate"
        )
    return found.value


@instruction(
    "tensormap.replace.tile",
    form=f".(?P<field>global_address){_SPACE}.b64",
    operands=2,
    writes=0,
    strict=True,
)
@instruction(
    "tensormap.replace.tile",
    form=f".(?P<field>rank){_SPACE}.b32",
    operands=2,
    writes=0,
    strict=True,
)
@instruction(
    "tensormap.replace.tile",
    form=f".(?P<field>global_stride){_SPACE}.b64",
    operands=3,
    writes=0,
    strict=True,
)
@instruction(
    "tensormap.replace.tile",
    form=f".(?P<field>box_dim|global_dim|element_stride){_SPACE}.b32",
    operands=3,
    writes=0,
    strict=True,
)
@instruction(
    "tensormap.replace.tile",
    form=f".(?P<field>elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|"
    f"fill_mode){_SPACE}.b32",
    operands=2,
    writes=0,
    strict=True,
)
def replace(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tensormap.replace``: every executing lane changes a field."""
    field = form["field"]
    wide = field in ("global_address", "global_stride")
    at = address_reader(context, each.operands[0], each)
    value = reader(context, each.operands[-1], "u64" if wide else "u32", each)
    ordinal = 0
    if len(each.operands) == 3:
        count = MAX_RANK - (field == "global_stride")
        ordinal = _immediate(each, 1, range(count), "an ordinal")
    elif field == "elemtype" or field in tensormap_proxy.CODES:
        count = 16 if field == "elemtype" else tensormap_proxy.CODES[field][1]
        _immediate(each, 1, range(count), "a code")

    def act(state: WarpState) -> None:
        for address, new in _by_operands(state, at(state), value(state)):
            space, here = _object(each, form["space"], address)
            tensormap_proxy.replace(state.warp, space, here, field, new, ordinal)

    return act


def _by_operands(state: WarpState, *operands: Lanes) -> Iterator[tuple[int, ...]]:
    """Yield each set of operands, while the lanes that have it are the active ones."""
    lanes: dict[tuple[int, ...], int] = {}
    for i in np.flatnonzero(state.lanes).tolist():
        key = tuple(int(each[i]) for each in operands)
        lanes[key] = lanes.get(key, 0) | 1 << i
    actor = state.warp.actor
    all_of_them = actor.active
    for key, mask in lanes.items():
        actor.active = mask
        yield key
    actor.active = all_of_them


def _object(each: Instruction, space: str, address: int) -> tuple[str, int]:
    """Return the state space of a map and its address there."""
    if space:
        return space, address & 0xFFFFFFFF if space != "global" else address
    ((found, offset, _),) = resolve("generic", np.array([address], np.uint64))
    if found not in ("global", "shared"):
        raise OutOfBounds(
            f"{each.opcode} of a map in {found} memory, at {address:#x}",
            rule="the map is in .global or .shared::cta [PTX: tensormap.replace]",
            remedy="copy the map to global or shared memory first",
        )
    return ("shared::cta" if found == "shared" else found), int(offset[0])


@instruction(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release",
    form=f".{_SCOPE}.sync.aligned",
    operands=3,
    writes=0,
    strict=True,
)
def cp_fenceproxy(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``tensormap.cp_fenceproxy``, which the whole warp executes."""
    dst, src = (address_reader(context, o, each) for o in each.operands[:2])
    _immediate(each, 2, range(NBYTES, NBYTES + 1), "a size")

    def act(state: WarpState) -> None:
        state.whole_warp(each.opcode)
        tensormap_proxy.cp_fenceproxy(
            state.warp,
            state.uniform(dst(state), "the target"),
            state.uniform(src(state), "the source") & 0xFFFFFFFF,
            form["scope"],
        )

    return act


@instruction(
    "fence.proxy.tensormap::generic.release",
    form=f".{_SCOPE}",
    operands=0,
    effect=True,
)
def fence_release(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``fence.proxy.tensormap::generic.release``."""
    return lambda state: tensormap_proxy.fence_release(state.warp, form["scope"])


@instruction(
    "fence.proxy.tensormap::generic.acquire",
    form=f".{_SCOPE}",
    operands=2,
    writes=0,
    strict=True,
)
def fence_acquire(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build ``fence.proxy.tensormap::generic.acquire`` of a generic address."""
    at = address_reader(context, each.operands[0], each)
    _immediate(each, 1, range(NBYTES, NBYTES + 1), "a size")

    def act(state: WarpState) -> None:
        for (address,) in _by_operands(state, at(state)):
            ((space, _, _),) = resolve("generic", np.array([address], np.uint64))
            if space != "global":
                raise OutOfBounds(
                    f"{each.opcode} of a map in {space} memory, at {address:#x}",
                    who=state.warp.who,
                    where=state.at,
                    rule="the address is generic and lies in .global [PTX: membar / "
                    "fence]",
                    remedy="acquire the map in global memory that the copy names",
                )
            tensormap_proxy.fence_acquire(state.warp, address, form["scope"])

    return act
