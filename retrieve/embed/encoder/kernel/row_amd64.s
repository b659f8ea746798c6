#include "textflag.h"

// Constants, each in all the lanes of the widest vector.
#define CONST(name, value) \
	DATA name<>+0(SB)/4, value; \
	DATA name<>+4(SB)/4, value; \
	DATA name<>+8(SB)/4, value; \
	DATA name<>+12(SB)/4, value; \
	DATA name<>+16(SB)/4, value; \
	DATA name<>+20(SB)/4, value; \
	DATA name<>+24(SB)/4, value; \
	DATA name<>+28(SB)/4, value; \
	DATA name<>+32(SB)/4, value; \
	DATA name<>+36(SB)/4, value; \
	DATA name<>+40(SB)/4, value; \
	DATA name<>+44(SB)/4, value; \
	DATA name<>+48(SB)/4, value; \
	DATA name<>+52(SB)/4, value; \
	DATA name<>+56(SB)/4, value; \
	DATA name<>+60(SB)/4, value; \
	GLOBL name<>(SB), RODATA|NOPTR, $64

CONST(magnitude, $0x7fffffff)
CONST(one, $1.0)
CONST(half, $0.5)
CONST(lowest, $-87.0)
CONST(log2e, $1.4426950408889634)
CONST(ln2high, $0.693359375)
CONST(ln2low, $-2.12194440e-4)
CONST(taylor2, $0.5)
CONST(taylor3, $0.16666667)
CONST(taylor4, $0.041666668)
CONST(taylor5, $0.008333334)
CONST(taylor6, $0.0013888889)
CONST(exponent, $127)
CONST(root, $0.7071067811865476)
CONST(erfP, $0.3275911)
CONST(erf1, $0.254829592)
CONST(erf2, $-0.284496736)
CONST(erf3, $1.421413741)
CONST(erf4, $-1.453152027)
CONST(erf5, $1.061405429)

// EXP replaces the numbers in x, at most 88, by their exponentials: 2^n·e^r with
// x = n·ln 2 + r and |r| at most ln 2 / 2, where six terms of the series have
// an error of 2e-7. Numbers below -87 are treated as -87. It uses n and r; round is the
// instruction that rounds vectors of their size.
#define EXP(round, x, n, r) \
	VMAXPS       lowest<>(SB), x, x; \
	VMULPS       log2e<>(SB), x, n; \
	round        $0, n, n; \
	VMOVAPS      x, r; \
	VFNMADD231PS ln2high<>(SB), n, r; \
	VFNMADD231PS ln2low<>(SB), n, r; \
	VMOVUPS      taylor6<>(SB), x; \
	VFMADD213PS  taylor5<>(SB), r, x; \
	VFMADD213PS  taylor4<>(SB), r, x; \
	VFMADD213PS  taylor3<>(SB), r, x; \
	VFMADD213PS  taylor2<>(SB), r, x; \
	VFMADD213PS  one<>(SB), r, x; \
	VFMADD213PS  one<>(SB), r, x; \
	VCVTPS2DQ    n, n; \
	VPADDD       exponent<>(SB), n, n; \
	VPSLLD       $23, n, n; \
	VMULPS       n, x, x

// ACROSS combines the eight lanes of y, whose lower half is x, into all lanes of y.
#define ACROSS(op, x, y, tx, ty) \
	VEXTRACTF128 $1, y, tx; \
	op           tx, x, x; \
	VPERMILPS    $0x4e, x, tx; \
	op           tx, x, x; \
	VPERMILPS    $0xb1, x, tx; \
	op           tx, x, x; \
	VBROADCASTSS x, y

// func largestAVX2(x *float32, n int) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-20
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS magnitude<>(SB), Y2
	VXORPS  Y0, Y0, Y0

largest:
	VANDPS (SI), Y2, Y1
	VMAXPS Y1, Y0, Y0
	ADDQ   $32, SI
	SUBQ   $8, CX
	JNZ    largest
	ACROSS(VMAXPS, X0, Y0, X1, Y1)
	MOVSS  X0, ret+16(FP)
	VZEROUPPER
	RET

