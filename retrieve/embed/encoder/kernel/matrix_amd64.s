#include "textflag.h"

// VNNIROW multiplies four bytes of a row, in every lane of Z28, with four bytes of each of 64
// columns, in Z24 to Z27.
#define VNNIROW(bytes, c0, c1, c2, c3) \
	VPBROADCASTD bytes, Z28; \
	VPDPBUSD     Z24, Z28, c0; \
	VPDPBUSD     Z25, Z28, c1; \
	VPDPBUSD     Z26, Z28, c2; \
	VPDPBUSD     Z27, Z28, c3

// VNNIOUT stores a row of the product: sum·(scale of the row · scale of the
// column) + bias.
#define VNNIOUT(scale, c0, c1, c2, c3) \
	VBROADCASTSS scale, Z28; \
	VCVTDQ2PS    c0, c0; \
	VCVTDQ2PS    c1, c1; \
	VCVTDQ2PS    c2, c2; \
	VCVTDQ2PS    c3, c3; \
	VMULPS       Z24, Z28, Z29; \
	VMULPS       Z25, Z28, Z30; \
	VMULPS       Z26, Z28, Z31; \
	VMULPS       Z27, Z28, Z28; \
	VFMADD213PS  (R12), Z29, c0; \
	VFMADD213PS  64(R12), Z30, c1; \
	VFMADD213PS  128(R12), Z31, c2; \
	VFMADD213PS  192(R12), Z28, c3; \
	VMOVUPS      c0, (DI); \
	VMOVUPS      c1, 64(DI); \
	VMOVUPS      c2, 128(DI); \
	VMOVUPS      c3, 192(DI); \
	ADDQ         R8, DI

// func multiplyVNNI(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, start *int32, columns, bias *float32)
//
// 24 vectors of sums, for 6 rows and 64 columns, stay in registers. The panel of
// weights stays in the first-level cache for all rows.
TEXT ·multiplyVNNI(SB), NOSPLIT, $0-80
	MOVQ out+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ rows+24(FP), R9
	MOVQ k+32(FP), BX
	MOVQ blocks+40(FP), CX
	MOVQ start+56(FP), R10
	MOVQ columns+64(FP), R11
	MOVQ bias+72(FP), R12
	SHLQ $2, R8

vnniBlock:
	MOVQ      w+48(FP), DX
	LEAQ      (BX)(BX*2), AX
	ADDQ      SI, AX             // the fourth row
	MOVQ      BX, R13
	VMOVDQU32 (R10), Z0
	VMOVDQU32 64(R10), Z1
	VMOVDQU32 128(R10), Z2
	VMOVDQU32 192(R10), Z3
	VMOVDQA32 Z0, Z4
	VMOVDQA32 Z1, Z5
	VMOVDQA32 Z2, Z6
	VMOVDQA32 Z3, Z7
	VMOVDQA32 Z0, Z8
	VMOVDQA32 Z1, Z9
	VMOVDQA32 Z2, Z10
	VMOVDQA32 Z3, Z11
	VMOVDQA32 Z0, Z12
	VMOVDQA32 Z1, Z13
	VMOVDQA32 Z2, Z14
	VMOVDQA32 Z3, Z15
	VMOVDQA32 Z0, Z16
	VMOVDQA32 Z1, Z17
	VMOVDQA32 Z2, Z18
	VMOVDQA32 Z3, Z19
	VMOVDQA32 Z0, Z20
	VMOVDQA32 Z1, Z21
	VMOVDQA32 Z2, Z22
	VMOVDQA32 Z3, Z23

