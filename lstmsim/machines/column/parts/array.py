"""The array, its adapters, and the memories around them."""

from __future__ import annotations

from lstmsim.machines.column.parts.sizes import Sizes, bits_of, chosen
from lstmsim.machines.hardware import Demand, Part

__all__ = ["adapter", "array", "frames", "memories", "vectors"]

#: Bits of a bias, and bits that a shifted product has beyond those of the sum.
_BIAS_BITS, _CARRY_BITS = 32, 4
#: So many banks are registers and no memory.
_IN_REGISTERS = 2


def array(sizes: Sizes, summed: int) -> Part:
    """Rows of multipliers, a tree behind each, and accumulators: a small memory for each sum that a row keeps apart.

    summed: products that leave a multiplier block as one sum.
    """
    core, precision, latency = sizes.core, sizes.precision, sizes.core.latency
    leaves = -(-core.ep // summed)
    product, levels = precision.weight_bits + precision.vector_bits, (core.ep - 1).bit_length()
    tree, total = product + levels, precision.accumulator_bits
    nodes = [leaves]
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // 2))
    before = latency.multiply > 1
    held = leaves * product * (latency.multiply - before) + sum(nodes[1:]) * tree * latency.add
    held += before * core.ep * precision.weight_bits + (latency.accumulate - 1) * min(tree, total)
    rows, accumulators = sizes.rows, sizes.accumulators
    banks = core.threads * core.accumulator_banks
    word = accumulators * total
    sums = Demand("sums", banks * word, word, accumulators, writes=1, reads=2, instant=True)
    return Part(
        "array",
        adders=rows * (leaves - 1) * (tree + tree % 2) + word,
        # The first tile of a block replaces the sum; where a row keeps several apart, only one takes the tile.
        gates=word + (min(tree, total) * (accumulators - _lone(sizes)) if sizes.slots > 1 else 0),
        registers=rows * held + before * core.ep * precision.vector_bits,
        memories=(sums,),
    )


def _lone(sizes: Sizes) -> int:
    """Accumulators of gates that have one sum."""
    stages = (stage for cell in sizes.cells for stage in cell.stages)
    return min(sizes.core.units_per_block(stage) * sum(len(gate.sums) == 1 for gate in stage.gates) for stage in stages)


def adapter(sizes: Sizes) -> Part:
    """A multiplier, a barrel shifter and two adders a sum; in front of it the choice of the turn's sums."""
    core, precision, convert = sizes.core, sizes.precision, sizes.core.latency.convert
    selected = 2 if convert > 4 else min(convert, 1)
    shifted, saturated = int(convert > 2), int(convert > 3)
    multiplied = convert - selected - shifted - saturated
    total, shift = precision.accumulator_bits, _shift_bits(sizes)
    # The smallest shift is known: what it drops is not kept, so a product has little more bits than the sum.
    moved = total + _CARRY_BITS
    constants = precision.multiplier_bits + shift + _BIAS_BITS
    registers = selected * total + multiplied * (moved + shift + _BIAS_BITS)
    registers += shifted * (moved + _BIAS_BITS) + saturated * precision.tail_bits
    # Products of parts of the operands are added, the product is rounded, the bias is added.
    adders = 2 * moved + total
    gates = moved * shift + (moved - precision.tail_bits) // 3 + precision.tail_bits
    count = core.tail_width * sizes.sums
    word = count * constants
    # Two banks are registers, and a turn chooses among them, too.
    held = core.threads * core.accumulator_banks
    held = held if held <= _IN_REGISTERS else 1
    return Part(
        "adapter",
        adders=count * adders,
        gates=count * (gates + chosen(total, sizes.block_turns * held)),
        registers=count * registers,
        memories=(Demand("constants", sizes.constant_words * word, word, writes=1, instant=selected == 0),),
    )


def _shift_bits(sizes: Sizes) -> int:
    """Bits that tell the shifts of a design apart: rows of a sum differ by a factor, layers by more."""
    return min(6, 1 + (len(sizes.layers) > 1) + (len(sizes.models) > 1))


def frames(sizes: Sizes) -> tuple[Part, ...]:
    """The memory of frames, if the chip has one."""
    core = sizes.core
    words = sum(
        sizes.stored.frames.get(model.name, 0) * -(-model.layers[0].width("x") // core.ep) for model in sizes.models
    )
    word = core.ep * sizes.precision.vector_bits
    further = max(0, core.latency.read - 1) * word
    own = Demand("frames", words * word, word, writes=1, instant=core.latency.read == 0)
    return (Part("frames", registers=further, memories=(own,)),) if words else ()


def memories(sizes: Sizes, weight_words: int, stored: int | None) -> Part:
    """The weights, and the registers behind them: the first one is the memory's own.

    weight_words: words of all models.
    stored: bits of the memory; None: as many as the words have.
    """
    core, precision = sizes.core, sizes.precision
    word = sizes.rows * core.ep * precision.weight_bits
    further = max(0, core.latency.read - 1)
    words = weight_words if stored is None else max(1, stored // word)
    return Part(
        "weights",
        registers=further * word,
        memories=(Demand("weights", words * word, word, writes=1, instant=core.latency.read == 0),),
    )


def vectors(sizes: Sizes) -> Part:
    """For each kind of cell and vector a memory of as many banks as elements are read or written at once.

    Rotators bring banks into the order of elements; what is read of several memories or of frames is chosen behind.
    """
    core, precision, read = sizes.core, sizes.precision, sizes.core.latency.read
    levels = (max(core.ep, core.tail_width) - 1).bit_length()
    banks, bits = 1 << levels, precision.vector_bits
    own, gates, registers = [], 0, 0
    for (cell, node), elements in sizes.vectors.items():
        words = -(-elements * core.threads // banks) + 1
        address = bits_of(words - 1)
        word = banks * bits
        name = f"vectors {node} of {cell.name}"
        own.append(Demand(name, words * word, word, banks, writes=1, instant=read == 0))
        # Two rotators, and for each bank its addresses and whether it is written.
        gates += 2 * levels * word + banks * (2 * address + 4) * (levels > 0)
        registers += (read > 0) * levels + max(0, read - 1) * core.ep * bits
    operand = core.ep * bits
    # What tells apart where an operand comes from and where its sum goes waits with it.
    registers += read * (2 + sizes.unit_bits) + core.latency.mvm_cycles(core.ep) * 2
    gates += chosen(operand, 1 + len(own)) + operand
    return Part("vectors", gates=gates, registers=registers, memories=tuple(own))
