// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory as a loader, firmware and the image before leave it: by PVH, Multiboot2 and the Linux boot protocol, the
//! command line's options, ACPI tables, the hand-over record; and the image that is to replace the running one.

use boot::{Options, PhysicalMemory, pvh::MAGIC};
use firmware::{Tables, Unreadable};
use units::PhysAddr;

use crate::input::Input;

const BASE: u64 = 0x1000;

/// Memory from [`BASE`] on.
struct Memory(Vec<u8>);

impl PhysicalMemory for Memory {
    fn bytes(&self, start: PhysAddr, bytes: usize) -> Option<&[u8]> {
        let start = usize::try_from(start.0.checked_sub(BASE)?).ok()?;
        self.0.get(start..start.checked_add(bytes)?)
    }
}

/// Any bytes, or a start info at the beginning of memory with the right magic number and pointers that lead into
/// memory.
pub fn pvh(data: &[u8]) {
    let mut input = Input(data);
    let (is_framed, at) = (input.u8() != 0, input.u8());
    let (memory, address) = match is_framed {
        true => (start_info(&mut input), BASE),
        false => (input.0.to_vec(), BASE + u64::from(at)),
    };
    read(MAGIC, memory, address);
}

/// Reads a loader's memory by a protocol, and checks the result.
fn read(protocol: u32, memory: Vec<u8>, address: u64) {
    match boot::loader::parse(&Memory(memory), protocol, PhysAddr(address)) {
        Ok(info) => {
            info.notes().iter().for_each(|note| drop(note.to_string()));
            let regions = info.memory_map.regions();
            assert!(regions.windows(2).all(|pair| pair[0].range.end() <= pair[1].range.start()), "sorted, none twice");
            assert!(info.memory_map.usable_bytes() > 0, "no host starts without memory");
            assert!(info.modules.iter().all(|module| !module.range.is_empty()), "no module is empty");
        }
        Err(error) => drop(error.to_string()),
    }
}

/// Any bytes, or Multiboot2 information with tags that have the sizes that they state.
pub fn multiboot2(data: &[u8]) {
    let mut input = Input(data);
    let memory = match input.bool() {
        true => information(&mut input),
        false => input.0.to_vec(),
    };
    read(boot::multiboot2::MAGIC, memory, BASE);
}

fn information(input: &mut Input<'_>) -> Vec<u8> {
    let mut memory = vec![0; 8];
    while !input.is_empty() {
        let (kind, content) = (u32::from(input.u8() & 0x1f), input.string());
        memory.extend_from_slice(&kind.to_le_bytes());
        memory.extend_from_slice(&(8 + content.len() as u32).to_le_bytes());
        memory.extend_from_slice(content);
        memory.resize(memory.len().next_multiple_of(8), 0);
    }
    let bytes = memory.len() as u32;
    memory[..4].copy_from_slice(&bytes.to_le_bytes());
    memory
}

/// Any bytes, or `boot_params` with a setup header, pointers into memory, and anything else in the fields that are
/// read.
pub fn linux(data: &[u8]) {
    let mut input = Input(data);
    let memory = match input.bool() {
        true => boot_params(&mut input),
        false => input.0.to_vec(),
    };
    read(boot::linux::MAGIC, memory, BASE);
}

fn boot_params(input: &mut Input<'_>) -> Vec<u8> {
    let mut memory = vec![0; 4096];
    memory[0x202..0x206].copy_from_slice(b"HdrS");
    memory[0x1e8] = input.u8() & 0x8f;
    // Low halves of command line, setup data, EFI's system table lead behind it; the rest is anything.
    for field in [0x228, 0x250, 0x1c4] {
        let pointer = BASE as u32 + 4096 + u32::from(input.u16() & 0x1ff);
        memory[field..field + 4].copy_from_slice(&pointer.to_le_bytes());
    }
    memory[0x1c0..0x1c4].copy_from_slice(if input.bool() { b"EL64" } else { b"EL32" });
    for field in [0x70, 0xc0, 0xc8, 0x218, 0x250 + 4] {
        memory[field..field + 4].copy_from_slice(&(input.number() as u32).to_le_bytes());
    }
    let map_bytes = usize::from(input.u8()) * 4;
    let map = input.take(map_bytes);
    memory[0x2d0..][..map.len()].copy_from_slice(map);
    memory.extend_from_slice(input.0);
    memory
}

/// The structure (Xen's public header `hvm/start_info.h`) and what follows it.
fn start_info(input: &mut Input<'_>) -> Vec<u8> {
    let mut pointer = || BASE + u64::from(input.u16() & 0x3ff);
    let [modules, command_line, rsdp, map] = [pointer(), pointer(), pointer(), pointer()];
    let mut memory = MAGIC.to_le_bytes().to_vec();
    memory.extend_from_slice(&u32::from(input.u8() & 3).to_le_bytes());
    memory.extend_from_slice(&input.u32().to_le_bytes());
    memory.extend_from_slice(&u32::from(input.u8() & 0x1f).to_le_bytes());
    [modules, command_line, rsdp, map].iter().for_each(|field| memory.extend_from_slice(&field.to_le_bytes()));
    memory.extend_from_slice(&u32::from(input.u8() & 0x3f).to_le_bytes());
    memory.extend_from_slice(&[0; 4]);
    memory.extend_from_slice(input.0);
    memory
}

/// A command line.
pub fn options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (_, _, complaints) = Options::parse_with_self_tests(&text);
    complaints.kept().iter().for_each(|complaint| drop(complaint.to_string()));
    let words = text.split_ascii_whitespace().count();
    assert!(complaints.kept().len() + complaints.more() <= words, "no more complaints than words");
}