vnniInner:
	VMOVDQU8 (DX), Z24
	VMOVDQU8 64(DX), Z25
	VMOVDQU8 128(DX), Z26
	VMOVDQU8 192(DX), Z27
	VNNIROW((SI), Z0, Z1, Z2, Z3)
	VNNIROW((SI)(BX*1), Z4, Z5, Z6, Z7)
	VNNIROW((SI)(BX*2), Z8, Z9, Z10, Z11)
	VNNIROW((AX), Z12, Z13, Z14, Z15)
	VNNIROW((AX)(BX*1), Z16, Z17, Z18, Z19)
	VNNIROW((AX)(BX*2), Z20, Z21, Z22, Z23)
	ADDQ     $256, DX
	ADDQ     $4, SI
	ADDQ     $4, AX
	SUBQ     $4, R13
	JNZ      vnniInner

	VMOVUPS (R11), Z24
	VMOVUPS 64(R11), Z25
	VMOVUPS 128(R11), Z26
	VMOVUPS 192(R11), Z27
	VNNIOUT((R9), Z0, Z1, Z2, Z3)
	VNNIOUT(4(R9), Z4, Z5, Z6, Z7)
	VNNIOUT(8(R9), Z8, Z9, Z10, Z11)
	VNNIOUT(12(R9), Z12, Z13, Z14, Z15)
	VNNIOUT(16(R9), Z16, Z17, Z18, Z19)
	VNNIOUT(20(R9), Z20, Z21, Z22, Z23)
	ADDQ $24, R9
	LEAQ (AX)(BX*2), SI
	DECQ CX
	JNZ  vnniBlock
	VZEROUPPER
	RET

// AVX2STEP adds the products of a row's four bytes with four bytes of each of 32 columns to the
// 16-bit sums in Y8 to Y11. VPMADDUBSW multiplies unsigned with signed bytes and adds up pairs.
#define AVX2STEP(bytes, offset) \
	VPBROADCASTD bytes, Y12; \
	VPMADDUBSW   offset(DX), Y12, Y13; \
	VPADDW       Y13, Y8, Y8; \
	VPMADDUBSW   (offset+32)(DX), Y12, Y13; \
	VPADDW       Y13, Y9, Y9; \
	VPMADDUBSW   (offset+64)(DX), Y12, Y13; \
	VPADDW       Y13, Y10, Y10; \
	VPMADDUBSW   (offset+96)(DX), Y12, Y13; \
	VPADDW       Y13, Y11, Y11

#define AVX2WIDEN(sum, c) \
	VPMADDWD Y15, sum, sum; \
	VPADDD   sum, c, c

// AVX2ROW adds the products of 16 bytes of a row with 16 bytes of each of 32 columns to c0 … c3.
// The limit of Weights.Levels keeps the sums of four steps within 16 bits.
#define AVX2ROW(row, c0, c1, c2, c3) \
	VPBROADCASTD 0 row, Y12; \
	VPMADDUBSW   (DX), Y12, Y8; \
	VPMADDUBSW   32(DX), Y12, Y9; \
	VPMADDUBSW   64(DX), Y12, Y10; \
	VPMADDUBSW   96(DX), Y12, Y11; \
	AVX2STEP(4 row, 256); \
	AVX2STEP(8 row, 512); \
	AVX2STEP(12 row, 768); \
	AVX2WIDEN(Y8, c0); \
	AVX2WIDEN(Y9, c1); \
	AVX2WIDEN(Y10, c2); \
	AVX2WIDEN(Y11, c3)

#define AVX2STORE(offset, c) \
	VCVTDQ2PS   c, c; \
	VMULPS      offset(R11), Y12, Y13; \
	VFMADD213PS offset(R12), Y13, c; \
	VMOVUPS     c, offset(DI)

#define AVX2OUT(scale, c0, c1, c2, c3) \
	VBROADCASTSS scale, Y12; \
	AVX2STORE(0, c0); \
	AVX2STORE(32, c1); \
	AVX2STORE(64, c2); \
	AVX2STORE(96, c3); \
	ADDQ         R8, DI

// func multiplyAVX2(out *float32, stride int, a *byte, rows *float32, k, blocks int, w *int8, start *int32, columns, bias *float32)
TEXT ·multiplyAVX2(SB), NOSPLIT, $0-80
	MOVQ     out+0(FP), DI
	MOVQ     stride+8(FP), R8
	MOVQ     a+16(FP), SI
	MOVQ     rows+24(FP), R9
	MOVQ     k+32(FP), BX
	MOVQ     blocks+40(FP), CX
	MOVQ     start+56(FP), R10
	MOVQ     columns+64(FP), R11
	MOVQ     bias+72(FP), R12
	SHLQ     $2, R8
	VPCMPEQW Y15, Y15, Y15
	VPSRLW   $15, Y15, Y15 // ones

