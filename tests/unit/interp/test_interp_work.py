"""Operations of a loop nest, counted without running it."""

from xdsl.dialects.builtin import ModuleOp

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.driver.verify import verify_module
from weft.interp.arguments import ConcreteShapes, OperationCounts
from weft.passes.module_edits import functions_of


def module_of(text: str) -> ModuleOp:
    module = parse_text(context(), text, "test.mlir")
    verify_module(module)
    return module


def work(text: str, **shapes: tuple[int, ...]) -> OperationCounts | None:
    functions = functions_of(module_of(text))
    found = ConcreteShapes(functions["f"], (), shapes).work(functions.get)
    return found if found.is_exact else None


def test_a_reduction_and_its_init() -> None:
    text = """
    func.func @f(%A: memref<?x64xf32>, %Y: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %n = memref.dim %A, %c0 : memref<?x64xf32>
      tir.assume_shape %Y[%n] : memref<?xf32>
      tir.for %i in %n {
        tir.for %k in 64 {
          tir.block "Y" iters(%v: spatial<%n>, %r: reduce<64>) = [%i, %k] {
            tir.init {
              memref.store %zero, %Y[%v] : memref<?xf32>
            }
            %a = memref.load %A[%v, %r] : memref<?x64xf32>
            %y = memref.load %Y[%v] : memref<?xf32>
            %e = math.exp %a : f32
            %s = arith.addf %y, %e : f32
            memref.store %s, %Y[%v] : memref<?xf32>
          }
        }
      }
      func.return
    }
    """
    # Five operations an instance, two of them arithmetic; the block, its init with one operation, and the loops.
    assert work(text, A=(10, 64), Y=(10,)) == OperationCounts(10 * (64 * (5 + 3) + 1) + 6, 10 * 64 * 2)
    assert work(text) is None


def test_scf_vectors_and_branches() -> None:
    text = """
    func.func @f(%x: vector<8xf32>, %c: i1, %y: f64) {
      %low = arith.constant 1 : index
      %high = arith.constant 8 : index
      %step = arith.constant 3 : index
      scf.for %i = %low to %high step %step {
        %a = arith.mulf %x, %x : vector<8xf32>
        %b = math.fma %x, %x, %a : vector<8xf32>
        scf.if %c {
          %d = arith.addf %y, %y : f64
          %e = arith.addf %d, %y : f64
        } else {
          %d = arith.addf %y, %y : f64
        }
      }
      func.return
    }
    """
    # Iterations 1, 4, 7: each 8 + 16 lanes and the larger branch.
    counted = work(text)
    assert counted is not None
    assert counted.flops == 3 * (8 + 16 + 2)


def test_what_depends_on_data_is_not_counted() -> None:
    text = """
    func.func @f(%n: index, %y: f64) {
      tir.for %i in %n {
      }
      func.return
    }
    """
    assert work(text) is None
