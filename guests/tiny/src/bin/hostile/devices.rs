// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that are not there, and junk for those that are.

use core::arch::asm;
use core::hint::spin_loop;
use tiny::answers::{Wrong, expect, expect_exception};
use tiny::attempt::{GENERAL_PROTECTION, attempt};
use tiny::interrupts::count;
use tiny::random::Random;
use tiny::{apic, console, cpu};

/// Ports of no device.
const UNKNOWN_PORTS: [u16; 7] = [0x108, 0x2a0, 0x4d8, 0xa20, 0x1800, 0x9000, 0xfffc];
const REPETITIONS: usize = 64 << 10;

/// An absent port reads as ones and swallows what is written.
pub fn unknown_ports() -> Result<(), Wrong> {
    for port in UNKNOWN_PORTS {
        cpu::outb(port, 0x55);
        cpu::outw(port, 0x5555);
        cpu::outl(port, 0x5555_5555);
        expect("byte at port", port.into(), cpu::inb(port).into(), u8::MAX.into())?;
        expect("word at port", port.into(), cpu::inw(port).into(), u16::MAX.into())?;
        expect("double word at port", port.into(), cpu::inl(port).into(), u32::MAX.into())?;
    }
    Ok(())
}

/// String instructions of 64 KiB: everything is transferred, and the registers are where they belong afterwards.
pub fn huge_rep() -> Result<(), Wrong> {
    // Above everything of the guest's own, which ends below 2 MiB.
    const BUFFER: u64 = 4 << 20;
    let (mut left, mut end) = (REPETITIONS, BUFFER);
    // SAFETY: reads 64 KiB of memory that nothing of Rust's is in.
    unsafe { asm!("rep outsb", in("dx") 0x80_u16, inout("rcx") left, inout("rsi") end, options(nostack)) };
    expect("bytes left of REP OUTSB", BUFFER, left as u64, 0)?;
    expect("RSI after REP OUTSB", BUFFER, end, BUFFER + REPETITIONS as u64)?;
    (left, end) = (REPETITIONS, BUFFER);
    // SAFETY: writes 64 KiB of memory that nothing of Rust's is in.
    unsafe { asm!("rep insb", in("dx") UNKNOWN_PORTS[1], inout("rcx") left, inout("rdi") end, options(nostack)) };
    expect("bytes left of REP INSB", BUFFER, left as u64, 0)?;
    expect("RDI after REP INSB", BUFFER, end, BUFFER + REPETITIONS as u64)?;
    let last = BUFFER + REPETITIONS as u64 - 4;
    expect("last bytes of REP INSB at", last, cpu::read_memory(last).into(), u32::MAX.into())
}

/// Configuration accesses without order (mechanism 1), widths mixed; afterwards the host bridge is still there. The
/// ports stay clear of 0xcf9, which resets the machine.
pub fn pci_junk() -> Result<(), Wrong> {
    const ADDRESS: u16 = 0xcf8;
    const DATA: u16 = 0xcfc;
    const ENABLE: u64 = 1 << 31;
    let mut random = Random::new(11);
    for _ in 0..20_000 {
        let value = random.draw();
        cpu::outl(ADDRESS, (value | ENABLE & random.draw()) as u32);
        match value >> 32 & 7 {
            0 => cpu::outb(DATA + (value >> 40 & 3) as u16, (value >> 48) as u8),
            1 => cpu::outw(DATA + (value >> 40 & 2) as u16, (value >> 48) as u16),
            2 => cpu::outl(DATA, (value >> 16) as u32),
            3 => drop_value(cpu::inb(DATA + (value >> 40 & 3) as u16)),
            4 => drop_value(cpu::inw(DATA + (value >> 40 & 2) as u16)),
            _ => drop_value(cpu::inl(DATA)),
        }
    }
    cpu::outl(ADDRESS, ENABLE as u32);
    match cpu::inl(DATA) {
        u32::MAX => Err(Wrong::new("host bridge", 0, u32::MAX.into())),
        _ => Ok(()),
    }
}

/// The hot-plug controller's registers: devices to check, devices that the guest is to eject, devices that it ejects.
const HOT_PLUG: u16 = 0x610;
const HOT_PLUG_PORTS: u64 = 12;
const EJECT: u16 = HOT_PLUG + 8;

/// Junk in every register of the hot-plug controller, widths mixed; afterwards nothing is to be seen there, since the
/// host has asked for nothing.
pub fn hot_plug_junk() -> Result<(), Wrong> {
    let mut random = Random::new(17);
    for _ in 0..20_000 {
        let value = random.draw();
        let port = HOT_PLUG + (value % HOT_PLUG_PORTS) as u16;
        match value >> 32 & 7 {
            0 => cpu::outb(port, (value >> 48) as u8),
            1 => cpu::outw(port, (value >> 48) as u16),
            2 => cpu::outl(port & !3, (value >> 16) as u32),
            3 => drop_value(cpu::inb(port)),
            4 => drop_value(cpu::inw(port)),
            _ => drop_value(cpu::inl(port)),
        }
    }
    for register in [HOT_PLUG, HOT_PLUG + 4, EJECT] {
        expect("register of the hot-plug controller at", register.into(), cpu::inl(register).into(), 0)?;
    }
    Ok(())
}