const RSDP: usize = 0xf_0000;
const ROOT: usize = 0xf_0100;
const TABLES: usize = 0xf_1000;
const MEMORY_BYTES: usize = 0x10_0000;

/// The first MiB.
struct FirstMib(Vec<u8>);

impl firmware::PhysicalMemory for FirstMib {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let start = usize::try_from(address).map_err(|_| Unreadable)?;
        let end = start.checked_add(into.len()).ok_or(Unreadable)?;
        into.copy_from_slice(self.0.get(start..end).ok_or(Unreadable)?);
        Ok(())
    }
}

/// Tables: any bytes in the BIOS area, or tables with headers and checksums right and any bodies.
pub fn firmware(data: &[u8]) {
    let mut input = Input(data);
    let mut memory = vec![0; MEMORY_BYTES];
    let rsdp = input.bool().then_some(RSDP as u64);
    if input.bool() {
        let count = input.0.len().min(MEMORY_BYTES - RSDP);
        memory[RSDP..][..count].copy_from_slice(&input.0[..count]);
    } else {
        put_tables(&mut memory, &mut input);
    }
    let mut tables = Box::new(Tables::new());
    if let Err(error) = firmware::discover(&FirstMib(memory), rsdp, &mut tables) {
        drop(error.to_string());
    }
    tables.warnings.iter().for_each(|warning| drop(warning.to_string()));
    (0..=255).for_each(|irq| {
        tables.isa_interrupt(irq);
    });
}

fn put_tables(memory: &mut [u8], input: &mut Input<'_>) {
    let (mut at, mut root) = (TABLES, Vec::new());
    for signature in [b"APIC", b"FACP", b"HPET", b"MCFG", b"DSDT", b"SRAT", b"FACP"] {
        let body = if signature == b"FACP" { fadt(input) } else { input.string().to_vec() };
        if signature != b"DSDT" {
            root.extend_from_slice(&(at as u64).to_le_bytes());
        }
        let bytes = table(signature, &body);
        memory[at..][..bytes.len()].copy_from_slice(&bytes);
        at += 0x200;
    }
    let pointer = pointer(input.u8());
    memory[RSDP..][..pointer.len()].copy_from_slice(&pointer);
    let root = table(b"XSDT", &root);
    memory[ROOT..][..root.len()].copy_from_slice(&root);
}

/// An FADT that points to the DSDT.
fn fadt(input: &mut Input<'_>) -> Vec<u8> {
    let mut body = input.string().to_vec();
    if input.bool() && body.len() >= 8 {
        body[4..8].copy_from_slice(&(TABLES as u32 + 4 * 0x200).to_le_bytes());
    }
    body
}

fn pointer(revision: u8) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..8].copy_from_slice(b"RSD PTR ");
    bytes[15] = revision.max(2);
    bytes[16..20].copy_from_slice(&(ROOT as u32).to_le_bytes());
    bytes[8] = complement(&bytes[..20]);
    bytes[20] = 36;
    bytes[24..32].copy_from_slice(&(ROOT as u64).to_le_bytes());
    bytes[32] = complement(&bytes);
    bytes
}

fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..4].copy_from_slice(signature);
    bytes[4..8].copy_from_slice(&(36 + body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes[9] = complement(&bytes);
    bytes
}

fn complement(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)).wrapping_neg()
}

/// A hand-over record (any bytes, or sections with a header and a checksum that are right), or an image.
pub fn handover(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 3 {
        0 => open_record(input.0),
        1 => open_record(&record(&mut input)),
        _ => {
            check_head(input.0);
            if let Ok(image) = handover::Image::parse(input.0) {
                let bytes = image.memory_bytes().min(1 << 22) as usize;
                let mut slot = vec![0; bytes];
                let has_room = bytes as u64 >= image.memory_bytes();
                let mut from = Some(0);
                while let Some(at) = from {
                    from = image.place(input.0, &mut slot, at, 0x3001);
                }
                assert!(!has_room || reread(&image, input.0, &slot) == input.0);
                assert!(has_room || slot.iter().all(|byte| *byte == 0));
            }
        }
    }
}

/// The first bytes of a good file are never refused.
fn check_head(file: &[u8]) {
    let is_good = handover::Image::describe(file).is_ok();
    for bytes in [0, 63, 64, file.len() / 2, file.len()] {
        let head = handover::Image::describe_head(&file[..bytes.min(file.len())], file.len() as u64);
        assert!(!is_good || head.is_ok(), "{bytes} of {} bytes", file.len());
    }
}

/// The file, read from where its image was placed.
fn reread(image: &handover::Image, file: &[u8], slot: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < file.len() {
        let piece = image.placed(file, slot, read.len() as u64);
        assert!(!piece.is_empty(), "nothing at {} of {} bytes", read.len(), file.len());
        read.extend_from_slice(piece);
    }
    read
}

fn open_record(bytes: &[u8]) {
    match handover::Record::open(bytes) {
        Ok(record) => {
            assert!(record.slot().is_aligned(handover::record::SLOT_ALIGNMENT) && !record.slot().is_empty());
            assert_eq!(record.kept_ranges().count(), record.kept.len() + record.guest_memory.len());
        }
        Err(error) => drop(error.to_string()),
    }
}

fn record(input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = vec![0; handover::MAX_RECORD_BYTES];
    let mut writer = handover::Writer::new(&mut bytes);
    while !input.0.is_empty() {
        let (kind, flags) = (u32::from(input.u8() & 0xf), u32::from(input.u8() & 1));
        let repeats = usize::from(input.u8() & 3);
        writer.unknown(kind, flags, &input.string().repeat(repeats));
    }
    let bytes_used = writer.finish().unwrap_or(0);
    bytes.truncate(bytes_used);
    bytes
}
