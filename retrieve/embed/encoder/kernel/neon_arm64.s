#include "textflag.h"

// Instructions that Go's assembler has no names for, with the numbers of vector registers. The
// encodings are from the Arm Architecture Reference Manual, C7.2.

// SDOT adds the products of four bytes in n with the four bytes of the given lane of m to each of
// the four sums in d.
#define SDOT(m, lane, n, d) WORD $(0x4F80E000 | (lane&1)<<21 | (lane>>1)<<11 | m<<16 | n<<5 | d)

// FMLA adds the product of n and the first lane of m to d; FMUL sets d to the product.
#define FMLA(m, n, d) WORD $(0x4F801000 | m<<16 | n<<5 | d)
#define FMUL(m, n, d) WORD $(0x4F809000 | m<<16 | n<<5 | d)

// Whole vectors: FMLAV adds the product of n and m to d.
#define FMLAV(m, n, d) WORD $(0x4E20CC00 | m<<16 | n<<5 | d)
#define SCVTF(n, d) WORD $(0x4E21D800 | n<<5 | d)  // integers to float32
#define FCVTNS(n, d) WORD $(0x4E21A800 | n<<5 | d) // float32 to the nearest integers
#define FABS(n, d) WORD $(0x4EA0F800 | n<<5 | d)
#define FMAX(m, n, d) WORD $(0x4E20F400 | m<<16 | n<<5 | d)
#define FMAXV(n, d) WORD $(0x6E30F800 | n<<5 | d)   // of the four lanes
#define SQXTNS(n, d) WORD $(0x0E614800 | n<<5 | d)  // 32 to 16 bits, lower half
#define SQXTNS2(n, d) WORD $(0x4E614800 | n<<5 | d) // upper half
#define SQXTNH(n, d) WORD $(0x0E214800 | n<<5 | d)  // 16 to 8 bits

// COLUMNS adds the products of the four bytes in the given lane of 3 rows, in V24 to V26, with four
// bytes of each of 16 columns.
#define COLUMNS(lane, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3) \
	VLD1.P 64(R9), [V27.B16, V28.B16, V29.B16, V30.B16]; \
	SDOT(24, lane, 27, a0); \
	SDOT(24, lane, 28, a1); \
	SDOT(24, lane, 29, a2); \
	SDOT(24, lane, 30, a3); \
	SDOT(25, lane, 27, b0); \
	SDOT(25, lane, 28, b1); \
	SDOT(25, lane, 29, b2); \
	SDOT(25, lane, 30, b3); \
	SDOT(26, lane, 27, c0); \
	SDOT(26, lane, 28, c1); \
	SDOT(26, lane, 29, c2); \
	SDOT(26, lane, 30, c3)

// QUAD does the same for 32 columns, and skips the other half of the panel.
#define QUAD(lane) \
	COLUMNS(lane, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19); \
	COLUMNS(lane, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23); \
	ADD $128, R9

// OUT8 stores 8 columns of a product: sum·(scale of the row, in V31 · scale of the
// column) + bias.
#define OUT8(sum0, sum1) \
	VLD1.P 32(R11), [V27.S4, V28.S4]; \
	VLD1.P 32(R12), [V29.S4, V30.S4]; \
	FMUL(31, 27, 27); \
	FMUL(31, 28, 28); \
	SCVTF(sum0, sum0); \
	SCVTF(sum1, sum1); \
	FMLAV(27, sum0, 29); \
	FMLAV(28, sum1, 30); \
	VST1.P [V29.S4, V30.S4], 32(R13)

// OUTROW stores a row.
#define OUTROW(c0, c1, c2, c3, c4, c5, c6, c7) \
	FMOVS  (R3), F31; \
	ADD    $4, R3; \
	MOVD   R7, R11; \
	MOVD   R8, R12; \
	MOVD   R0, R13; \
	OUT8(c0, c1); \
	OUT8(c2, c3); \
	OUT8(c4, c5); \
	OUT8(c6, c7); \
	ADD    R1, R0

// CLEAR8 sets 8 vectors to 0.
#define CLEAR8(v0, v1, v2, v3, v4, v5, v6, v7) \
	VEOR v0.B16, v0.B16, v0.B16; \
	VEOR v1.B16, v1.B16, v1.B16; \
	VEOR v2.B16, v2.B16, v2.B16; \
	VEOR v3.B16, v3.B16, v3.B16; \
	VEOR v4.B16, v4.B16, v4.B16; \
	VEOR v5.B16, v5.B16, v5.B16; \
	VEOR v6.B16, v6.B16, v6.B16; \
	VEOR v7.B16, v7.B16, v7.B16

#define CLEAR24 \
	CLEAR8(V0, V1, V2, V3, V4, V5, V6, V7); \
	CLEAR8(V8, V9, V10, V11, V12, V13, V14, V15); \
	CLEAR8(V16, V17, V18, V19, V20, V21, V22, V23)