/// Ejects every device for ever, asked or not.
pub fn eject_all() -> Result<(), Wrong> {
    loop {
        cpu::outl(EJECT, u32::MAX);
    }
}

/// The read was the point.
fn drop_value<T>(_: T) {}

/// Junk in every register of COM1, then much output at once.
pub fn serial_storm() -> Result<(), Wrong> {
    const LOOP_BACK: u8 = 1 << 4;
    const SCRATCH: u16 = console::COM1 + 7;
    cpu::outb(console::COM1 + 4, LOOP_BACK);
    let mut random = Random::new(13);
    for _ in 0..20_000 {
        let value = random.draw();
        let port = console::COM1 + (value & 7) as u16;
        match (value & 7, value & 8) {
            (4, 0) => cpu::outb(port, (value >> 8) as u8 | LOOP_BACK),
            (_, 0) => cpu::outb(port, (value >> 8) as u8),
            _ => drop_value(cpu::inb(port)),
        }
    }
    console::reset();
    for line in 0..200_u32 {
        (0..72).for_each(|column| console::send(b'!' + ((line + column) % 90) as u8));
        console::send(b'\n');
    }
    cpu::outb(SCRATCH, 0xa5);
    expect("scratch register", SCRATCH.into(), cpu::inb(SCRATCH).into(), 0xa5)
}

/// Junk in every register of the IOAPIC; afterwards it is the same IOAPIC.
pub fn ioapic_junk() -> Result<(), Wrong> {
    const SELECT: u64 = 0xfec0_0000;
    const WINDOW: u64 = 0xfec0_0010;
    const VERSION: u32 = 1;
    const FIRST_ENTRY: u32 = 0x10;
    const MASKED: u32 = 1 << 16;
    let read = |register| {
        cpu::write_memory(SELECT, register);
        cpu::read_memory(WINDOW)
    };
    let version = read(VERSION);
    let mut random = Random::new(17);
    for _ in 0..20_000 {
        let value = random.draw();
        cpu::write_memory(SELECT, value as u32 & 0xff);
        cpu::write_memory(WINDOW, (value >> 32) as u32);
        drop_value(cpu::read_memory(SELECT + (value >> 8 & 0xfc)));
    }
    for register in (FIRST_ENTRY..FIRST_ENTRY + 48).step_by(2) {
        cpu::write_memory(SELECT, register);
        cpu::write_memory(WINDOW, MASKED);
    }
    expect("version of the IOAPIC, register", VERSION.into(), read(VERSION).into(), version.into())
}

/// Interrupts to itself with every vector, faster than they are taken; NMIs; vectors that are illegal, and reserved
/// bits.
pub fn apic_storm() -> Result<(), Wrong> {
    const ROUNDS: u32 = 20;
    const NON_MASKABLE: u8 = 2;
    const LOWEST: u8 = 0x20;
    let before = [NON_MASKABLE, LOWEST, 0xef].map(count);
    for _ in 0..ROUNDS {
        (LOWEST..=0xff).for_each(|vector| apic::send_self(vector.into()));
        apic::send_self_nmi();
        let last = count(LOWEST) + 1;
        let_interrupts_in(|| count(LOWEST) == last);
    }
    for (vector, before) in [NON_MASKABLE, LOWEST, 0xef].into_iter().zip(before) {
        expect("interrupts of vector", vector.into(), (count(vector) - before).into(), ROUNDS.into())?;
    }
    illegal_vectors()?;
    if !apic::is_x2apic() {
        return Ok(());
    }
    expect_exception("reserved bits of MSR", apic::SELF_IPI_MSR.into(), GENERAL_PROTECTION, || {
        cpu::write_msr(apic::SELF_IPI_MSR, 1 << 8);
    })
}

/// Vectors 0 to 15 are refused, and the error status register reports it (Intel SDM vol. 3, section 11.5.3).
fn illegal_vectors() -> Result<(), Wrong> {
    const SEND_ILLEGAL_VECTOR: u32 = 1 << 5;
    (0..16).for_each(apic::send_self);
    if let Err(exception) = attempt(|| let_interrupts_in(|| false)) {
        return Err(Wrong::new("interrupt of illegal vector", exception.vector.into(), 1));
    }
    apic::write(apic::Register::ErrorStatus, 0);
    let errors = apic::read(apic::Register::ErrorStatus);
    expect(
        "error status",
        SEND_ILLEGAL_VECTOR.into(),
        (errors & SEND_ILLEGAL_VECTOR).into(),
        SEND_ILLEGAL_VECTOR.into(),
    )
}

/// Lets interrupts in until that holds, or they had time enough.
fn let_interrupts_in(until: impl Fn() -> bool) {
    const PATIENCE: u32 = 1_000_000;
    cpu::interrupts_on();
    let _ = (0..PATIENCE).find(|_| {
        spin_loop();
        until()
    });
    cpu::interrupts_off();
}
