"""Random functions over tensors in upstream's dialects: values shared by several operations, destinations that are read
later, slices put back, loops and branches that carry tensors, calls.

All matrices are 4x4 and all vectors 4, of i32, static or dynamic; `tensor.empty` is read by nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

_MAPS = {
    **{"same": "(i, j) -> (i, j)", "transposed": "(i, j) -> (j, i)"},
    **{"row": "(i, j) -> (j)", "column": "(i, j) -> (i)"},
}
_HELPER = """
func.func private @helper(%A: M {bufferization.writable = WRITABLE}, %B: M) -> M {
  %r = linalg.matmul ins(%B, %B : M, M) outs(%A : M) -> M
  return %r : M
}
"""


@dataclass
class Scope:
    """The values of a block."""

    matrices: list[str]
    vectors: list[str]
    numbers: list[str]
    indices: list[str]

    def inner(self) -> Scope:
        return Scope(self.matrices[:], self.vectors[:], self.numbers[:], self.indices[:])


@dataclass
class TensorProgram:
    """Writes one program, of about `size` operations."""

    seed: int
    size: int = 10
    lines: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.is_dynamic = self.random.random() < 0.35
        self.count = 0
        self.calls_helper = False
        self.depth = 1
        self.matrix, self.vector = (
            ("tensor<?x?xi32>", "tensor<?xi32>") if self.is_dynamic else ("tensor<4x4xi32>", "tensor<4xi32>")
        )

        self._write_body()

    def _write_body(self) -> None:
        self.matrices = 1 if self.is_dynamic else self.random.choice([1, 2])  # of one shape, which types do not tell
        names = [f"%A{n}" for n in range(self.matrices)]
        self.parameters = [*((name, self.matrix) for name in names), ("%V", self.vector)]
        self.parameters += [("%n", "index"), ("%p", "index"), ("%x", "i32")]
        scope = Scope(names, ["%V"], ["%x"], ["%p", "%c0", "%c1"])
        for _ in range(self.size):
            self.statement(scope)
        count = self.random.choice([1, 1, 2, 3])
        self.returned = [(self.random.choice(scope.matrices[-4:]), self.matrix) for _ in range(count)]
        if self.random.random() < 0.4:
            self.returned.append((self.random.choice(scope.vectors[-3:]), self.vector))
        self.helper_is_writable = self.random.choice(["true", "false"])

    @property
    def result_ranks(self) -> list[int]:
        return [2 if type_ == self.matrix else 1 for _, type_ in self.returned]

    def text(self, *, returns: bool = True) -> str:
        """The module, whose function `main` takes matrices, a vector, a number of iterations, a place and a number.

        It returns tensors, or else it has a buffer for each as a further parameter, as `bufferize-tensors` makes them.
        """
        head = [f"  %c{n} = arith.constant {n} : index" for n in range(5)]
        head.append("  %flag = arith.cmpi slt, %p, %c2 : index")
        if self.is_dynamic:
            head.append(f"  %dim = tensor.dim %A0, %c0 : {self.matrix}")
        parameters, last = self.parameters, list[str]()
        names, types = (", ".join(part) for part in zip(*self.returned, strict=True))
        if not returns:
            buffers = [(f"%out{n}", type_.replace("tensor", "memref")) for n, (_, type_) in enumerate(self.returned)]
            parameters = [*parameters, *buffers]
            for (value, type_), (name, buffer) in zip(self.returned, buffers, strict=True):
                target = f"restrict writable {name} : ({type_}, {buffer}) -> ()"
                last.append(f"  bufferization.materialize_in_destination {value} in {target}")
        kept = "" if returns else " {bufferization.writable = false}"  # One-Shot Bufferize may write others
        listed = ", ".join(f"{name}: {type_}{kept if 'tensor' in type_ else ''}" for name, type_ in parameters)
        signature = f"@main({listed}) -> ({types})" if returns else f"@main({listed})"
        body = "\n".join([*head, *self.lines, *last, f"  return {names} : {types}" if returns else "  return"])
        helper = _HELPER.replace("M", self.matrix).replace("WRITABLE", self.helper_is_writable)
        return f"{helper if self.calls_helper else ''}func.func {signature} {{\n{body}\n}}\n"

    # Parts

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def write(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def pick(self, values: list[str]) -> str:
        return self.random.choice(values[-3:] if self.random.random() < 0.6 else values)

    def empty(self, type_: str) -> str:
        name = self.name()
        sizes = ", ".join(["%dim"] * type_.count("?"))
        self.write(f"{name} = tensor.empty({sizes}) : {type_}")
        return name

    def destination(self, values: list[str], type_: str, *, is_read: bool) -> str:
        """A destination: of a value of the scope, or of an empty tensor where nothing reads it."""
        if not is_read and self.random.random() < 0.5:
            return self.empty(type_)
        return self.pick(values)

    def statement(self, scope: Scope) -> None:
        kinds: list[tuple[int, Callable[[Scope], None]]] = [
            (5, self.pointwise),
            (2, self.fill),
            (2, self.matmul),
            (2, self.reduce),
            (2, self.transpose),
            (3, self.row),
            (3, self.tile),
            (2, self.element),
            (2, self.elementwise),
            (1, self.constant),
            (1, self.call),
            (1, self.pad),
            (1, self.concat),
            (1, self.reshape),
            (1, self.generate),
        ]
        if self.depth < 3:
            kinds += [(3, self.loop), (2, self.branch), (1, self.while_loop), (2, self.forall)]
        chosen = self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
        chosen(scope)

    def generic(
        self, maps: list[str], kinds: list[str], ins: list[tuple[str, str]], out: tuple[str, str], body: str
    ) -> str:
        name = self.name()
        listed = ", ".join(f"affine_map<{text}>" for text in maps)
        names, types = (", ".join(part) for part in zip(*ins, strict=True))
        arguments = ", ".join(f"%e{n}_{self.count}: i32" for n in range(len(ins) + 1))
        iterators = ", ".join(f'"{kind}"' for kind in kinds)
        self.write(
            f"{name} = linalg.generic {{indexing_maps = [{listed}], iterator_types = [{iterators}]}} "
            f"ins({names} : {types}) outs({out[0]} : {out[1]}) {{"
        )
        self.write(f"^bb0({arguments}):")
        for line in body.replace("%e", f"%e_{self.count}_").split("\n"):
            for n in range(len(ins) + 1):
                line = line.replace(f"%e_{self.count}_{n}", f"%e{n}_{self.count}")
            self.write("  " + line.replace("%r", f"%r{self.count}_"))
        self.write(f"}} -> {out[1]}")
        return name

    # Operations

    def pointwise(self, scope: Scope) -> None:
        is_read = self.random.random() < 0.4
        out = self.destination(scope.matrices, self.matrix, is_read=is_read)
        ins, maps = [], []
        for _ in range(self.random.choice([1, 2])):
            how = self.random.choice(["same", "same", "same", "transposed", "row", "column"])
            is_vector = how in ("row", "column")
            values, type_ = (scope.vectors, self.vector) if is_vector else (scope.matrices, self.matrix)
            ins.append((self.pick(values), type_))
            maps.append(_MAPS[how])
        last = f"%e{len(ins) if is_read else 0}"
        body = f"%r0 = arith.muli %e{len(ins) - 1}, %e0 : i32\n%r1 = arith.addi %r0, {last} : i32\n"
        body += "linalg.yield %r1 : i32"
        out_map = _MAPS[self.random.choice(["same", "same", "same", "transposed"])]
        scope.matrices.append(self.generic([*maps, out_map], ["parallel"] * 2, ins, (out, self.matrix), body))

    def fill(self, scope: Scope) -> None:
        name = self.name()
        values, type_ = self.random.choice([(scope.matrices, self.matrix), (scope.vectors, self.vector)])
        out = self.destination(values, type_, is_read=False)
        self.write(f"{name} = linalg.fill ins({self.pick(scope.numbers)} : i32) outs({out} : {type_}) -> {type_}")
        values.append(name)

    def matmul(self, scope: Scope) -> None:
        left, right, out = (self.pick(scope.matrices) for _ in range(3))
        if self.random.random() < 0.5:
            empty, out = self.empty(self.matrix), self.name()
            self.write(f"{out} = linalg.fill ins(%x : i32) outs({empty} : {self.matrix}) -> {self.matrix}")
        name, m = self.name(), self.matrix
        self.write(f"{name} = linalg.matmul ins({left}, {right} : {m}, {m}) outs({out} : {m}) -> {m}")
        scope.matrices.append(name)

    def reduce(self, scope: Scope) -> None:
        out = self.pick(scope.vectors)
        maps = [_MAPS["same"], self.random.choice([_MAPS["row"], _MAPS["column"]])]
        kinds = ["reduction", "parallel"] if maps[1] == _MAPS["row"] else ["parallel", "reduction"]
        ins = [(self.pick(scope.matrices), self.matrix)]
        body = "%r0 = arith.addi %e0, %e1 : i32\nlinalg.yield %r0 : i32"
        if self.random.random() < 0.4:  # the vector that is reduced into is read as well
            ins.append((self.pick(scope.vectors), self.vector))
            maps.insert(1, maps[1])
            body = "%r0 = arith.muli %e0, %e1 : i32\n%r1 = arith.addi %r0, %e2 : i32\nlinalg.yield %r1 : i32"
        scope.vectors.append(self.generic(maps, kinds, ins, (out, self.vector), body))

    def transpose(self, scope: Scope) -> None:
        source, m = self.pick(scope.matrices), self.matrix
        out, name = self.destination(scope.matrices, m, is_read=False), self.name()
        self.write(f"{name} = linalg.transpose ins({source} : {m}) outs({out} : {m}) permutation = [1, 0]")
        scope.matrices.append(name)

    def place(self, scope: Scope) -> str:
        return self.random.choice(["0", "1", "2", "3", self.pick(scope.indices)])

    def row(self, scope: Scope) -> None:
        """A row or column, changed in between or not, put where it was taken, or elsewhere."""
        source, at = self.pick(scope.matrices), self.place(scope)
        width = "%dim" if self.is_dynamic else "4"
        is_row = self.random.random() < 0.6

        def where(place: str) -> str:
            return f"[{place}, 0] [1, {width}] [1, 1]" if is_row else f"[0, {place}] [{width}, 1] [1, 1]"

        taken = self.name()
        self.write(f"{taken} = tensor.extract_slice {source}{where(at)} : {self.matrix} to {self.vector}")
        if self.random.random() < 0.5:
            scope.vectors.append(taken)
        changed = self.name()
        if self.random.random() < 0.5:
            self.write(f"{changed} = linalg.fill ins(%x : i32) outs({taken} : {self.vector}) -> {self.vector}")
        else:
            other = self.pick(scope.vectors)
            body = "%r0 = arith.addi %e0, %e1 : i32\nlinalg.yield %r0 : i32"
            changed = self.generic(["(i) -> (i)"] * 2, ["parallel"], [(other, self.vector)], (taken, self.vector), body)
        if self.random.random() < 0.5:
            scope.vectors.append(changed)
        if self.random.random() < 0.3:
            source = self.pick(scope.matrices)
        if self.random.random() < 0.3:
            at = self.place(scope)
        self.inserted(scope, changed, self.vector, source, where(at))

    def inserted(self, scope: Scope, part: str, type_: str, target: str, where: str) -> None:
        name = self.name()
        self.write(f"{name} = tensor.insert_slice {part} into {target}{where} : {type_} into {self.matrix}")
        scope.matrices.append(name)

    def tile(self, scope: Scope) -> None:
        """A part of 2x2, with strides or not, copied or changed."""
        type_ = "tensor<2x2xi32>"

        def where() -> str:
            return self.random.choice(
                ["[0, 0] [2, 2] [1, 1]", "[1, 2] [2, 2] [1, 1]", "[0, 1] [2, 2] [2, 2]", "[%p, 0] [2, 2] [1, 2]"]
            ).replace("%p", self.random.choice(["%c0", "%c1", "2"]))

        source, at = self.pick(scope.matrices), where()
        part = self.name()
        self.write(f"{part} = tensor.extract_slice {source}{at} : {self.matrix} to {type_}")
        if self.random.random() < 0.6:
            changed, t = self.name(), type_
            self.write(f"{changed} = linalg.add ins({part}, {part} : {t}, {t}) outs({part} : {t}) -> {t}")
            part = changed
        if self.random.random() < 0.4:
            source = self.pick(scope.matrices)
        self.inserted(scope, part, type_, source, at if self.random.random() < 0.6 else where())

    def element(self, scope: Scope) -> None:
        source = self.pick(scope.matrices)
        number = self.name()
        self.write(f"{number} = tensor.extract {source}[{self.pick(scope.indices)}, %c2] : {self.matrix}")
        scope.numbers.append(number)
        name, target = self.name(), self.pick(scope.matrices)
        place = f"[%c1, {self.pick(scope.indices)}]"
        self.write(f"{name} = tensor.insert {self.pick(scope.numbers)} into {target}{place} : {self.matrix}")
        scope.matrices.append(name)

    def elementwise(self, scope: Scope) -> None:
        left, right, m = self.pick(scope.matrices), self.pick(scope.matrices), self.matrix
        name = self.name()
        if self.random.random() < 0.5:
            self.write(f"{name} = arith.subi {left}, {right} : {m}")
        else:
            self.write(f"{name} = arith.cmpi slt, {left}, {right} : {m}")
            condition, name = name, self.name()
            self.write(f"{name} = arith.select {condition}, {left}, {right} : {m.replace('i32', 'i1')}, {m}")
        scope.matrices.append(name)

    def constant(self, scope: Scope) -> None:
        name = self.name()
        numbers = self.random.choice(["3", "[1, 2, 3, 4]", "[5, 0, 5, 0]"])
        self.write(f"{name} = arith.constant dense<{numbers}> : tensor<4xi32>")
        if self.is_dynamic:
            name, constant = self.name(), name
            self.write(f"{name} = tensor.cast {constant} : tensor<4xi32> to {self.vector}")
        scope.vectors.append(name)

    def call(self, scope: Scope) -> None:
        self.calls_helper = True
        name, m = self.name(), self.matrix
        left, right = self.pick(scope.matrices), self.pick(scope.matrices)
        self.write(f"{name} = func.call @helper({left}, {right}) : ({m}, {m}) -> {m}")
        scope.matrices.append(name)

    def pad(self, scope: Scope) -> None:
        padded, name, m = self.name(), self.name(), self.matrix
        wide = "tensor<?x?xi32>" if self.is_dynamic else "tensor<5x6xi32>"
        value = self.random.choice(["%x", self.pick(scope.numbers)])
        self.write(f"{padded} = tensor.pad {self.pick(scope.matrices)} low[0, 1] high[1, 1] {{")
        self.write(f"^bb0(%i{self.count}: index, %j{self.count}: index):")
        self.write(f"  tensor.yield {value} : i32")
        self.write(f"}} : {m} to {wide}")
        part = f"[{self.random.choice('01')}, 2]{'[%dim, %dim]' if self.is_dynamic else '[4, 4]'}[1, 1]"
        self.write(f"{name} = tensor.extract_slice {padded}{part} : {wide} to {m}")
        scope.matrices.append(name)

    def concat(self, scope: Scope) -> None:
        if self.is_dynamic:
            return
        parts, name = [self.name(), self.name()], self.name()
        for part, at in zip(parts, ("[2, 0]", "[1, 0]"), strict=True):
            source = self.pick(scope.matrices)
            self.write(f"{part} = tensor.extract_slice {source}{at}[2, 4][1, 1] : {self.matrix} to tensor<2x4xi32>")
        types = "(tensor<2x4xi32>, tensor<2x4xi32>)"
        self.write(f"{name} = tensor.concat dim(0) {', '.join(parts)} : {types} -> {self.matrix}")
        scope.matrices.append(name)

    def reshape(self, scope: Scope) -> None:
        if self.is_dynamic:
            return
        flat, changed, name, m = self.name(), self.name(), self.name(), self.matrix
        f = "tensor<16xi32>"
        self.write(f"{flat} = tensor.collapse_shape {self.pick(scope.matrices)} [[0, 1]] : {m} into {f}")
        self.write(f"{changed} = linalg.add ins({flat}, {flat} : {f}, {f}) outs({flat} : {f}) -> {f}")
        shaped = self.random.choice([flat, changed])
        self.write(f"{name} = tensor.expand_shape {shaped} [[0, 1]] output_shape [4, 4] : {f} into {m}")
        scope.matrices.append(name)

    def generate(self, scope: Scope) -> None:
        name, source = self.name(), self.pick(scope.matrices)
        i, j = f"%gi{self.count}", f"%gj{self.count}"
        sizes = "%dim, %dim " if self.is_dynamic else ""
        self.write(f"{name} = tensor.generate {sizes}{{")
        self.write(f"^bb0({i}: index, {j}: index):")
        self.write(f"  %ge{self.count} = tensor.extract {source}[{j}, {i}] : {self.matrix}")
        self.write(f"  tensor.yield %ge{self.count} : i32")
        self.write(f"}} : {self.matrix}")
        scope.matrices.append(name)

    # Structure

    def body(self, scope: Scope, most: int = 4) -> None:
        self.depth += 1
        for _ in range(self.random.randint(0, most)):
            self.statement(scope)

    def loop(self, scope: Scope) -> None:
        count = self.random.choice([1, 1, 2])
        names, carried = [self.name() for _ in range(count)], [self.name() for _ in range(count)]
        initial = ", ".join(f"{name} = {self.pick(scope.matrices)}" for name in carried)
        types = ", ".join([self.matrix] * count)
        index = f"%i{self.count}"
        label = f"{names[0]}:{count}" if count > 1 else names[0]
        upper = self.random.choice(["%n", "%c2", "%c3"])
        self.write(f"{label} = scf.for {index} = %c0 to {upper} step %c1 iter_args({initial}) -> ({types}) {{")
        inner = scope.inner()
        inner.matrices += carried
        inner.indices.append(index)
        self.body(inner)
        recent = [*inner.matrices[-4:], *carried, *carried]
        self.write(f"scf.yield {', '.join(self.random.choice(recent) for _ in names)} : {types}")
        self.depth -= 1
        self.write("}")
        scope.matrices += [f"{names[0]}#{n}" for n in range(count)] if count > 1 else names

    def branch(self, scope: Scope) -> None:
        name = self.name()
        self.write(f"{name} = scf.if %flag -> ({self.matrix}) {{")
        for text in ("} else {", "}"):
            inner = scope.inner()
            self.body(inner, 3)
            self.write(f"scf.yield {self.random.choice(inner.matrices[-3:])} : {self.matrix}")
            self.depth -= 1
            self.write(text)
        scope.matrices.append(name)

    def while_loop(self, scope: Scope) -> None:
        name, m = self.name(), self.matrix
        here, there, k, left = f"%t{self.count}", f"%u{self.count}", f"%k{self.count}", f"%l{self.count}"
        c, less = f"%wc{self.count}", f"%wl{self.count}"
        types = f"{m}, index"
        start = f"{here} = {self.pick(scope.matrices)}, {k} = %c3"
        self.write(f"{name}:2 = scf.while ({start}) : ({types}) -> ({types}) {{")
        inner = scope.inner()
        inner.matrices.append(here)
        self.body(inner, 2)
        self.write(f"{c} = arith.cmpi sgt, {k}, %c1 : index")
        passed = self.random.choice([here, inner.matrices[-1]])
        self.write(f"scf.condition({c}) {passed}, {k} : {types}")
        self.depth -= 1
        self.write("} do {")
        self.write(f"^bb0({there}: {m}, {left}: index):")
        inner = scope.inner()
        inner.matrices.append(there)
        self.body(inner, 2)
        self.write(f"{less} = arith.subi {left}, %c1 : index")
        self.write(f"scf.yield {self.random.choice([there, inner.matrices[-1]])}, {less} : {types}")
        self.depth -= 1
        self.write("}")
        scope.matrices.append(f"{name}#0")

    def forall(self, scope: Scope) -> None:
        """Rows that iterations compute at once, of those that they replace or of others."""
        name, m, v = self.name(), self.matrix, self.vector
        index, shared = f"%f{self.count}", f"%s{self.count}"
        width = "%dim" if self.is_dynamic else "4"
        source = self.pick(scope.matrices)
        self.write(f"{name} = scf.forall ({index}) in (%c4) shared_outs({shared} = {source}) -> ({m}) {{")
        self.depth += 1
        taken, part = self.name(), f"[{index}, 0] [1, {width}] [1, 1]"
        read = self.random.choice([f"{shared}{part}", f"{shared}{part}", f"{self.pick(scope.matrices)}{part}"])
        self.write(f"{taken} = tensor.extract_slice {read} : {m} to {v}")
        other = self.pick([*scope.vectors, taken])
        body = "%r0 = arith.addi %e0, %e1 : i32\nlinalg.yield %r0 : i32"
        changed = self.generic(["(i) -> (i)"] * 2, ["parallel"], [(other, v)], (taken, v), body)
        self.write("scf.forall.in_parallel {")
        self.write(f"  tensor.parallel_insert_slice {changed} into {shared}{part} : {v} into {m}")
        self.write("}")
        self.depth -= 1
        self.write("}")
        scope.matrices.append(name)