// func multiplyNEON(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, columns, bias *float32)
//
// 24 vectors of sums, for 3 rows and 32 columns, stay in registers.
TEXT ·multiplyNEON(SB), NOSPLIT, $0-72
	MOVD out+0(FP), R0
	MOVD stride+8(FP), R1
	MOVD a+16(FP), R2
	MOVD rows+24(FP), R3
	MOVD k+32(FP), R4
	MOVD blocks+40(FP), R5
	MOVD w+48(FP), R6
	MOVD columns+56(FP), R7
	MOVD bias+64(FP), R8
	LSL  $2, R1

block:
	ADD  R4, R2, R14
	ADD  R4, R14, R15
	MOVD R4, R10
	MOVD R6, R9
	CLEAR24

inner:
	VLD1.P 16(R2), [V24.B16]
	VLD1.P 16(R14), [V25.B16]
	VLD1.P 16(R15), [V26.B16]
	QUAD(0)
	QUAD(1)
	QUAD(2)
	QUAD(3)
	SUBS   $16, R10
	BNE    inner

	OUTROW(0, 1, 2, 3, 4, 5, 6, 7)
	OUTROW(8, 9, 10, 11, 12, 13, 14, 15)
	OUTROW(16, 17, 18, 19, 20, 21, 22, 23)
	MOVD R15, R2
	SUBS $1, R5
	BNE  block
	RET

// PRODUCT adds the products of a number of 3 rows, in V24 to V26, with 16 columns.
#define PRODUCT(a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3) \
	VLD1.P 64(R9), [V27.S4, V28.S4, V29.S4, V30.S4]; \
	FMLA(24, 27, a0); \
	FMLA(24, 28, a1); \
	FMLA(24, 29, a2); \
	FMLA(24, 30, a3); \
	FMLA(25, 27, b0); \
	FMLA(25, 28, b1); \
	FMLA(25, 29, b2); \
	FMLA(25, 30, b3); \
	FMLA(26, 27, c0); \
	FMLA(26, 28, c1); \
	FMLA(26, 29, c2); \
	FMLA(26, 30, c3)

// func productNEON(c *float32, cs int, a *float32, as int, b *float32, bs, k int)
TEXT ·productNEON(SB), NOSPLIT, $0-56
	MOVD c+0(FP), R0
	MOVD cs+8(FP), R1
	MOVD a+16(FP), R2
	MOVD as+24(FP), R3
	MOVD b+32(FP), R4
	MOVD bs+40(FP), R5
	MOVD k+48(FP), R6
	LSL  $2, R1
	LSL  $2, R3
	LSL  $2, R5
	ADD  R3, R2, R14
	ADD  R3, R14, R15
	CLEAR24

step:
	FMOVS.P 4(R2), F24
	FMOVS.P 4(R14), F25
	FMOVS.P 4(R15), F26
	MOVD    R4, R9
	ADD     R5, R4
	PRODUCT(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19)
	PRODUCT(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23)
	SUBS    $1, R6
	BNE     step

	MOVD   R0, R9
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R9)
	VST1   [V4.S4, V5.S4, V6.S4, V7.S4], (R9)
	ADD    R1, R0
	MOVD   R0, R9
	VST1.P [V8.S4, V9.S4, V10.S4, V11.S4], 64(R9)
	VST1   [V12.S4, V13.S4, V14.S4, V15.S4], (R9)
	ADD    R1, R0
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1   [V20.S4, V21.S4, V22.S4, V23.S4], (R0)
	RET

// func largestNEON(x *float32, n int) float32
TEXT ·largestNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R1
	VEOR V0.B16, V0.B16, V0.B16

largest:
	VLD1.P 32(R0), [V1.S4, V2.S4]
	FABS(1, 1)
	FABS(2, 2)
	FMAX(1, 0, 0)
	FMAX(2, 0, 0)
	SUBS   $8, R1
	BNE    largest
	FMAXV(0, 0)
	FMOVS  F0, ret+16(FP)
	RET

// func roundNEON(out *byte, x *float32, n int, inverse float32)
TEXT ·roundNEON(SB), NOSPLIT, $0-28
	MOVD  out+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  n+16(FP), R2
	FMOVS inverse+24(FP), F3

rounding:
	VLD1.P 32(R1), [V1.S4, V2.S4]
	FMUL(3, 1, 1)
	FMUL(3, 2, 2)
	FCVTNS(1, 1)
	FCVTNS(2, 2)
	SQXTNS(1, 0)
	SQXTNS2(2, 0)
	SQXTNH(0, 0)
	VST1.P [V0.B8], 8(R0)
	SUBS   $8, R2
	BNE    rounding
	RET