// func roundAVX2(out *byte, x *float32, n int, inverse float32)
//
// The rounded numbers are within the range of a byte, so that nothing saturates.
TEXT ·roundAVX2(SB), NOSPLIT, $0-28
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS inverse+24(FP), Y2
	MOVL         $128, AX
	VMOVD        AX, X3
	VPBROADCASTB X3, X3

rounding:
	VMULPS       (SI), Y2, Y0
	VCVTPS2DQ    Y0, Y0
	VPACKSSDW    Y0, Y0, Y0
	VPERMQ       $0xd8, Y0, Y0
	VPACKSSWB    X0, X0, X0
	VPADDB       X3, X0, X0
	VMOVQ        X0, (DI)
	ADDQ         $32, SI
	ADDQ         $8, DI
	SUBQ         $8, CX
	JNZ          rounding
	VZEROUPPER
	RET

// SOFTMAX replaces the n numbers at SI by their softmax. The vectors v0 to v4 have the given
// numbers of bytes and lanes, and x0, y0 and so on are their lower parts; all combines the lanes of
// a vector.
#define SOFTMAX(bytes, lanes, round, all, v0, v1, v2, v3, v4) \
	MOVQ    SI, DI; \
	MOVQ    CX, DX; \
	VMOVUPS (SI), v0; \
highest: \
	VMAXPS  (DI), v0, v0; \
	ADDQ    $bytes, DI; \
	SUBQ    $lanes, DX; \
	JNZ     highest; \
	all(VMAXPS, X0, Y0, v0); \
	VPXOR   X4, X4, X4; \
	MOVQ    SI, DI; \
	MOVQ    CX, DX; \
exponentials: \
	VMOVUPS (DI), v1; \
	VSUBPS  v0, v1, v1; \
	EXP(round, v1, v2, v3); \
	VMOVUPS v1, (DI); \
	VADDPS  v1, v4, v4; \
	ADDQ    $bytes, DI; \
	SUBQ    $lanes, DX; \
	JNZ     exponentials; \
	all(VADDPS, X4, Y4, v4); \
	VMOVUPS one<>(SB), v0; \
	VDIVPS  v4, v0, v0; \
shares: \
	VMULPS  (SI), v0, v1; \
	VMOVUPS v1, (SI); \
	ADDQ    $bytes, SI; \
	SUBQ    $lanes, CX; \
	JNZ     shares; \
	VZEROUPPER

#define ACROSS8(op, x, y, v) ACROSS(op, x, y, X1, Y1)

#define ACROSS16(op, x, y, v) \
	VEXTRACTF64X4 $1, v, Y1; \
	op            Y1, y, y; \
	ACROSS(op, x, y, X1, Y1); \
	VBROADCASTSS  x, v

// func softmaxAVX2(x *float32, n int)
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	SOFTMAX(32, 8, VROUNDPS, ACROSS8, Y0, Y1, Y2, Y3, Y4)
	RET

