// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core file around the memory: header, program headers, notes (System V ABI, chapters 4 and 5; the notes' contents
//! as Linux's `elf_prstatus` and as QEMU's dump-guest-memory have them, which is what gdb and crash read).

use std::io;
use std::os::unix::fs::FileExt as _;

use wire::{DescriptorTable, SegmentRegister, VcpuRegisters};

use super::image::Image;
use super::mappings::{MOST_RUNS, Run};

const HEADER_BYTES: u64 = 64;
const PROGRAM_HEADER_BYTES: u64 = 56;
/// Pieces of a guest's memory at most: below and above the hole for devices, with room for more.
const MOST_PIECES: u64 = 16;
const PAGE_BYTES: u64 = 4096;

const ET_CORE: u16 = 4;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const READ_WRITE_EXECUTE: u32 = 7;

const NT_PRSTATUS: u32 = 1;
const PRSTATUS_BYTES: usize = 336;
const PRSTATUS_PID: usize = 32;
const PRSTATUS_REGISTERS: usize = 112;
/// QEMU's note: version 1, its length.
const QEMU_STATE_VERSION: u32 = 1;
const QEMU_STATE_BYTES: usize = 440;

/// Returns where the memory begins in the file: behind all headers that there may be.
pub fn data_offset(vcpus: usize) -> u64 {
    (notes_offset() + (vcpus * note_bytes()) as u64).next_multiple_of(PAGE_BYTES)
}

fn notes_offset() -> u64 {
    HEADER_BYTES + PROGRAM_HEADER_BYTES * (1 + MOST_PIECES + MOST_RUNS as u64)
}

/// The bytes of one CPU's notes: two with their heads and names.
fn note_bytes() -> usize {
    2 * (12 + 8) + PRSTATUS_BYTES + QEMU_STATE_BYTES
}

/// Writes the file's headers and notes.
pub fn write(image: &Image, registers: &[VcpuRegisters], runs: &[Run]) -> io::Result<()> {
    let mut headers = Vec::new();
    let notes: Vec<u8> = registers.iter().enumerate().flat_map(|(vcpu, registers)| notes(vcpu, registers)).collect();
    let mut count = 1;
    program_header(&mut headers, PT_NOTE, 0, notes_offset(), (0, 0), notes.len() as u64);
    for run in runs {
        let Some(offset) = image.offset_of(run.gpa, run.bytes) else { continue };
        program_header(&mut headers, PT_LOAD, READ_WRITE_EXECUTE, offset, (run.linear, run.gpa), run.bytes);
        count += 1;
    }
    // Debuggers take the first that fits: a linear address is a physical one only where nothing is mapped.
    for piece in image.pieces.iter().take(MOST_PIECES as usize) {
        program_header(&mut headers, PT_LOAD, READ_WRITE_EXECUTE, piece.offset, (piece.gpa, piece.gpa), piece.bytes);
        count += 1;
    }
    image.file.write_all_at(&file_header(count), 0)?;
    image.file.write_all_at(&headers, HEADER_BYTES)?;
    image.file.write_all_at(&notes, notes_offset())
}

fn file_header(program_headers: u16) -> Vec<u8> {
    // 64-bit, little endian, version 1, System V.
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(ET_CORE.to_le_bytes());
    header.extend(EM_X86_64.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(HEADER_BYTES.to_le_bytes());
    header.extend(0_u64.to_le_bytes());
    header.extend(0_u32.to_le_bytes());
    for half in [HEADER_BYTES as u16, PROGRAM_HEADER_BYTES as u16, program_headers, 0, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    header
}

fn program_header(into: &mut Vec<u8>, kind: u32, flags: u32, offset: u64, (linear, gpa): (u64, u64), bytes: u64) {
    into.extend(kind.to_le_bytes());
    into.extend(flags.to_le_bytes());
    for word in [offset, linear, gpa, bytes, bytes, 0] {
        into.extend(word.to_le_bytes());
    }
}

fn notes(vcpu: usize, registers: &VcpuRegisters) -> Vec<u8> {
    let mut notes = Vec::new();
    note(&mut notes, b"CORE\0\0\0\0", NT_PRSTATUS, &status(vcpu, registers));
    note(&mut notes, b"QEMU\0\0\0\0", 0, &qemu_state(registers));
    notes
}

/// `name` with its zero, padded to eight bytes.
fn note(into: &mut Vec<u8>, name: &[u8; 8], kind: u32, content: &[u8]) {
    for word in [5, content.len() as u32, kind] {
        into.extend(word.to_le_bytes());
    }
    into.extend(name);
    into.extend(content);
}

/// `elf_prstatus`: a CPU is a thread; its number counts from 1.
fn status(vcpu: usize, registers: &VcpuRegisters) -> Vec<u8> {
    let mut status = vec![0; PRSTATUS_BYTES];
    status[PRSTATUS_PID..][..4].copy_from_slice(&(vcpu as u32 + 1).to_le_bytes());
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] = registers.gprs;
    let [es, cs, ss, ds, fs, gs, ..] = registers.segments;
    let selector = |segment: SegmentRegister| u64::from(segment.selector);
    let no_system_call = u64::MAX;
    let words = [
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        no_system_call,
        registers.rip,
        selector(cs),
        registers.rflags,
        rsp,
        selector(ss),
        fs.base,
        gs.base,
        selector(ds),
        selector(es),
        selector(fs),
        selector(gs),
    ];
    for (at, word) in status[PRSTATUS_REGISTERS..].chunks_exact_mut(8).zip(words) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    status
}

/// Returns the registers that a kernel debugger needs beside the general ones: segments, tables, control registers.
fn qemu_state(registers: &VcpuRegisters) -> Vec<u8> {
    let mut state = Vec::with_capacity(QEMU_STATE_BYTES);
    state.extend(QEMU_STATE_VERSION.to_le_bytes());
    state.extend((QEMU_STATE_BYTES as u32).to_le_bytes());
    let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, high @ ..] = registers.gprs;
    let words = [rax, rbx, rcx, rdx, rsi, rdi, rsp, rbp].into_iter().chain(high);
    words.chain([registers.rip, registers.rflags]).for_each(|word| state.extend(word.to_le_bytes()));
    let [es, cs, ss, ds, fs, gs, ldt, tr] = registers.segments;
    let of_table = |table: DescriptorTable| SegmentRegister {
        base: table.base,
        limit: table.limit.into(),
        ..SegmentRegister::default()
    };
    for segment in [cs, ds, es, fs, gs, ss, ldt, tr, of_table(registers.gdtr), of_table(registers.idtr)] {
        // Flags as in the second word of a descriptor: bits 8–15 and 20–23.
        let flags = u32::from(segment.attributes & 0xff) << 8 | u32::from(segment.attributes >> 8 & 0xf) << 20;
        for word in [segment.selector.into(), segment.limit, flags, 0] {
            state.extend(word.to_le_bytes());
        }
        state.extend(segment.base.to_le_bytes());
    }
    let VcpuRegisters { cr0, cr2, cr3, cr4, kernel_gs_base, .. } = *registers;
    [cr0, 0, cr2, cr3, cr4, kernel_gs_base].into_iter().for_each(|word| state.extend(word.to_le_bytes()));
    state
}
