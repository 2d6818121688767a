// SPDX-License-Identifier: MIT OR Apache-2.0
//! Areas of XSAVE's and FXSAVE's.

use std::vec;
use std::vec::Vec;

use handover::state::{AreaFormat, Extended};
use zerocopy::FromZeros as _;

use crate::machine::{check_area, note_initial_x87};

/// An XSAVE area as a CPU leaves it.
fn area() -> (Extended, Vec<u8>) {
    let mut area = vec![0; 832];
    area[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    area[512] = 0b111;
    let extended =
        Extended { components: 7.into(), format: (AreaFormat::Xsave as u32).into(), ..Extended::new_zeroed() };
    (extended, area)
}

#[test]
fn x87_counts_as_initial_only_if_each_of_its_registers_is() {
    let noted = |change: fn(&mut Vec<u8>)| {
        let (_, mut area) = area();
        area[..2].copy_from_slice(&0x37fu16.to_le_bytes());
        // Bytes that are not x87's do not count.
        area[160] = 1;
        change(&mut area);
        let before = area.clone();
        note_initial_x87(&mut area);
        let present = area[512];
        area[512] = before[512];
        assert_eq!(area, before);
        present
    };
    assert_eq!(noted(|_| ()), 0b110);
    assert_eq!(noted(|area| area[512] = 0b101), 0b100);
    let each: [fn(&mut Vec<u8>); 8] = [
        |area| area[1] = 0x27,
        |area| area[2] = 1,
        |area| area[4] = 0x80,
        |area| area[6] = 1,
        |area| area[8] = 1,
        |area| area[23] = 1,
        |area| area[32] = 1,
        |area| area[159] = 1,
    ];
    assert_eq!(each.map(noted), [0b111; 8]);
    note_initial_x87(&mut []);
}

#[test]
fn an_area_that_a_cpu_would_fault_on_is_refused() {
    let refused = |spoil: fn(&mut Extended, &mut Vec<u8>)| {
        let (mut extended, mut area) = area();
        spoil(&mut extended, &mut area);
        check_area(&extended, &area, 7, 832).map_err(|error| error.reason)
    };
    assert_eq!(refused(|_, _| ()), Ok(()));
    assert_eq!(refused(|_, area| area.truncate(831)), Err("it is too short"));
    assert_eq!(refused(|_, area| area[26] = 4), Err("MXCSR has a reserved bit set"));
    let more = "it holds a component that this CPU does not have";
    assert_eq!(refused(|_, area| area[513] = 1), Err(more));
    assert_eq!(refused(|_, area| area[527] = 0x80), Err("it is not of the standard format"));
    assert_eq!(refused(|_, area| area[575] = 1), Err("it is not of the standard format"));
    assert_eq!(refused(|extended, _| extended.format = 3.into()), Err("it is unknown"));
    assert_eq!(refused(|extended, _| extended.components = 3.into()), Err("not those that this CPU has"));
    assert_eq!(
        refused(|extended, area| {
            extended.format = (AreaFormat::Fxsave as u32).into();
            area.truncate(512);
        }),
        Ok(())
    );
}
