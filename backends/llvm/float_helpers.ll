; The conversions to and from half and bfloat that LLVM calls by name where the CPU has no instruction for them.
; Rounding is to nearest, ties to even, straight from double: there is no second rounding through float.

; Rounds a double, given as its bits, to a 16-bit float with `m` mantissa bits and smallest exponent `emin`.
; A result r quanta of 2^(e-m) large, with e >= emin, has the encoding ((e - emin) << m) + r, carries
; included.
define internal i16 @round(double %x, i64 %m, i64 %emin, i64 %inf) noinline nounwind {
  %bits = bitcast double %x to i64
  %sign.high = lshr i64 %bits, 48
  %sign = and i64 %sign.high, 32768
  %abs = and i64 %bits, 9223372036854775807
  %narrow = sub i64 52, %m
  %is.nan = icmp ugt i64 %abs, 9218868437227405312
  br i1 %is.nan, label %nan, label %number
nan:
  %payload.all = lshr i64 %abs, %narrow
  %one.m = shl i64 1, %m
  %payload.mask = sub i64 %one.m, 1
  %payload = and i64 %payload.all, %payload.mask
  %quiet = lshr i64 %one.m, 1
  %nan.0 = or i64 %payload, %quiet
  %nan.1 = or i64 %nan.0, %inf
  br label %done
number:
  %field = lshr i64 %abs, 52
  %fraction = and i64 %abs, 4503599627370495
  %normal = icmp ne i64 %field, 0
  %implicit = select i1 %normal, i64 4503599627370496, i64 0
  %mantissa = or i64 %fraction, %implicit
  %exponent = sub i64 %field, 1023
  %small = icmp slt i64 %exponent, %emin
  %e = select i1 %small, i64 %emin, i64 %exponent
  %below = sub i64 %e, %exponent
  %shift.exact = add i64 %narrow, %below
  %shift.large = icmp ugt i64 %shift.exact, 63
  %shift = select i1 %shift.large, i64 63, i64 %shift.exact
  %r = lshr i64 %mantissa, %shift
  %one = shl i64 1, %shift
  %mask = sub i64 %one, 1
  %rest = and i64 %mantissa, %mask
  %half = lshr i64 %one, 1
  %above = icmp ugt i64 %rest, %half
  %tie = icmp eq i64 %rest, %half
  %odd.bit = and i64 %r, 1
  %odd = icmp ne i64 %odd.bit, 0
  %tie.up = and i1 %tie, %odd
  %up = or i1 %above, %tie.up
  %up.one = zext i1 %up to i64
  %rounded = add i64 %r, %up.one
  %e.offset = sub i64 %e, %emin
  %e.field = shl i64 %e.offset, %m
  %encoded = add i64 %e.field, %rounded
  %overflow = icmp ugt i64 %encoded, %inf
  %finite = select i1 %overflow, i64 %inf, i64 %encoded
  br label %done
done:
  %magnitude = phi i64 [ %nan.1, %nan ], [ %finite, %number ]
  %result = or i64 %magnitude, %sign
  %short = trunc i64 %result to i16
  ret i16 %short
}

define internal float @widen(i16 %x) noinline nounwind {
  %bits = zext i16 %x to i32
  %sign.low = and i32 %bits, 32768
  %sign = shl i32 %sign.low, 16
  %abs = and i32 %bits, 32767
  %is.subnormal = icmp ult i32 %abs, 1024
  %is.special = icmp uge i32 %abs, 31744
  %is.nan = icmp ugt i32 %abs, 31744
  %quiet = select i1 %is.nan, i32 4194304, i32 0
  %wide = shl i32 %abs, 13
  %offset = select i1 %is.special, i32 1879048192, i32 939524096
  %normal = add i32 %wide, %offset
  %small.int = uitofp i32 %abs to float
  %small = fmul float %small.int, 0x3E70000000000000
  %small.bits = bitcast float %small to i32
  %magnitude = select i1 %is.subnormal, i32 %small.bits, i32 %normal
  %quieted = or i32 %magnitude, %quiet
  %result = or i32 %quieted, %sign
  %value = bitcast i32 %result to float
  ret float %value
}

define half @__truncdfhf2(double %x) nounwind {
  %r = call i16 @round(double %x, i64 10, i64 -14, i64 31744)
  %h = bitcast i16 %r to half
  ret half %h
}
define half @__truncsfhf2(float %x) nounwind {
  %d = fpext float %x to double
  %r = call i16 @round(double %d, i64 10, i64 -14, i64 31744)
  %h = bitcast i16 %r to half
  ret half %h
}
define i16 @__gnu_d2h_ieee(double %x) nounwind {
  %r = call i16 @round(double %x, i64 10, i64 -14, i64 31744)
  ret i16 %r
}
define i16 @__gnu_f2h_ieee(float %x) nounwind {
  %d = fpext float %x to double
  %r = call i16 @round(double %d, i64 10, i64 -14, i64 31744)
  ret i16 %r
}
define bfloat @__truncdfbf2(double %x) nounwind {
  %r = call i16 @round(double %x, i64 7, i64 -126, i64 32640)
  %h = bitcast i16 %r to bfloat
  ret bfloat %h
}
define bfloat @__truncsfbf2(float %x) nounwind {
  %d = fpext float %x to double
  %r = call i16 @round(double %d, i64 7, i64 -126, i64 32640)
  %h = bitcast i16 %r to bfloat
  ret bfloat %h
}
define float @__extendhfsf2(half %x) nounwind {
  %i = bitcast half %x to i16
  %r = call float @widen(i16 %i)
  ret float %r
}
define float @__gnu_h2f_ieee(i16 %x) nounwind {
  %r = call float @widen(i16 %x)
  ret float %r
}
