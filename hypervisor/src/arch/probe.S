// SPDX-License-Identifier: MIT OR Apache-2.0
// MSR accesses that may be refused. #GP at one of the two instructions named *_at goes on at probe_refused (trap.rs
// asks probe.rs); neither has changed the stack by then. In: EDI = the register; RSI = the value, or where it goes.
// Out: EAX = 0, or 1 if refused.

.section .text
.global probe_read
probe_read:
    mov ecx, edi
.global probe_read_at
probe_read_at:
    rdmsr
    mov [rsi], eax
    mov [rsi + 4], edx
    xor eax, eax
    ret

.global probe_write
probe_write:
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
.global probe_write_at
probe_write_at:
    wrmsr
    xor eax, eax
    ret

.global probe_refused
probe_refused:
    mov eax, 1
    ret
