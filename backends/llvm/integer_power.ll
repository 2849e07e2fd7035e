; base to the power of an integer, by squaring. A negative power leaves 1 and -1 only.
;
;   element   the integer type
;   name      the symbol of the function

define internal $element @$name($element %base, $element %power) nounwind {
entry:
  %negative = icmp slt $element %power, 0
  br i1 %negative, label %reciprocal, label %head
head:
  %result = phi $element [ 1, %entry ], [ %result.next, %body ]
  %factor = phi $element [ %base, %entry ], [ %factor.next, %body ]
  %rest = phi $element [ %power, %entry ], [ %rest.next, %body ]
  %done = icmp eq $element %rest, 0
  br i1 %done, label %exit, label %body
body:
  %odd = trunc $element %rest to i1
  %product = mul $element %result, %factor
  %result.next = select i1 %odd, $element %product, $element %result
  %factor.next = mul $element %factor, %factor
  %rest.next = lshr $element %rest, 1
  br label %head
exit:
  ret $element %result
reciprocal:
  %is.one = icmp eq $element %base, 1
  %is.minus = icmp eq $element %base, -1
  %odd.power = trunc $element %power to i1
  %sign = select i1 %odd.power, $element -1, $element 1
  %other = select i1 %is.minus, $element %sign, $element 0
  %inverse = select i1 %is.one, $element 1, $element %other
  ret $element %inverse
}
