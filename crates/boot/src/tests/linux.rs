// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use std::string::ToString;

use super::*;
use crate::linux::{LinuxError, MAGIC, parse};

const LINE: u64 = BASE + 0x1ff0;
const DATA: u64 = BASE + 0x2800;
const SYSTEM_TABLE: u64 = BASE + 0x2a00;
const CONFIGURATION: u64 = BASE + 0x2b00;
const END: u64 = BASE + 0x4000;

/// Returns the memory that a loader leaves for a host with a bundle on a PC of 2 GiB.
fn loader() -> TestMemory {
    let mut memory = TestMemory(std::vec![0; (END - BASE) as usize]);
    memory.put(BASE + 0x202, b"HdrS");
    memory.put(BASE + 0x1e8, &[3]);
    entries(&mut memory, BASE + 0x2d0, &[(0, 0x9_fc00, 1), (0x9_fc00, 0x400, 2), (0x10_0000, 0x7ff0_0000, 1)]);
    memory.put_u32(BASE + 0x228, LINE as u32);
    memory.put(LINE, b"log=debug console=ttyS0\0");
    memory.put_u32(BASE + 0x218, 0x40_0010);
    memory.put_u32(BASE + 0x21c, 0x1234);
    memory.put_u64s(BASE + 0x70, &[0xf_5a20]);
    memory
}

fn entries(memory: &mut TestMemory, at: u64, entries: &[(u64, u64, u32)]) {
    for (&(start, bytes, kind), at) in entries.iter().zip((at..).step_by(20)) {
        memory.put_u64s(at, &[start, bytes]);
        memory.put_u32(at + 16, kind);
    }
}

/// Setup data at `at`, and its content.
fn setup_data(memory: &mut TestMemory, at: u64, next: u64, kind: u32, content: &[u8]) {
    memory.put_u64s(at, &[next, u64::from(kind) | (content.len() as u64) << 32]);
    memory.put(at + 16, content);
}

/// A machine with EFI and a loader that gives no root pointer.
fn efi() -> TestMemory {
    // 8868e871-e4f1-11d3-bc22-0080c73c8881, ACPI 2.0's table.
    const GUID: [u8; 16] =
        [0x71, 0xe8, 0x68, 0x88, 0xf1, 0xe4, 0xd3, 0x11, 0xbc, 0x22, 0, 0x80, 0xc7, 0x3c, 0x88, 0x81];
    let mut memory = loader();
    memory.put_u64s(BASE + 0x70, &[0]);
    memory.put(BASE + 0x1c0, b"EL64");
    memory.put_u32(BASE + 0x1c4, SYSTEM_TABLE as u32);
    memory.put(SYSTEM_TABLE, b"IBI SYST");
    memory.put_u64s(SYSTEM_TABLE + 0x68, &[2, CONFIGURATION]);
    memory.put_u64s(CONFIGURATION, &[1, 2, 3]);
    memory.put(CONFIGURATION + 24, &GUID);
    memory.put_u64s(CONFIGURATION + 40, &[0x7f5d_e014]);
    memory
}

fn parsed(memory: &TestMemory) -> Result<BootInfo, LinuxError> {
    parse(memory, PhysAddr(BASE))
}

#[test]
fn boot_params_are_read_with_all_they_point_to() {
    let info = parsed(&loader()).unwrap();
    assert_eq!(info.protocol, Protocol::Linux);
    assert_eq!(&info.command_line[..], "log=debug console=ttyS0", "also across a page's end");
    assert_eq!(info.rsdp, Some(PhysAddr(0xf_5a20)));
    assert_eq!(info.modules[0].range, range(0x40_0010, 0x40_1244));
    assert_eq!(info.memory_map.usable().collect::<Vec<_>>(), [range(0, 0x9_f000), range(0x10_0000, 0x8000_0000)]);
    assert_eq!(info.notes(), []);
    assert_eq!(crate::loader::parse(&loader(), MAGIC, PhysAddr(BASE)), Ok(info));
}

#[test]
fn a_bundle_may_lie_above_4_gib() {
    let mut memory = loader();
    memory.put_u32(BASE + 0xc0, 2);
    memory.put_u32(BASE + 0xc4, 1);
    assert_eq!(parsed(&memory).unwrap().modules[0].range, range(0x2_0040_0010, 0x3_0040_1244));
}

#[test]
fn a_host_without_a_bundle_has_no_module() {
    let mut memory = loader();
    memory.put_u32(BASE + 0x21c, 0);
    assert!(parsed(&memory).unwrap().modules.is_empty());
}

#[test]
fn setup_data_adds_to_the_memory_map() {
    let mut memory = loader();
    let mut more = TestMemory(std::vec![0; 40]);
    entries(&mut more, BASE, &[(1 << 32, 1 << 30, 1), (5 << 30, 1 << 30, 2)]);
    memory.put_u64s(BASE + 0x250, &[DATA]);
    setup_data(&mut memory, DATA, DATA + 0x40, 9, b"a seed");
    setup_data(&mut memory, DATA + 0x40, 0, 1, &more.0);
    let info = parsed(&memory).unwrap();
    assert_eq!(info.memory_map.kind_at(PhysAddr(1 << 32)), Some(RegionKind::Usable));
    assert_eq!(info.memory_map.kind_at(PhysAddr(5 << 30)), Some(RegionKind::Reserved));
}

