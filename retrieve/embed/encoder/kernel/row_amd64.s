#include "textflag.h"

// Constants, each in all eight lanes.
#define CONST(name, value) \
	DATA name<>+0(SB)/4, value; \
	DATA name<>+4(SB)/4, value; \
	DATA name<>+8(SB)/4, value; \
	DATA name<>+12(SB)/4, value; \
	DATA name<>+16(SB)/4, value; \
	DATA name<>+20(SB)/4, value; \
	DATA name<>+24(SB)/4, value; \
	DATA name<>+28(SB)/4, value; \
	GLOBL name<>(SB), RODATA|NOPTR, $32

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
// an error of 2e-7. Numbers below -87 count as -87. It uses n and r.
#define EXP(x, n, r) \
	VMAXPS       lowest<>(SB), x, x; \
	VMULPS       log2e<>(SB), x, n; \
	VROUNDPS     $0, n, n; \
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

// func roundAVX2(out *byte, x *float32, n int, inverse float32, offset int32)
//
// The rounded numbers are within the range of a byte, so that nothing saturates.
TEXT ·roundAVX2(SB), NOSPLIT, $0-32
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS inverse+24(FP), Y2
	MOVL         offset+28(FP), AX
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

// func softmaxAVX2(x *float32, n int)
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-16
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	MOVQ    SI, DI
	MOVQ    CX, DX
	VMOVUPS (SI), Y0

highest:
	VMAXPS (DI), Y0, Y0
	ADDQ   $32, DI
	SUBQ   $8, DX
	JNZ    highest
	ACROSS(VMAXPS, X0, Y0, X1, Y1)
	VXORPS Y4, Y4, Y4
	MOVQ   SI, DI
	MOVQ   CX, DX

exponentials:
	VMOVUPS (DI), Y1
	VSUBPS  Y0, Y1, Y1
	EXP(Y1, Y2, Y3)
	VMOVUPS Y1, (DI)
	VADDPS  Y1, Y4, Y4
	ADDQ    $32, DI
	SUBQ    $8, DX
	JNZ     exponentials
	ACROSS(VADDPS, X4, Y4, X1, Y1)
	VMOVUPS one<>(SB), Y0
	VDIVPS  Y4, Y0, Y0

shares:
	VMULPS  (SI), Y0, Y1
	VMOVUPS Y1, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     shares
	VZEROUPPER
	RET

// func geluAVX2(x *float32, n int)
//
// With z = |x|/√2 and t = 1/(1 + p·z), the error function is
// 1 - (a1·t + a2·t² + … + a5·t⁵)·e^(-z²) to within 1.5e-7 (Abramowitz and Stegun,
// "Handbook of mathematical functions", 7.1.26), and x·Φ(x) is (x + |x|·erf z)/2.
TEXT ·geluAVX2(SB), NOSPLIT, $0-16
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS one<>(SB), Y9

gelu:
	VMOVUPS      (SI), Y0
	VANDPS       magnitude<>(SB), Y0, Y5  // |x|
	VMULPS       root<>(SB), Y5, Y6       // z
	VMOVUPS      erfP<>(SB), Y7
	VFMADD213PS  Y9, Y6, Y7
	VDIVPS       Y7, Y9, Y7               // t
	VMULPS       Y6, Y6, Y1
	VXORPS       Y8, Y8, Y8
	VSUBPS       Y1, Y8, Y1
	EXP(Y1, Y2, Y3)
	VMOVUPS      erf5<>(SB), Y2
	VFMADD213PS  erf4<>(SB), Y7, Y2
	VFMADD213PS  erf3<>(SB), Y7, Y2
	VFMADD213PS  erf2<>(SB), Y7, Y2
	VFMADD213PS  erf1<>(SB), Y7, Y2
	VMULPS       Y7, Y2, Y2
	VFNMADD213PS Y9, Y1, Y2               // erf z
	VFMADD213PS  Y0, Y5, Y2
	VMULPS       half<>(SB), Y2, Y2
	VMOVUPS      Y2, (SI)
	ADDQ         $32, SI
	SUBQ         $8, CX
	JNZ          gelu
	VZEROUPPER
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