avx2Block:
	MOVQ    w+48(FP), DX
	MOVQ    BX, R13
	VMOVDQU (R10), Y0
	VMOVDQU 32(R10), Y1
	VMOVDQU 64(R10), Y2
	VMOVDQU 96(R10), Y3
	VMOVDQA Y0, Y4
	VMOVDQA Y1, Y5
	VMOVDQA Y2, Y6
	VMOVDQA Y3, Y7

avx2Inner:
	AVX2ROW((SI), Y0, Y1, Y2, Y3)
	AVX2ROW((SI)(BX*1), Y4, Y5, Y6, Y7)
	ADDQ $1024, DX
	ADDQ $16, SI
	SUBQ $16, R13
	JNZ  avx2Inner

	AVX2OUT((R9), Y0, Y1, Y2, Y3)
	AVX2OUT(4(R9), Y4, Y5, Y6, Y7)
	ADDQ $8, R9
	ADDQ BX, SI
	DECQ CX
	JNZ  avx2Block
	VZEROUPPER
	RET

#define FMAROW(x, broadcast, b0, b1, c0, c1) \
	VBROADCASTSS x, broadcast; \
	VFMADD231PS  b0, broadcast, c0; \
	VFMADD231PS  b1, broadcast, c1

#define FMAROWS(broadcast, b0, b1, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11) \
	FMAROW((SI), broadcast, b0, b1, c0, c1); \
	FMAROW((SI)(BX*1), broadcast, b0, b1, c2, c3); \
	FMAROW((SI)(BX*2), broadcast, b0, b1, c4, c5); \
	FMAROW((AX), broadcast, b0, b1, c6, c7); \
	FMAROW((AX)(BX*1), broadcast, b0, b1, c8, c9); \
	FMAROW((AX)(BX*2), broadcast, b0, b1, c10, c11); \
	ADDQ R9, DX; \
	ADDQ $4, SI; \
	ADDQ $4, AX; \
	DECQ CX

#define STOREROW(width, c0, c1) \
	VMOVUPS c0, (DI); \
	VMOVUPS c1, width(DI); \
	ADDQ    R8, DI

// func productAVX512(c *float32, cs int, a *float32, as int, b *float32, bs, k int)
TEXT ·productAVX512(SB), NOSPLIT, $0-56
	MOVQ c+0(FP), DI
	MOVQ cs+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ as+24(FP), BX
	MOVQ b+32(FP), DX
	MOVQ bs+40(FP), R9
	MOVQ k+48(FP), CX
	SHLQ $2, R8
	SHLQ $2, BX
	SHLQ $2, R9
	LEAQ (BX)(BX*2), AX
	ADDQ SI, AX // the fourth row
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	VPXORD Z8, Z8, Z8
	VPXORD Z9, Z9, Z9
	VPXORD Z10, Z10, Z10
	VPXORD Z11, Z11, Z11

product512:
	VMOVUPS (DX), Z12
	VMOVUPS 64(DX), Z13
	FMAROWS(Z14, Z12, Z13, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11)
	JNZ     product512
	STOREROW(64, Z0, Z1)
	STOREROW(64, Z2, Z3)
	STOREROW(64, Z4, Z5)
	STOREROW(64, Z6, Z7)
	STOREROW(64, Z8, Z9)
	STOREROW(64, Z10, Z11)
	VZEROUPPER
	RET

// func productAVX2(c *float32, cs int, a *float32, as int, b *float32, bs, k int)
TEXT ·productAVX2(SB), NOSPLIT, $0-56
	MOVQ c+0(FP), DI
	MOVQ cs+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ as+24(FP), BX
	MOVQ b+32(FP), DX
	MOVQ bs+40(FP), R9
	MOVQ k+48(FP), CX
	SHLQ $2, R8
	SHLQ $2, BX
	SHLQ $2, R9
	LEAQ (BX)(BX*2), AX
	ADDQ SI, AX // the fourth row
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11

product256:
	VMOVUPS (DX), Y12
	VMOVUPS 32(DX), Y13
	FMAROWS(Y14, Y12, Y13, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)
	JNZ     product256
	STOREROW(32, Y0, Y1)
	STOREROW(32, Y2, Y3)
	STOREROW(32, Y4, Y5)
	STOREROW(32, Y6, Y7)
	STOREROW(32, Y8, Y9)
	STOREROW(32, Y10, Y11)
	VZEROUPPER
	RET