// func softmaxAVX512(x *float32, n int)
TEXT ·softmaxAVX512(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	SOFTMAX(64, 16, VRNDSCALEPS, ACROSS16, Z0, Z1, Z2, Z3, Z4)
	RET

// GELU replaces the n numbers at SI by x·Φ(x). With z = |x|/√2 and
// t = 1/(1 + p·z), the error function is 1 - (a1·t + a2·t² + … + a5·t⁵)·e^(-z²) to
// within 1.5e-7 (Abramowitz and Stegun, "Handbook of mathematical functions",
// 7.1.26), and x·Φ(x) is (x + |x|·erf z)/2.
#define GELU(bytes, lanes, round, and, v0, v1, v2, v3, v5, v6, v7, v8, v9) \
	VMOVUPS      one<>(SB), v9; \
	VPXOR        X8, X8, X8; \
gelu: \
	VMOVUPS      (SI), v0; \
	and          magnitude<>(SB), v0, v5; \
	VMULPS       root<>(SB), v5, v6; \
	VMOVUPS      erfP<>(SB), v7; \
	VFMADD213PS  v9, v6, v7; \
	VDIVPS       v7, v9, v7; \
	VMULPS       v6, v6, v1; \
	VSUBPS       v1, v8, v1; \
	EXP(round, v1, v2, v3); \
	VMOVUPS      erf5<>(SB), v2; \
	VFMADD213PS  erf4<>(SB), v7, v2; \
	VFMADD213PS  erf3<>(SB), v7, v2; \
	VFMADD213PS  erf2<>(SB), v7, v2; \
	VFMADD213PS  erf1<>(SB), v7, v2; \
	VMULPS       v7, v2, v2; \
	VFNMADD213PS v9, v1, v2; \
	VFMADD213PS  v0, v5, v2; \
	VMULPS       half<>(SB), v2, v2; \
	VMOVUPS      v2, (SI); \
	ADDQ         $bytes, SI; \
	SUBQ         $lanes, CX; \
	JNZ          gelu; \
	VZEROUPPER

// func geluAVX2(x *float32, n int)
TEXT ·geluAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	GELU(32, 8, VROUNDPS, VPAND, Y0, Y1, Y2, Y3, Y5, Y6, Y7, Y8, Y9)
	RET

// func geluAVX512(x *float32, n int)
TEXT ·geluAVX512(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	GELU(64, 16, VRNDSCALEPS, VPANDD, Z0, Z1, Z2, Z3, Z5, Z6, Z7, Z8, Z9)
	RET

// func normaliseAVX2(x, y, gain, shift *float32, n int, epsilon float32)
TEXT ·normaliseAVX2(SB), NOSPLIT, $0-44
	MOVQ      x+0(FP), SI
	MOVQ      y+8(FP), DX
	MOVQ      gain+16(FP), R8
	MOVQ      shift+24(FP), R9
	MOVQ      n+32(FP), CX
	VCVTSI2SSQ CX, X5, X5
	VBROADCASTSS X5, Y5
	SHLQ      $2, CX
	XORQ      AX, AX
	VXORPS    Y0, Y0, Y0

total:
	VMOVUPS (SI)(AX*1), Y1
	VADDPS  (DX)(AX*1), Y1, Y1
	VMOVUPS Y1, (SI)(AX*1)
	VADDPS  Y1, Y0, Y0
	ADDQ    $32, AX
	CMPQ    AX, CX
	JNE     total
	ACROSS(VADDPS, X0, Y0, X1, Y1)
	VDIVPS  Y5, Y0, Y0               // the mean
	VXORPS  Y2, Y2, Y2
	XORQ    AX, AX

squares:
	VMOVUPS     (SI)(AX*1), Y1
	VSUBPS      Y0, Y1, Y1
	VFMADD231PS Y1, Y1, Y2
	ADDQ        $32, AX
	CMPQ        AX, CX
	JNE         squares
	ACROSS(VADDPS, X2, Y2, X1, Y1)
	VDIVPS       Y5, Y2, Y2
	VBROADCASTSS epsilon+40(FP), Y1
	VADDPS       Y1, Y2, Y2
	VSQRTPS      Y2, Y2
	VMOVUPS      one<>(SB), Y1
	VDIVPS       Y2, Y1, Y2          // the inverse of the deviation
	XORQ         AX, AX

scaling:
	VMOVUPS     (SI)(AX*1), Y1
	VSUBPS      Y0, Y1, Y1
	VMULPS      Y2, Y1, Y1
	VMOVUPS     (R8)(AX*1), Y3
	VFMADD213PS (R9)(AX*1), Y3, Y1
	VMOVUPS     Y1, (SI)(AX*1)
	ADDQ        $32, AX
	CMPQ        AX, CX
	JNE         scaling
	VZEROUPPER
	RET
