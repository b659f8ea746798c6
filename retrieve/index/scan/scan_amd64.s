#include "textflag.h"

// Both kernels process four rows at once, so that each part of the query is read only once for the
// four, and keep a vector of sums for each row.

// SUM adds up the eight numbers in each of Y0, Y1, Y2 and Y3 and stores the
// four sums.
#define SUM \
	VPHADDD      Y1, Y0, Y0; \
	VPHADDD      Y3, Y2, Y2; \
	VPHADDD      Y2, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPADDD       X1, X0, X0; \
	VMOVDQU      X0, (DI); \
	ADDQ         $16, DI

// func dotsVNNI(out *int32, rows *byte, planes *int8, groups, stride int)
//
// VPDPBUSD multiplies 64 unsigned bytes with 64 signed bytes and adds each four products to a
// 32-bit sum, without saturation. The high and the low bytes of the query have separate sums.
TEXT ·dotsVNNI(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ planes+16(FP), DX
	MOVQ groups+24(FP), CX
	MOVQ stride+32(FP), BX
	LEAQ (BX)(BX*2), R8

vnniGroup:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7
	MOVQ   DX, R9
	MOVQ   BX, R10

vnniColumn:
	VMOVDQU8 (R9), Z8
	VMOVDQU8 64(R9), Z9
	VMOVDQU8 (SI), Z10
	VMOVDQU8 (SI)(BX*1), Z11
	VMOVDQU8 (SI)(BX*2), Z12
	VMOVDQU8 (SI)(R8*1), Z13
	VPDPBUSD Z8, Z10, Z0
	VPDPBUSD Z8, Z11, Z1
	VPDPBUSD Z8, Z12, Z2
	VPDPBUSD Z8, Z13, Z3
	VPDPBUSD Z9, Z10, Z4
	VPDPBUSD Z9, Z11, Z5
	VPDPBUSD Z9, Z12, Z6
	VPDPBUSD Z9, Z13, Z7
	ADDQ     $64, SI
	ADDQ     $128, R9
	SUBQ     $64, R10
	JNZ      vnniColumn

	VPSLLD        $7, Z0, Z0
	VPSLLD        $7, Z1, Z1
	VPSLLD        $7, Z2, Z2
	VPSLLD        $7, Z3, Z3
	VPADDD        Z4, Z0, Z0
	VPADDD        Z5, Z1, Z1
	VPADDD        Z6, Z2, Z2
	VPADDD        Z7, Z3, Z3
	VEXTRACTI64X4 $1, Z0, Y4
	VEXTRACTI64X4 $1, Z1, Y5
	VEXTRACTI64X4 $1, Z2, Y6
	VEXTRACTI64X4 $1, Z3, Y7
	VPADDD        Y4, Y0, Y0
	VPADDD        Y5, Y1, Y1
	VPADDD        Y6, Y2, Y2
	VPADDD        Y7, Y3, Y3
	SUM
	ADDQ          R8, SI
	DECQ          CX
	JNZ           vnniGroup
	VZEROUPPER
	RET

// func dotsAVX2(out *int32, rows *byte, words *int16, groups, stride int)
//
// VPMADDWD multiplies 16-bit numbers and adds pairs of products. One factor is a byte, so the sums
// stay far within 32 bits.
TEXT ·dotsAVX2(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ words+16(FP), DX
	MOVQ groups+24(FP), CX
	MOVQ stride+32(FP), BX
	LEAQ (BX)(BX*2), R8

avx2Group:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	MOVQ  DX, R9
	MOVQ  BX, R10

avx2Column:
	VMOVDQU   (R9), Y8
	VMOVDQU   32(R9), Y9
	VPMOVZXBW (SI), Y10
	VPMOVZXBW (SI)(BX*1), Y11
	VPMOVZXBW (SI)(BX*2), Y12
	VPMOVZXBW (SI)(R8*1), Y13
	VPMADDWD  Y8, Y10, Y10
	VPMADDWD  Y8, Y11, Y11
	VPMADDWD  Y8, Y12, Y12
	VPMADDWD  Y8, Y13, Y13
	VPADDD    Y10, Y0, Y0
	VPADDD    Y11, Y1, Y1
	VPADDD    Y12, Y2, Y2
	VPADDD    Y13, Y3, Y3
	VPMOVZXBW 16(SI), Y10
	VPMOVZXBW 16(SI)(BX*1), Y11
	VPMOVZXBW 16(SI)(BX*2), Y12
	VPMOVZXBW 16(SI)(R8*1), Y13
	VPMADDWD  Y9, Y10, Y10
	VPMADDWD  Y9, Y11, Y11
	VPMADDWD  Y9, Y12, Y12
	VPMADDWD  Y9, Y13, Y13
	VPADDD    Y10, Y0, Y0
	VPADDD    Y11, Y1, Y1
	VPADDD    Y12, Y2, Y2
	VPADDD    Y13, Y3, Y3
	ADDQ      $32, SI
	ADDQ      $64, R9
	SUBQ      $32, R10
	JNZ       avx2Column

	SUM
	ADDQ R8, SI
	DECQ CX
	JNZ  avx2Group
	VZEROUPPER
	RET

// ESTIMATE adds the estimate of 32 bytes of signs at row to the eight sums in acc: for each plane,
// in Y8 to Y11, the number of bits that both have, times the plane's weight, in Y12 to Y15.
#define ESTIMATE(row, acc) \
	VMOVDQU  row, Y4; \
	VPAND    Y8, Y4, Y5; \
	VPAND    Y9, Y4, Y6; \
	VPAND    Y10, Y4, Y7; \
	VPAND    Y11, Y4, Y4; \
	VPOPCNTB Y5, Y5; \
	VPOPCNTB Y6, Y6; \
	VPOPCNTB Y7, Y7; \
	VPOPCNTB Y4, Y4; \
	VPDPBUSD Y12, Y5, acc; \
	VPDPBUSD Y13, Y6, acc; \
	VPDPBUSD Y14, Y7, acc; \
	VPDPBUSD Y15, Y4, acc

// BROADCAST fills a register with four bytes.
#define BROADCAST(bytes, x, y) \
	MOVL         bytes, AX; \
	VMOVD        AX, x; \
	VPBROADCASTD x, y

// func estimatesBITALG(out *int32, rows, planes *byte, groups, stride int)
TEXT ·estimatesBITALG(SB), NOSPLIT, $0-40
	MOVQ out+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ planes+16(FP), DX
	MOVQ groups+24(FP), CX
	MOVQ stride+32(FP), BX
	LEAQ (BX)(BX*2), R8
	BROADCAST($0x01010101, X12, Y12)
	BROADCAST($0x02020202, X13, Y13)
	BROADCAST($0x04040404, X14, Y14)
	BROADCAST($0xF8F8F8F8, X15, Y15)

bitsGroup:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	MOVQ  DX, R9
	MOVQ  BX, R10

bitsColumn:
	VMOVDQU (R9), Y8
	VMOVDQU 32(R9), Y9
	VMOVDQU 64(R9), Y10
	VMOVDQU 96(R9), Y11
	ESTIMATE((SI), Y0)
	ESTIMATE((SI)(BX*1), Y1)
	ESTIMATE((SI)(BX*2), Y2)
	ESTIMATE((SI)(R8*1), Y3)
	ADDQ    $32, SI
	ADDQ    $128, R9
	SUBQ    $32, R10
	JNZ     bitsColumn

	SUM
	ADDQ R8, SI
	DECQ CX
	JNZ  bitsGroup
	VZEROUPPER
	RET
