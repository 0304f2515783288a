"""What a core of the column-wise NPU is built of, part for part: the formulas of its generated hardware.

`lstmsim fit` counts with them, `lstmsim rtl --synth` compares them with what a synthesis program counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import OperationClasses
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.rtl.lanes.operations import LINEAR_ORDER, TABLE_ORDER
from lstmsim.machines.column.rtl.lanes.operations import places as places_of
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.layout import bits_of
from lstmsim.machines.column.shape import LATENCIES, begins, depths, pass_shapes
from lstmsim.machines.column.sizes import Sizes, element_bits
from lstmsim.machines.hardware import ENERGY_CLASSES, Demand, Hardware, Part, Stored, TailLanes, chosen, layers_of
from lstmsim.model.cell import REDUCTIONS, Cell, Node, Segment, kinds, segments
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import Multiplier, once, per_unit
from lstmsim.model.numerics.fixed_point import TABULATED

#: Bits of a word that the host writes.
HOST_BITS = 32
#: Bits of a bias, and bits that a shifted product has beyond those of the sum.
_BIAS_BITS, _CARRY_BITS = 32, 4
#: So many banks are registers and no memory.
_IN_REGISTERS = 2


def array(sizes: Sizes, summed: int) -> Part:
    """Rows of multipliers, a tree after each, and accumulators: a small memory for each sum that a row keeps apart."""
    core, precision, latency = sizes.core, sizes.precision, sizes.core.latency
    leaves = -(-core.ep // summed)
    product, levels = precision.weight_bits + sizes.element_bits, (core.ep - 1).bit_length()
    tree, total = product + levels, precision.accumulator_bits
    nodes = [leaves]
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // 2))
    # The first register of the operands is one for all rows, a second one is each row's own.
    before = 2 if latency.multiply > 3 else int(latency.multiply > 1)
    shared = min(before, 1) * core.ep * (sizes.rows * precision.weight_bits + sizes.element_bits)
    own = (before > 1) * sizes.rows * core.ep * (precision.weight_bits + sizes.element_bits)
    held = leaves * product * (latency.multiply - before) + sum(nodes[1:]) * tree * latency.add
    held += (latency.accumulate - 1) * min(tree, total)
    rows, accumulators = sizes.rows, max(units * len(stage.sums) for stage, units in sizes.stages)
    lone = min(units * sum(len(gate.sums) == 1 for gate in stage.gates) for stage, units in sizes.stages)
    banks = core.threads * core.accumulator_banks
    word = accumulators * total
    # Each row knows by itself where a tile's sum goes: bank, whether it is there, whether it is the block's first.
    goes = (banks - 1).bit_length() + 2 + (sizes.slots if sizes.slots > 1 else 0)
    sums = Demand("sums", banks * word, word, accumulators, writes=1, reads=2, instant=True)
    return Part(
        "array",
        adders=rows * (leaves - 1) * (tree + tree % 2) + word,
        # The first tile of a block replaces the sum; where a row keeps several apart, only one takes the tile.
        gates=word + (min(tree, total) * (accumulators - lone) if sizes.slots > 1 else 0),
        registers=rows * (held + goes) + shared + own,
        memories=(sums,),
        # A block holds the last registers before its product.
        beside=(own or shared) + rows * leaves * product * min(1, latency.multiply - before),
    )


#: The widest sum that the adapter multiplies in one piece (`WHOLE` of `npu_adapter.v`).
_WHOLE_BITS = 25


def adapter(sizes: Sizes) -> Part:
    """A multiplier, a barrel shifter and two adders a sum; in front of it the choice of the turn's sums."""
    core, precision, convert = sizes.core, sizes.precision, sizes.core.latency.convert
    # One register reads the constants (from 5 on a second one holds them), one follows each operation; from 4 on one
    # follows the parts of the product.
    selected = min(convert, 1)
    late, partial, shifted, saturated, added = (int(convert > least) for least in (4, 3, 2, 3, 6))
    multiplied = convert - selected - late - partial - shifted - saturated - added
    # bits that tell the shifts of a design apart: rows of a sum differ by a factor, layers by more
    total, shift = precision.accumulator_bits, min(6, 1 + (len(sizes.layers) > 1) + (len(sizes.models) > 1))
    # The smallest shift is known: what it drops is not kept, so a product has little more bits than the sum.
    moved = total + _CARRY_BITS
    constants = precision.multiplier_bits + shift + _BIAS_BITS
    # sums of more bits than a DSP48E1 takes are multiplied in two parts
    parts = total + precision.multiplier_bits + 1 + (precision.multiplier_bits + 1) * (total > _WHOLE_BITS)
    products = selected * total + partial * parts + multiplied * moved
    along = (partial + multiplied) * (shift + _BIAS_BITS) + shifted * _BIAS_BITS + late * constants
    registers = products + along + (shifted + added) * moved + saturated * precision.tail_bits
    # Products of parts of the operands are added, the product is rounded, the bias is added.
    adders = 2 * moved + total
    gates = moved * shift + (moved - precision.tail_bits) // 3 + precision.tail_bits
    count = core.tail_width * sizes.sums
    word = count * constants
    # Two banks are registers, and a turn chooses among them, too.
    held = core.threads * core.accumulator_banks
    held = held if held <= _IN_REGISTERS else 1
    turns = max(-(-units // core.tail_width) for _, units in sizes.stages)
    return Part(
        "adapter",
        adders=count * adders,
        gates=count * (gates + chosen(total, turns * held)),
        registers=count * registers,
        memories=(
            Demand(
                "constants",
                sum(sizes.turns) * word,
                word,
                writes=1,
                instant=selected == 0,
                behind=((late + partial + multiplied + shifted, count * _BIAS_BITS),),
                written=HOST_BITS,
            ),
        ),
        beside=count * products,
    )


def frames(sizes: Sizes) -> tuple[Part, ...]:
    """The memory of frames, if the chip has one."""
    core = sizes.core
    words = sum(
        sizes.stored.frames.get(model.name, 0) * -(-model.layers[0].width("x") // core.ep) for model in sizes.models
    )
    word = core.ep * sizes.precision.vector_bits
    further = _further(core)
    instant = core.latency.read == 0
    own = Demand("frames", words * word, word, writes=1, instant=instant, behind=((further, word),), written=HOST_BITS)
    return (Part("frames", registers=further * word, memories=(own,)),) if words else ()


def _further(core: ColumnCore) -> int:
    """Cycles of a read behind the memory's own register; from three on the address has a register before it."""
    return max(0, core.latency.read - (2 if core.latency.read > 2 else 1))


def kept(sizes: Sizes) -> tuple[Part, ...]:
    """What delta columns keep from step to step: a sum for each row of a thread, and the elements sent last."""
    core, precision = sizes.core, sizes.precision
    if core.delta is None:
        return ()
    rows = max(sum(len(each.blocks) for each in own) for own in sizes.shapes)
    word = core.vp * precision.accumulator_bits
    sums = Demand("kept sums", core.threads * rows * word, word, writes=1)
    groups = max(sum(sum(map(each.groups, each.stage.vectors)) for each in own) for own in sizes.shapes)
    sent = core.ep * precision.vector_bits
    last = Demand("elements sent last", core.threads * groups * sent, sent, writes=1)
    # an element is subtracted and its change compared with the threshold
    adders = 2 * core.ep * (precision.vector_bits + 1)
    registers = core.delta_cycles * core.ep * (precision.vector_bits + 1)
    return (Part("differences", adders=adders, registers=registers, memories=(sums, last)),)


def memories(sizes: Sizes, weight_words: int, stored: int | None) -> Part:
    """The weights, and the registers after them: the first one is the memory's own."""
    core, precision = sizes.core, sizes.precision
    word = sizes.rows * core.ep * precision.weight_bits
    further, instant = _further(core), core.latency.read == 0
    words = weight_words if stored is None else max(1, stored // word)
    return Part(
        "weights",
        registers=further * word,
        memories=(
            Demand(
                "weights", words * word, word, writes=1, instant=instant, behind=((further, word),), written=HOST_BITS
            ),
        ),
    )


def vectors(sizes: Sizes) -> Part:
    """For each kind of cell and vector a memory of as many banks as elements are read or written at once.

    Rotators bring banks into the order of elements; what is read of several memories or of frames is chosen after them.
    """
    core, precision, read = sizes.core, sizes.precision, sizes.core.latency.read
    levels = (max(core.ep, core.tail_width) - 1).bit_length()
    banks, bits = 1 << levels, precision.vector_bits
    own, gates, registers = [], 0, 0
    for (cell, node), elements in sizes.vectors.items():
        words = -(-elements * sizes.places // banks) + 1
        address = bits_of(words - 1)
        word = banks * bits
        name = f"vectors {node} of {cell.name}"
        own.append(Demand(name, words * word, word, banks, writes=1, instant=read == 0))
        # Two rotators, and for each bank its addresses and whether it is written.
        gates += 2 * levels * word + banks * (2 * address + 4) * (levels > 0)
        registers += (read > 0) * levels + _further(core) * core.ep * bits
    operand = core.ep * bits
    # What tells apart where an operand comes from and where its sum goes waits with it.
    waiting = (read, 2 + sizes.words["unit"]), (core.latency.mvm_cycles(core.ep), 2)
    registers += _bits_of(waiting)
    gates += chosen(operand, 1 + len(own)) + operand
    further = _further(core), len(own) * core.ep * bits
    return Part("vectors", gates=gates, registers=registers, memories=tuple(own), delays=(*waiting, further))


def _bits_of(delays: Iterable[tuple[int, int]]) -> int:
    """Registers of delay lines, each of so many cycles and bits."""
    return sum(cycles * bits for cycles, bits in delays)


#: Functions of four inputs for a bit of a thread's running numbers, and for each row of the control store more.
_THREAD_GATES, _ROW_GATES = 4.0, 0.25
#: Functions of four inputs that tell whether the host writes a word of the table of jobs.
_WRITE_GATES = 1
#: Functions of four inputs a thread for each further kind of job: how a job begins is a table of constants that each
#: thread chooses from, and alike jobs have alike entries. Of two designs with 4 and 14 kinds of jobs, Yosys 0.70.
_KIND_GATES = 10


def _token(sizes: Sizes) -> int:
    """Bits of what goes with a block from its last tile to the tail."""
    words = sizes.words
    names = ("thread", "job", "row", "step", "block", "bank", "turn", "constant")
    return sum(words[each] for each in names) + 2 * words["unit"] + words["element"] * sizes.kept


def _issue(sizes: Sizes) -> Part:
    """Threads, each with running addresses and counters of what is visible; the way of a block to the tail."""
    core, words = sizes.core, sizes.words
    counters = max(
        sum(layer.directions * (1 + len(layer.cell.stages[1:])) for layer in model.layers) for model in sizes.models
    )
    names = "job row row read step block group weight frame frame bank bank constant"
    thread = sum(words[each] for each in names.split()) + 2 * words["unit"] + counters * (words["step"] + words["unit"])
    thread += words["element"] * (1 + 3 * sizes.kept)
    cycles = core.latency.mvm_cycles(core.ep) - core.latency.convert
    gates = core.threads * thread * (_THREAD_GATES + _ROW_GATES * sum(map(len, sizes.shapes)))
    gates += core.threads * _KIND_GATES * (sizes.stored.kinds - 1)
    # of a table that the host writes nothing is known before: each bit of a row is chosen from as many as jobs
    choices = core.threads * chosen(sizes.stored.row_bits, sizes.stored.jobs)
    token = cycles, _token(sizes) + 1
    registers = core.threads * thread + _bits_of([token])
    return Part("issue", gates=round(gates), choices=choices, registers=registers, delays=(token,))


def _tail(sizes: Sizes) -> Part:
    """The queue of blocks, the turns of one of them, and the line of tokens down to the write of h."""
    core, words = sizes.core, sizes.words
    latency = vars(core.latency)
    depth = [depths(cell, latency, core.tail_width) for cell in sizes.cells]
    visible = max(each[cell.output] for each, cell in zip(depth, sizes.cells, strict=True))
    cycles = core.latency.convert + visible + core.latency.writeback
    names = ("thread", "job", "row", "step")
    entry = sum(words[each] for each in names) + 2 * words["unit"] + 3 + words["element"] * sizes.kept
    token = _token(sizes)
    going = token + words["unit"]
    line = (cycles, entry), (cycles // 2, words["turn"])
    queue = Demand("blocks", core.threads * core.accumulator_banks * token, token, writes=1, instant=True)
    # the steps of a turn's job are chosen from those of all jobs in a table that the host writes
    steps = chosen(words["step"], sizes.stored.jobs) if sizes.stored.row_bits else 0
    return Part(
        "tail control",
        gates=round(3.5 * going),
        choices=steps,
        registers=_bits_of(line) + going + core.threads * 8,
        memories=(queue,),
        delays=line,
    )


def _dispatch(sizes: Sizes) -> Part:
    """Which job takes which context."""
    contexts, bits = sizes.core.threads, sizes.words["job"] + 1
    # each of the next jobs is compared with the count of posted ones, and chosen for each context
    return Part("dispatch", gates=contexts * (contexts + 1) * bits * 2, registers=contexts + bits)


def table_part(name: str, registers: int) -> Part:
    """The table of jobs that the host writes; what chooses from it is counted with the threads and the tail."""
    return Part(name, gates=_WRITE_GATES * -(-registers // HOST_BITS), registers=registers)


#: Bits within a cell of an activation table that an argument usually has, a leading bit with them.
_PART_BITS = 10
#: Bits by which a rounded number is usually wider than what it is saturated to, and by which the number in front of it
#: is wider than the rounded one: a synthesis program leaves out what the shift drops for certain.
_EXCESS_BITS, _DROPPED_BITS = 2, 1


def lanes(sizes: Sizes) -> Part:
    """All lanes of a core: operations, registers in them and between them, tables, states and parameters.

    Lanes of several kinds of cells share their results' way.
    """
    every, count = [_Lane(sizes, cell) for cell in sizes.cells], sizes.core.tail_width
    adders, gates, registers, beside = (
        count * sum(getattr(lane, name) for lane in every) for name in ("adders", "gates", "registers", "beside")
    )
    memories = tuple(each for lane in every for each in lane.memories)
    delays = tuple((cycles, count * bits) for lane in every for cycles, bits in lane.delays)
    return Part("lanes", adders, gates, registers, memories, delays, beside)


class _Lane:
    """Counts what a lane of one kind of cell has; memories are those of all lanes."""

    def __init__(self, sizes: Sizes, cell: Cell) -> None:
        self.sizes, self.cell, self.precision = sizes, cell, sizes.precision
        self.latency = vars(sizes.core.latency)
        self.depth = depths(cell, self.latency, sizes.core.tail_width)
        self.rows = kinds(cell)
        #: Formats that a node has: one for each pass, or one for all.
        self.classes = (
            1
            if self.precision.formats == "shared"
            else sum(each.directions for each in sizes.layers if each.cell == cell)
        )
        self.adders = self.gates = self.registers = self.beside = 0
        self.memories: list[Demand] = []
        self.delays: list[tuple[int, int]] = []
        for segment in segments(cell):
            self._segment(segment)
        self._keep()

    def bits(self, name: str | float) -> int:
        """Width of what a node reads or is."""
        return _bits(self.cell, name, self.precision)

    def _segment(self, segment: Segment) -> None:
        nodes = (*segment.nodes, *segment.reductions, *segment.scalars)
        begin = {each.name: begins(each, self.depth, segment) for each in nodes}
        last: dict[str, tuple[int, int]] = {}
        for each in nodes:
            if self.rows[each.name] != "scalar":
                self._node(each)
            for source in each.sources:
                first, late = last.get(source, (begin[each.name], 0))
                last[source] = min(first, begin[each.name]), max(late, begin[each.name])
        for source, (first, late) in last.items():
            own = self.depth[source] if source in begin else first
            self.registers += max(0, late - own) * self.bits(source)
            self.delays.append((max(0, late - own), self.bits(source)))

    def _node(self, node: Node) -> None:
        """Add one operation; its registers are spread over its steps, from the last one on."""
        bits = self.bits(node.name)
        if node.operation in REDUCTIONS:
            return
        latency = LATENCIES.value(node.operation, self.latency)
        read = [self.bits(each) for each in node.inputs]
        if node.operation in TABULATED:
            self._table(node, read[0], bits, latency)
        elif node.operation in ("divide", "rsqrt"):
            # A subtraction a bit of the result, with a register after as many as the latency gives.
            self.adders += (bits + 1) * (bits + _EXCESS_BITS)
            self.registers += latency * (2 * bits + max(read))
            self.gates += 2 * bits
        else:
            self._exact(node.operation, read, bits, latency)

    def _exact(self, operation: str, read: list[int], bits: int, latency: int) -> None:
        """An operation whose exact result is rounded and saturated."""
        excess = bits if operation == "quantize" else bits + _EXCESS_BITS
        rounded = excess + _DROPPED_BITS
        self.adders += rounded + _DROPPED_BITS
        self.gates += bits + _EXCESS_BITS + chosen(bits, self.classes)
        places: tuple[int, ...] = (sum(read), rounded, excess, bits)
        if operation not in ("multiply", "quantize"):
            wide = max(read) + 2
            self.adders += wide
            places = (sum(read), sum(read), wide, excess, bits)
        self.registers += _spread(latency, places, places_of(operation))
        if operation == "multiply":
            self.beside += _shared(latency, places_of(operation))[0] * sum(read)

    def _table(self, node: Node, read: int, bits: int, latency: int) -> None:
        """A table for each lane, and a line between two entries."""
        precision, linear = self.precision, self.precision.activation == "linear"
        cell = bits_of(precision.activation_entries - 1)
        word = 2 * bits + 1 if linear else bits
        # Passes differ in where an argument's point is, hardly ever in what the table holds.
        words = precision.activation_entries
        width = self.sizes.core.tail_width
        name = f"table {node.name} of {self.cell.name}"
        self.memories.append(Demand(name, width * words * word, width * word, width, writes=1, instant=latency < 2))
        self.gates += 2 * cell + chosen(cell, self.classes)
        if not linear:
            self.registers += max(0, _spread(latency, (read, cell, word), TABLE_ORDER) - word)
            return
        self.adders += 2 * bits + _EXCESS_BITS
        line = 2 * bits + 1
        places = (read, cell + _PART_BITS, word + _PART_BITS, line, line, bits)
        # The first register after the read is the memory's own.
        self.registers += max(0, _spread(latency, places, LINEAR_ORDER) - word)
        counts = _shared(latency, LINEAR_ORDER)
        placed, reads, products, rounded = (counts[place] for place in (1, 2, 3, 4))
        further = max(0, reads - 1)
        self.beside += (further + products) * (bits + 1)
        self.delays += [(placed + reads, _PART_BITS), (further + products + rounded, bits)]

    def _keep(self) -> None:
        """States and values that other segments read, parameters, and the way of the results."""
        sizes, width = self.sizes, self.sizes.core.tail_width
        read = {name for node in self.cell.nodes for name in node.sources}
        words = sizes.places * max(sizes.turns)
        for state in self.cell.states:
            if state in read:
                bits = width * self.bits(state)
                own = Demand(f"state {state} of {self.cell.name}", words * bits, bits, width, writes=1, instant=True)
                self.memories.append(own)
                self.gates += self.bits(state)
                self.registers += self._early(state) * self.bits(state)
        for name in self.cell.parameters:
            bits = width * self.bits(name)
            words = sum(sizes.turns)
            self.memories.append(Demand(f"parameter {name} of {self.cell.name}", words * bits, bits, width, writes=1))
        depth = self.depth[self.cell.output]
        late = max(1, depth + self.latency["writeback"]) - 1 - depth
        self.registers += max(0, late) * self.precision.vector_bits

    def _early(self, state: str) -> bool:
        """Whether a state is read a cycle early, into a register: it is there before the turn, as h is."""
        own = Schedule(self.cell, self.sizes.core.latency, self.sizes.core.tail_width)
        giver = self.cell.states[state]
        read = [(segment, node) for segment in own.segments for node in segment.nodes if state in node.sources]
        return all(own.behind_h(segment, giver) and own.begin(node) > 0 for segment, node in read)


def _spread(latency: int, widths: tuple[int, ...], order: tuple[int, ...]) -> int:
    """Bits of registers that are shared out over places of these widths, in an order that goes round.

    >>> _spread(3, (8, 16, 9, 4), (3, 1, 2, 0))
    29
    """
    return sum(number * widths[place] for place, number in _shared(latency, order).items())


def _shared(latency: int, order: tuple[int, ...]) -> Counter[int]:
    """How many of so many registers each place gets, in an order that goes round.

    >>> _shared(6, (3, 1, 2, 0)) == {3: 2, 1: 2, 2: 1, 0: 1}
    True
    """
    return Counter(order[number % len(order)] for number in range(latency))


def _bits(cell: Cell, name: str | float, precision: Precision) -> int:
    if not isinstance(name, str):
        return precision.tail_bits
    fed = cell.states.get(name, name)
    if any(each.name == fed and each.operation == "quantize" for each in cell.nodes):
        return precision.vector_bits
    return precision.state_bits if fed in cell.states.values() else precision.tail_bits


def weight_words(core: ColumnCore, layer: Layer) -> int:
    """How many words of weights one layer takes, in all directions. A core reads one word in a cycle."""
    words = sum(
        len(shape.blocks) * sum(shape.groups(vector) for vector in shape.stage.vectors)
        for shape in pass_shapes(layer, core)
    )
    return layer.directions * words


class _ColumnHardware(Hardware):
    """One word of `ep * vp` weights in a cycle, one vector memory, and `tail_width` lanes after the array."""

    energies: ClassVar[OperationClasses] = OperationClasses.grouped("column-npu", ENERGY_CLASSES)

    def multipliers(self, core: ColumnCore) -> int:
        """All multipliers of the array, also those that `ep` and `vp` do not use."""
        return core.npe

    def meets(self, core: ColumnCore) -> tuple[int, int]:
        """In a column tile an element of the vector meets `vp` weights, each weight one element."""
        return 1, core.vp

    def parts(
        self, core: ColumnCore, models: Sequence[Model], precision: Precision, summed: int, stored: Stored
    ) -> tuple[Part, ...]:
        """The parts of its generated hardware. The weight memory has `weight_kib`, if the core gives it."""
        sizes = Sizes(core, tuple(models), precision, stored)
        words = sum(weight_words(core, layer) for layer in layers_of(models))
        room = None if core.weight_kib is None else 8192 * core.weight_kib
        own = array(sizes, summed), adapter(sizes), memories(sizes, words, room), vectors(sizes), lanes(sizes)
        return (*own, *kept(sizes), *frames(sizes), _issue(sizes), _tail(sizes), _dispatch(sizes))

    def element_bits(self, core: ColumnCore, precision: Precision) -> int:
        return element_bits(core, precision)

    def tail(self, core: ColumnCore, cells: Sequence[Cell], precision: Precision) -> TailLanes:
        """One multiplier for each operation of a lane. Each kind of cell has its own lanes; adapters are shared."""
        lane: Counter[Multiplier] = Counter()
        shared: Counter[Multiplier] = Counter()
        single: Counter[Multiplier] = Counter()
        for cell in cells:
            own = per_unit(cell, precision)
            stages = max(len(stage.sums) for stage in cell.stages)
            adapters = Counter({each: stages for each in own if each.kind == "adapter"})
            shared |= adapters
            lane += Counter({each: count for each, count in own.items() if each.kind != "adapter"})
            single += once(cell, precision)
        return TailLanes(core.tail_width, lane + shared, single)

    def of_one_device(self, chip: ColumnNpu) -> ColumnNpu:
        """The cores of the first device; `InputError` if the devices differ."""
        if chip.device_count == 1:
            return chip
        each = len(chip.cores) // chip.device_count
        own = chip.cores[:each]
        if chip.cores != own * chip.device_count:
            text = "devices with different cores are looked at one by one: give a chip of one of them"
            raise InputError(Mistake(f"chip {chip.name}: devices", text))
        return replace(chip, name=f"{chip.name} (each of {chip.device_count} devices)", cores=own, devices=None)

    def not_counted(self, stored: Stored) -> str:
        """What neither multipliers nor logic count; stored: as for `parts`."""
        return f"routing, {'' if stored.frames else 'memories of frames, '}trees of reductions"

    def vector_reads(self, core: ColumnCore, layer: Layer) -> int:
        """Elements that a step reads: each vector is read once for each row block."""
        return sum(len(shape.blocks) * layer.columns(shape.stage) for shape in pass_shapes(layer, core))

    def not_in_energy(self, chip: ColumnNpu) -> str:
        """The external memory of the chip, and what skipped columns save."""
        texts = ["what is read from the memory beside the chip is not in it"] if chip.memory else []
        if chip.device_count > 1:
            texts.append("what goes over links between devices is not in it")
        if any(core.delta for core in chip.cores):
            texts.append("columns that are skipped count as if they were multiplied")
        return ", and ".join(texts)


HARDWARE = _ColumnHardware()
