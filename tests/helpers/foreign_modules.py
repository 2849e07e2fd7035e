"""Modules that mix operations, attributes and types of a dialect that weft does not know, `acme`, with functions that
weft's passes convert: each payload with each place of something foreign."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    """A function body in parts, over values `%x` and `%y` of type `type_`."""

    type_: str
    statements: str
    """The computation of `%y` from `%x` on buffers, of `%r` on tensors; `BODY` is a place with an f32 `%v`, which gives
    the stored `%w`."""
    result: str = ""
    """The returned tensor."""

    @property
    def is_over_tensors(self) -> bool:
        return bool(self.result)


_BUFFER, _TENSOR = "memref<4x2xf32>", "tensor<4x2xf32>"
_GENERIC = """  %r = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x2xf32>) outs(%y : tensor<4x2xf32>) {
  ^bb0(%v: f32, %old: f32):
BODY
    linalg.yield %w : f32
  } -> tensor<4x2xf32>"""
PAYLOADS: Mapping[str, Payload] = {
    "affine": Payload(
        _BUFFER,
        """  affine.for %i = 0 to 4 {
   affine.for %j = 0 to 2 {
    %v = affine.load %x[%i, %j] : memref<4x2xf32>
BODY
    affine.store %w, %y[%i, %j] : memref<4x2xf32>
   }
  }""",
    ),
    "scf": Payload(
        _BUFFER,
        """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to BOUND step %c1 {
   scf.for %j = %c0 to %c2 step %c1 {
    %v = memref.load %x[%i, %j] : memref<4x2xf32>
BODY
    memref.store %w, %y[%i, %j] : memref<4x2xf32>
   }
  }""",
    ),
    "parallel": Payload(
        _BUFFER,
        """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (BOUND, %c2) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<4x2xf32>
BODY
    memref.store %w, %y[%i, %j] : memref<4x2xf32>
    scf.reduce
  }""",
    ),
    "linalg": Payload(
        _BUFFER, _GENERIC.replace("%r = ", "").replace("tensor", "memref").replace(" -> memref<4x2xf32>", "")
    ),
    "vector": Payload(
        _BUFFER,
        """  %c0 = arith.constant 0 : index
  %l = vector.load %x[%c0, %c0] : memref<4x2xf32>, vector<2xf32>
  vector.store %l, %y[%c0, %c0] : memref<4x2xf32>, vector<2xf32>
  %v = memref.load %x[%c0, %c0] : memref<4x2xf32>
