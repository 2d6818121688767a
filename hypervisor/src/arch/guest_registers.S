// SPDX-License-Identifier: MIT OR Apache-2.0
// Macros for the world switches of both vendors, each of which is assembled behind this file and removes the macros at
// its end. Offsets are those of the guest's general purpose registers by number.

// Loads R8 to R15 of a guest.
.macro load_upper_registers from
    .irp number, 8, 9, 10, 11, 12, 13, 14, 15
    mov r\number, [\from + \number * 8]
    .endr
.endm

// Saves them.
.macro save_upper_registers into
    .irp number, 8, 9, 10, 11, 12, 13, 14, 15
    mov [\into + \number * 8], r\number
    .endr
.endm
