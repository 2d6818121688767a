// SPDX-License-Identifier: MIT OR Apache-2.0
//! No image, however damaged, makes a loader panic, write outside guest memory or put a kernel where it must not be.

use std::cell::RefCell;

use proptest::prelude::*;

use super::images;
use super::*;
use crate::addr::AccessSize;
use crate::memory::OutOfRange;

const MEMORY_BYTES: u64 = 8 * MIB;

/// Memory that keeps only where it was written.
#[derive(Default)]
struct Recorder {
    written: RefCell<Vec<(u64, u64)>>,
}

impl GuestMemory for Recorder {
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        Err(OutOfRange { gpa, bytes: into.len() })
    }

    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        let end = gpa.0.checked_add(from.len() as u64).expect("a write wraps around");
        assert!(end <= MEMORY_BYTES, "a write leaves guest memory");
        self.written.borrow_mut().push((gpa.0, end));
        Ok(())
    }

    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, _: u64, _: u64) -> Result<bool, OutOfRange> {
        Err(OutOfRange { gpa, bytes: size.bytes() })
    }

    fn size_bytes(&self) -> u64 {
        MEMORY_BYTES
    }
}

fn kernel() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(images::bzimage()),
        Just(images::pvh_elf()),
        Just(images::pvh_elf32()),
        Just(images::multiboot_elf()),
        (0..0xa_1000_u64, 0..0xa_0000_u64).prop_map(|(physical, bytes)| images::pvh_elf_and(physical, bytes)),
    ]
}

/// Damage where it hurts: most of it in the headers.
fn damage() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let offset =
        prop_oneof![0..0x100_usize, 0x1f0..0x270_usize, 0x400..0x420_usize, 0x700..0x720_usize, 0..0x1000_usize];
    prop::collection::vec((offset, any::<u8>()), 0..12)
}

/// Loads, and checks that what was written are boot structures and memory of the kernel's and modules', nothing twice.
fn load_and_check(image: &[u8], modules: &[Module<'_>]) {
    let memory = Recorder::default();
    let loaded = load(&memory, image, b"quiet", modules);
    let mut written = memory.written.into_inner();
    written.retain(|(start, end)| start < end);
    for &(start, end) in &written {
        assert!(end <= layout::CONVENTIONAL_END.0 || start >= layout::KERNEL.0, "{start:#x} is not for loaders");
    }
    written.sort_unstable();
    assert!(written.windows(2).all(|pair| pair[0].1 <= pair[1].0), "a byte was written twice");
    if let Ok(state) = loaded {
        let is_kernel = |written: &(u64, u64)| (written.0..written.1).contains(&state.rip);
        assert!(written.iter().any(is_kernel), "it starts at {:#x}, where nothing was loaded", state.rip);
        assert!(written.iter().any(|written| written.0 == state.gdtr.base), "its descriptors are at {:?}", state.gdtr);
        assert_eq!(written.iter().filter(|written| written.0 == state.gdtr.base).count(), 1);
    }
}

proptest! {
    #[test]
    fn a_damaged_kernel_is_loaded_safely_or_refused(
        mut image in kernel(),
        damage in damage(),
        length in prop_oneof![4 => Just(usize::MAX), 1 => 0..0x1000_usize],
        module_bytes in prop::collection::vec(0..3_000_000_usize, 0..3),
    ) {
        for (offset, value) in damage {
            if let Some(byte) = image.get_mut(offset) {
                *byte = value;
            }
        }
        let files: Vec<_> = module_bytes.iter().map(|&bytes| std::vec![1; bytes]).collect();
        let modules: Vec<_> = files.iter().map(|file| module(file)).collect();
        load_and_check(&image[..length.min(image.len())], &modules);
    }

    #[test]
    fn random_bytes_behind_a_magic_are_loaded_safely_or_refused(
        mut image in prop::collection::vec(any::<u8>(), 0..0x600),
        magic in 0..4_usize,
    ) {
        let (at, bytes) = [(0, &b"\x7fELF\x02\x01"[..]), (0, b"\x7fELF\x01\x01"), (0x1fe, b"\x55\xaa\xeb\x6aHdrS"), (0x10, b"\x02\xb0\xad\x1b")][magic];
        if let Some(place) = image.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        load_and_check(&image, &[]);
    }

    #[test]
    fn every_refusal_names_its_hint(mut image in kernel(), damage in damage()) {
        for (offset, value) in damage {
            if let Some(byte) = image.get_mut(offset) {
                *byte = value;
            }
        }
        if let Err(refused) = load(&Recorder::default(), &image, b"", &[]) {
            prop_assert!(refused.to_string().contains(": "), "{}", refused);
        }
    }
}
