// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions of the first physical one that can have any (SR-IOV): enabled by its driver, whose network card is
//! brought up before. The registers are abused first, past the driver.

use crate::{log, stream};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

const DEVICES: &str = "/sys/bus/pci/devices";
/// The offset of a guest's capability, and of registers in it: control, NumVFs, the first base address register.
const CAPABILITY: u64 = 0x100;
const CONTROL: u64 = CAPABILITY + 0x08;
const NUMBER: u64 = CAPABILITY + 0x10;
const FIRST_BAR: u64 = CAPABILITY + 0x24;

/// Enables so many.
pub fn enable(number: u64) {
    match try_enable(number) {
        Ok(text) => log!("sriov: {text}"),
        Err(error) => log!("sriov: WRONG: {error}"),
    }
}

fn try_enable(number: u64) -> Result<String, String> {
    stream::set_up(Ipv4Addr::new(10, 0, 2, 99))?;
    let folder = find().ok_or("no function shows an SR-IOV capability")?;
    let text = |error: io::Error| error.to_string();
    let registers = OpenOptions::new().read(true).write(true).open(folder.join("config")).map_err(text)?;
    abuse(&registers, number)?;
    fs::write(folder.join("sriov_numvfs"), number.to_string()).map_err(text)?;
    let there = (0..number).filter(|index| folder.join(format!("virtfn{index}")).exists()).count();
    Ok(format!("{there} enabled"))
}

fn find() -> Option<PathBuf> {
    let all = fs::read_dir(DEVICES).ok()?.flatten().map(|entry| entry.path());
    all.filter(|folder| folder.join("sriov_numvfs").exists()).min()
}

/// Asks for more than are approved, moves their ranges, and enables them.
fn abuse(registers: &File, approved: u64) -> Result<(), String> {
    let write = |register: u64, value: u32| registers.write_all_at(&value.to_le_bytes(), register);
    let read = |register: u64| {
        let mut bytes = [0; 4];
        registers.read_exact_at(&mut bytes, register).map(|()| u32::from_le_bytes(bytes))
    };
    for number in [approved as u32 + 1, 0x100, 0xffff] {
        let asked = write(NUMBER, number).and_then(|()| write(CONTROL, u32::MAX));
        let seen = asked.and_then(|()| Ok((read(NUMBER)?, read(CONTROL)?)));
        let (number, control) = seen.map_err(|error| error.to_string())?;
        write(CONTROL, 0).map_err(|error| error.to_string())?;
        if number > approved as u32 || control != 0b1001 {
            return Err(format!("NumVFs is {number}, control {control:#x}"));
        }
    }
    for bar in 0..6 {
        let seen = write(FIRST_BAR + 4 * bar, u32::MAX).and_then(|()| read(FIRST_BAR + 4 * bar));
        if seen.map_err(|error| error.to_string())? != 0 {
            return Err(format!("base address register {bar} can be written"));
        }
    }
    write(NUMBER, 0).map_err(|error| error.to_string())
}