#[test]
fn a_chain_of_setup_data_that_bites_its_tail_ends() {
    let mut memory = loader();
    memory.put_u64s(BASE + 0x250, &[DATA]);
    setup_data(&mut memory, DATA, DATA, 9, &[]);
    assert_eq!(parsed(&memory).unwrap().notes(), []);
}

#[test]
fn setup_data_out_of_reach_is_missed_only_where_the_map_may_go_on_in_it() {
    let mut memory = loader();
    memory.put_u64s(BASE + 0x250, &[END]);
    assert_eq!(parsed(&memory).unwrap().notes(), []);
    memory.put(BASE + 0x1e8, &[128]);
    entries(&mut memory, BASE + 0x2d0, &std::vec![(0x10_0000, 0x1000_0000, 1); 128]);
    let notes = parsed(&memory).unwrap().notes().to_vec();
    assert_eq!(notes, [Note::UnreadableSetupData { at: PhysAddr(END) }]);
    assert!(notes[0].to_string().contains("may hold more of the memory map"), "{}", notes[0]);
}

#[test]
fn under_efi_the_root_pointer_is_found_by_the_system_table() {
    let mut memory = efi();
    assert_eq!(parsed(&memory).unwrap().rsdp, Some(PhysAddr(0x7f5d_e014)));
    memory.put_u64s(SYSTEM_TABLE + 0x70, &[0xffff_fffe_f000_0000]);
    assert_eq!(parsed(&memory).unwrap().rsdp, None, "the kernel before has given the tables addresses of its own");
    memory.put_u64s(BASE + 0x250, &[DATA]);
    let mut content = [0; 32];
    content[16..24].copy_from_slice(&CONFIGURATION.to_le_bytes());
    setup_data(&mut memory, DATA, 0, 4, &content);
    assert_eq!(parsed(&memory).unwrap().rsdp, Some(PhysAddr(0x7f5d_e014)), "and reports where they are");
    memory.put(SYSTEM_TABLE, b"IBI SYSX");
    assert_eq!(parsed(&memory).unwrap().rsdp, None);
}

#[test]
fn what_no_host_can_start_from_is_refused() {
    let refused = |change: fn(&mut TestMemory)| {
        let mut memory = loader();
        change(&mut memory);
        parsed(&memory).unwrap_err()
    };
    assert_eq!(refused(|memory| memory.put_u32(BASE + 0x202, 7)), LinuxError::NoHeader { found: 7 });
    assert_eq!(refused(|memory| memory.put(BASE + 0x1e8, &[0])), LinuxError::NoMemoryMap);
    assert_eq!(refused(|memory| memory.put(BASE + 0x1e8, &[129])), LinuxError::TooManyRegions);
    assert_eq!(
        refused(|memory| entries(memory, BASE + 0x2d0, &[(0, 1, 2), (0, 1, 2), (0, 1, 2)])),
        LinuxError::NoUsableMemory
    );
    assert_eq!(refused(|memory| memory.0.truncate(4095)), LinuxError::Unreadable(PhysAddr(BASE)));
    let text = LinuxError::NoMemoryMap.to_string();
    assert!(text.ends_with("the firmware has no INT 15h E820h, or the loader left it out"), "{text}");
}

#[test]
fn what_a_host_can_do_without_is_noted_and_left_out() {
    let mut memory = loader();
    memory.put_u64s(BASE + 0x2d0, &[0, 0]);
    memory.put_u32(BASE + 0xc8, 1);
    memory.put_u32(BASE + 0xc0, u32::MAX);
    let info = parsed(&memory).unwrap();
    let expected =
        [Note::AbsurdRegions(1), Note::CommandLineUnreadable { module: None }, Note::AbsurdModule { index: 0 }];
    assert_eq!(info.notes(), expected);
    assert!(info.modules.is_empty());
}

#[test]
fn an_unknown_protocol_is_refused() {
    let error = crate::loader::parse(&loader(), 0x2bad_b002, PhysAddr(BASE)).unwrap_err().to_string();
    assert!(error.contains("0x2badb002") && error.contains("multiboot2, not multiboot"), "{error}");
}

proptest! {
    #[test]
    fn no_boot_params_whatever_panic(changes in prop::collection::vec((0u64..0x2f00, any::<u64>(), 0u32..64), 0..12)) {
        let mut memory = efi();
        memory.put_u64s(BASE + 0x250, &[DATA]);
        for (offset, value, shift) in changes {
            memory.put_u64s(BASE + offset, &[value >> shift]);
        }
        // The magic survives, so that the code after its check is reached.
        memory.put_u32(BASE + 0x202, MAGIC);
        if let Ok(info) = parsed(&memory) {
            prop_assert!(info.memory_map.usable_bytes() > 0);
            prop_assert!(info.modules.iter().all(|module| !module.range.is_empty()));
        }
    }
}
