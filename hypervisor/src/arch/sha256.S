// SPDX-License-Identifier: MIT OR Apache-2.0
// SHA-256's rounds by the CPU's own instructions. Sources: FIPS 180-4, section 6.2.2; AMD APM vol. 4
// (SHA256RNDS2, SHA256MSG1, SHA256MSG2). RDI = the state, eight words; RSI = blocks; RDX = how many, at least one.
//
// XMM registers are a guest's: those that are used are kept on the stack meanwhile. None but their lower halves change,
// and neither does MXCSR.

.section .rodata
.balign 16
sha256_constants:
    .long 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5
    .long 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174
    .long 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da
    .long 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967
    .long 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85
    .long 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070
    .long 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3
    .long 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
sha256_byte_order:
    .quad 0x0405060700010203, 0x0c0d0e0f08090a0b

// Four rounds with the message words in \words and constant \group.
.macro sha256_rounds group, words
    movdqa xmm0, \words
    paddd xmm0, [rax + 16 * \group]
    sha256rnds2 xmm2, xmm1
    pshufd xmm0, xmm0, 0x0e
    sha256rnds2 xmm1, xmm2
.endm

// The same with new message words, which replace the oldest: \w0, \w1, \w2, \w3 are the last sixteen, oldest first.
.macro sha256_next group, w0, w1, w2, w3
    movdqa xmm7, \w3
    palignr xmm7, \w2, 4
    sha256msg1 \w0, \w1
    paddd \w0, xmm7
    sha256msg2 \w0, \w3
    sha256_rounds \group, \w0
.endm

.section .text
.code64
.global sha256_by_instructions
sha256_by_instructions:
    push rbp
    mov rbp, rsp
    sub rsp, 176
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    movups [rsp + 16 * \number], xmm\number
    .endr
    lea rax, [rip + sha256_constants]

    // The instructions want the words as A, B, E, F in one register (XMM1) and C, D, G, H in the other (XMM2), from the
    // top.
    movups xmm1, [rdi]
    movups xmm2, [rdi + 16]
    pshufd xmm1, xmm1, 0xb1
    pshufd xmm2, xmm2, 0x1b
    movdqa xmm7, xmm1
    palignr xmm1, xmm2, 8
    pblendw xmm2, xmm7, 0xf0
    movdqa xmm8, [rip + sha256_byte_order]

1:  movdqa xmm9, xmm1
    movdqa xmm10, xmm2
    .irp number, 3, 4, 5, 6
    movups xmm\number, [rsi + 16 * (\number - 3)]
    pshufb xmm\number, xmm8
    sha256_rounds (\number - 3), xmm\number
    .endr
    .irp group, 4, 8, 12
    sha256_next \group, xmm3, xmm4, xmm5, xmm6
    sha256_next (\group + 1), xmm4, xmm5, xmm6, xmm3
    sha256_next (\group + 2), xmm5, xmm6, xmm3, xmm4
    sha256_next (\group + 3), xmm6, xmm3, xmm4, xmm5
    .endr
    paddd xmm1, xmm9
    paddd xmm2, xmm10
    add rsi, 64
    dec rdx
    jnz 1b

    pshufd xmm1, xmm1, 0x1b
    pshufd xmm2, xmm2, 0xb1
    movdqa xmm7, xmm1
    pblendw xmm1, xmm2, 0xf0
    palignr xmm2, xmm7, 8
    movups [rdi], xmm1
    movups [rdi + 16], xmm2
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    movups xmm\number, [rsp + 16 * \number]
    .endr
    leave
    ret