BODY
  memref.store %w, %y[%c0, %c0] : memref<4x2xf32>""",
    ),
    "tensors": Payload(_TENSOR, _GENERIC, "%r"),
    "named": Payload(
        _TENSOR,
        "  %r = linalg.exp ins(%x : tensor<4x2xf32>) outs(%y : tensor<4x2xf32>) -> tensor<4x2xf32>",
        "%r",
    ),
    "loop": Payload(
        _TENSOR,
        """  %r = stablehlo.while(%t = %x) : TYPE
  cond {
    %zero = stablehlo.constant dense<0.0> : TYPE
    %below = stablehlo.compare LT, %t, %zero : (TYPE, TYPE) -> tensor<4x2xi1>
    %yes = stablehlo.constant dense<true> : tensor<i1>
    %any = stablehlo.reduce(%below init: %yes) applies stablehlo.and across dimensions = [0, 1] :
      (tensor<4x2xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %any : tensor<i1>
  } do {
    %next = stablehlo.add %t, %y : TYPE
    stablehlo.return %next : TYPE
  }""",
        "%r",
    ),
    "elementwise": Payload(_TENSOR, "  %r = arith.mulf %x, %y : tensor<4x2xf32>", "%r"),
    "stablehlo": Payload(_TENSOR, "  %r = stablehlo.multiply %x, %y : tensor<4x2xf32>", "%r"),
}
_PLAIN = "    %w = arith.addf %v, %v : f32"


@dataclass(frozen=True)
class _Place:
    """Text to add to a payload. `TYPE` is the type of its values."""

    before: str = ""
    behind: str = ""
    body: str = _PLAIN
    arguments: str = ""
    attributes: str = ""
    around: tuple[str, str] = ("", "")
    """Text in front of the statements and behind them, in the same function."""
    top: str = ""
    """Ops of the module next to the function."""
    bound: str = "%c4"
    """The number of iterations of a loop."""
    x: str = ""
    """The first parameter, if it is another one than `%x: TYPE`."""
    on: str = "both"


_PLACES: Mapping[str, _Place] = {
    "op_before": _Place(before='  "acme.touch"() : () -> ()'),
    "op_behind": _Place(behind='  "acme.touch"() {at = 3 : i8} : () -> ()'),
    "op_on_a_value": _Place(before='  "acme.touch"(%x) : (TYPE) -> ()'),
    "op_on_the_destination": _Place(
        before='  "acme.touch"(%y) : (TYPE) -> ()', behind='  "acme.touch"(%y) : (TYPE) -> ()'
    ),
    "op_with_a_number": _Place(
        before='  %s = "acme.number"() : () -> f32', body="    %w = arith.addf %v, %s : f32", on="bodies"
    ),
    "bound_of_a_loop": _Place(before='  %n = "acme.size"() : () -> index', bound="%n", on="bounds"),
    "op_in_the_body": _Place(body='    %w = "acme.number"(%v) : (f32) -> f32', on="bodies"),
    "op_beside_in_the_body": _Place(body=f'    "acme.touch"() : () -> ()\n{_PLAIN}', on="bodies"),
    "op_on_a_buffer_in_the_body": _Place(body=f'    "acme.touch"(%y) : (TYPE) -> ()\n{_PLAIN}', on="loops"),
    "region_in_the_body": _Place(
        body='    %w = "acme.scope"() ({\n      %z = arith.addf %v, %v : f32\n      "acme.yield"(%z) : (f32) -> ()\n'
        "    }) : () -> f32",
        on="bodies",
    ),
    "region_around": _Place(
        around=('  "acme.scope"() ({', '    "acme.end"() : () -> ()\n  }) : () -> ()'), on="buffers"
    ),
    "region_beside": _Place(
        before='  "acme.scope"() ({\n    "acme.touch"(%x) : (TYPE) -> ()\n    "acme.end"() : () -> ()\n  }) : () -> ()'
    ),
    "value_of_an_op": _Place(before='  %x = "acme.value"(%q) : (TYPE) -> TYPE', x="%q: TYPE"),
    "handle_of_an_op": _Place(
        before='  %h = "acme.open"() : () -> !acme.handle', behind='  "acme.close"(%h) : (!acme.handle) -> ()'
    ),
    "argument": _Place(arguments=", %h: !acme.handle<4>"),
    "argument_of_foreign_elements": _Place(arguments=", %h: SHAPED<4x2x!acme.fixed<4>>"),
    "attribute_of_the_function": _Place(attributes=' attributes {acme.note = "kept", acme.mark = #acme.mark<3>}'),
    "attribute_of_an_argument": _Place(x="%x: TYPE {acme.note = 1 : i64}"),
    "attribute_of_an_op": _Place(
        before='  %n = arith.constant {acme.mark = #acme.mark<3>} 1 : index\n  "acme.touch"(%n) : (index) -> ()'
    ),
    "other_function": _Place(
        top='func.func @other(%h: !acme.handle) -> !acme.handle {\n  "acme.touch"(%h) : (!acme.handle) -> ()\n'
        "  func.return %h : !acme.handle\n}"
    ),
    "declaration": _Place(top="func.func private @other(!acme.handle, TYPE)"),
    "op_of_the_module": _Place(top='"acme.global"() {sym_name = "g", value = #acme.mark<3>} : () -> ()'),
    "symbol_of_the_module": _Place(top='"acme.table"() {entries = [@main]} : () -> ()'),
    "symbol_in_a_function": _Place(
        top='func.func @other() {\n  "acme.spawn"() {callee = @main} : () -> ()\n  func.return\n}'
    ),
    "function_of_the_dialect": _Place(
        top='"acme.func"() ({\n^bb0(%x: TYPE):\n  "acme.call"(%x) {callee = @main} : (TYPE) -> ()\n'
        '}) {sym_name = "own"} : () -> ()'
    ),
    "caller": _Place(
        top='func.func @other(%x: TYPE, %y: TYPE) {\n  CALL\n  "acme.touch"(%x) : (TYPE) -> ()\n  func.return\n}'
    ),
    "callee": _Place(
        before="  func.call @other(%x) : (TYPE) -> ()",
        top='func.func private @other(%x: TYPE) {\n  "acme.touch"(%x) : (TYPE) -> ()\n  func.return\n}',
    ),
    "branch": _Place(
        before='  "acme.branch"()[^other, ^next] : () -> ()\n^other:\n  "acme.branch"()[^next] : () -> ()\n^next:'
    ),
}


def _applies(payload: Payload, on: str) -> bool:
    return {
        "both": True,
        "bodies": "BODY" in payload.statements,
        "bounds": "BOUND" in payload.statements,
        "loops": "BODY" in payload.statements and "linalg" not in payload.statements and not payload.is_over_tensors,
        "buffers": not payload.is_over_tensors,
    }[on]


def foreign_modules() -> Iterator[tuple[str, str]]:
    """A name and the text of each module. Its function `@main` has the payload."""
    for payload_name, payload in PAYLOADS.items():
        for name, place in _PLACES.items():
            if _applies(payload, place.on):
                yield f"{payload_name}-{name}", _module(payload, place)


def _module(payload: Payload, place: _Place) -> str:
    arguments = f"{place.x or '%x: TYPE'}, %y: TYPE{place.arguments}"
    lines = [
        f"func.func @main({arguments}){f' -> {payload.type_}' if payload.result else ''}{place.attributes} {{",
        place.before,
        place.around[0],
        payload.statements.replace("BODY", place.body).replace("BOUND", place.bound),
        place.around[1],
        place.behind,
        f"  func.return{f' {payload.result} : TYPE' if payload.result else ''}",
        "}",
        place.top,
    ]
    call = "func.call @main(%x, %y) : (TYPE, TYPE) -> ()"
    if payload.result:
        call = "%0 = func.call @main(%x, %y) : (TYPE, TYPE) -> TYPE"
    text = "\n".join(line for line in lines if line).replace("CALL", call)
    return text.replace("TYPE", payload.type_).replace("SHAPED", payload.type_.partition("<")[0]) + "\n"
