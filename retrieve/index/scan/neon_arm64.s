#include "textflag.h"

// Instructions that Go's assembler has no names for, with the numbers of vector
// registers (Arm Architecture Reference Manual, C7.2): SDOT adds the products of four
// bytes in n and m to each of the four sums in d; ADDV adds up four sums.
#define SDOT(m, n, d) WORD $(0x4E809400 | m<<16 | n<<5 | d)
#define ADDV(n, d) WORD $(0x4EB1B800 | n<<5 | d)

// ROW adds the products of 64 bytes of a row with the bytes of the planes, in V16 to V23, to the
// sums high and low. Subtracting 128, which flips a bit, makes the bytes signed.
#define ROW(row, high, low) \
	VLD1.P 64(row), [V24.B16, V25.B16, V26.B16, V27.B16]; \
	VEOR   V28.B16, V24.B16, V24.B16; \
	VEOR   V28.B16, V25.B16, V25.B16; \
	VEOR   V28.B16, V26.B16, V26.B16; \
	VEOR   V28.B16, V27.B16, V27.B16; \
	SDOT(16, 24, high); \
	SDOT(20, 24, low); \
	SDOT(17, 25, high); \
	SDOT(21, 25, low); \
	SDOT(18, 26, high); \
	SDOT(22, 26, low); \
	SDOT(19, 27, high); \
	SDOT(23, 27, low)

// STORE stores 128 times the sum of high, plus the sum of low, plus the offset in R6.
#define STORE(v, high, low, w) \
	ADDV(high, high); \
	ADDV(low, low); \
	FMOVS v, R7; \
	FMOVS w, R8; \
	ADD   R7<<7, R8, R8; \
	ADD   R6, R8, R8; \
	MOVW.P R8, 4(R0)

// func dotsNEON(out *int32, rows *byte, planes *int8, groups, stride int, offset int32)
TEXT ·dotsNEON(SB), NOSPLIT, $0-44
	MOVD  out+0(FP), R0
	MOVD  rows+8(FP), R1
	MOVD  planes+16(FP), R2
	MOVD  groups+24(FP), R3
	MOVD  stride+32(FP), R4
	MOVW  offset+40(FP), R6
	VMOVI $128, V28.B16

group:
	ADD  R4, R1, R9
	ADD  R4, R9, R10
	ADD  R4, R10, R11
	MOVD R2, R12
	MOVD R4, R5
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16

lane:
	VLD1.P 64(R12), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R12), [V20.B16, V21.B16, V22.B16, V23.B16]
	ROW(R1, 0, 1)
	ROW(R9, 2, 3)
	ROW(R10, 4, 5)
	ROW(R11, 6, 7)
	SUBS   $64, R5
	BNE    lane

	STORE(F0, 0, 1, F1)
	STORE(F2, 2, 3, F3)
	STORE(F4, 4, 5, F5)
	STORE(F6, 6, 7, F7)
	MOVD R11, R1
	SUBS $1, R3
	BNE  group
	RET
