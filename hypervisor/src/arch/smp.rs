// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking the other CPUs. Who is woken when, and how long anybody waits, is decided in `bringup`; here are the
//! interrupts, the page in which CPUs start, and their stacks.

use alloc::vec::Vec;
use core::arch::global_asm;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bringup::{Clock, Entry, Kick, ParkSlot, Station, Wake};
use units::{PAGE_BYTES, PageSize, PhysAddr};

use super::address::DIRECT_MAP;
use super::memory::{self, FRAMES};
use super::percpu::{MAX_CPUS, PerCpu};
use super::{apic, boot, cpu, port, timer, trap};

global_asm!(
    include_str!("smp.S"),
    root = sym ROOT,
    ids = sym APIC_IDS,
    count = sym COUNT,
    stacks = sym STACKS,
    entry = sym ap_entry
);

unsafe extern "C" {
    static ap_trampoline_start: u8;
    static ap_trampoline_end: u8;
    static ap_trampoline_gdt_base: u8;
    static ap_trampoline_root: u8;
    static ap_trampoline_jump: u8;
    static ap_high: u8;
}

const MSR_TSC_ADJUST: u32 = 0x3b;
/// The vector to which an old BIOS jumps after a warm reset: a far pointer (MP specification 1.4, B.4).
const WARM_RESET_VECTOR: u64 = 0x467;
/// CMOS shutdown code 0Ah: jump through the vector, no end of interrupt.
const SHUTDOWN_REGISTER: u8 = 0x0f;
const SHUTDOWN_JUMP: u8 = 0x0a;

/// Page tables of CPUs that start.
static ROOT: AtomicU64 = AtomicU64::new(0);
/// Identifiers by number: a CPU that starts finds its number by its identifier, and so its stack.
static APIC_IDS: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
/// How many there are.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Tops of the stacks by number; 0 for one that may not start. Each has its own: one that comes after it was given up
/// harms nobody, one that leaves and comes back finds it.
static STACKS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
/// The function that a started CPU goes on with.
static ENTRY: spin::Once<fn() -> !> = spin::Once::new();

/// No memory for stacks, or none below 1 MiB for CPUs' first steps.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for their stacks, or none below 1 MiB for their first steps: give the machine more")
    }
}

/// Prepares what CPUs with these identifiers need to start, before the first is woken: the start-up code in a
/// page below 1 MiB, whose number is returned. They will go on with `entry`. Each also needs [`give_stack`].
pub fn prepare(ids: &[u32], entry: fn() -> !) -> Result<u8, OutOfMemory> {
    ENTRY.call_once(|| entry);
    ROOT.store(memory::host_root(), Ordering::Release);
    for (place, id) in APIC_IDS.iter().zip(ids) {
        place.store(*id, Ordering::Release);
    }
    COUNT.store(ids.len().min(MAX_CPUS) as u32, Ordering::Release);
    let frames = FRAMES.lock().allocate_below(PAGE_BYTES, PageSize::Kib4, PhysAddr(0x10_0000));
    let page = frames.map_err(|_| OutOfMemory)?.leak().start();
    write_trampoline(page);
    Ok((page.0 / PAGE_BYTES) as u8)
}

/// Gives the CPU with this number its stack, unless it has one: it may start.
pub fn give_stack(index: u32) -> Result<(), OutOfMemory> {
    let place = STACKS.get(index as usize).ok_or(OutOfMemory)?;
    if place.load(Ordering::Acquire) == 0 {
        place.store(memory::new_stack().map_err(|_| OutOfMemory)?, Ordering::Release);
    }
    Ok(())
}

/// The top of the stack that the CPU with this number was given; 0 if it has none.
pub fn stack_of(index: u32) -> u64 {
    STACKS.get(index as usize).map_or(0, |place| place.load(Ordering::Acquire))
}

/// Copies the start-up code to its page, and writes into it where it lies and where the boot page tables are.
fn write_trampoline(page: PhysAddr) {
    let start = (&raw const ap_trampoline_start) as usize;
    let bytes = (&raw const ap_trampoline_end) as usize - start;
    let into = (DIRECT_MAP + page.0) as *mut u8;
    let words = [
        ((&raw const ap_trampoline_gdt_base) as usize, page.0 as u32),
        ((&raw const ap_trampoline_jump) as usize, page.0 as u32),
        ((&raw const ap_trampoline_root) as usize, boot::root() as u32),
    ];
    // SAFETY: the frame was just allocated, the code is shorter than a page, and the three words are in it.
    unsafe {
        core::ptr::copy_nonoverlapping(start as *const u8, into, bytes.min(PAGE_BYTES as usize));
        for (label, addend) in words {
            let word = into.add(label - start).cast::<u32>();
            word.write_unaligned(word.read_unaligned().wrapping_add(addend));
        }
    }
}

extern "C" fn ap_entry() -> ! {
    trap::load();
    memory::protect_this_cpu();
    apic::enable();
    match ENTRY.get() {
        Some(entry) => entry(),
        None => cpu::halt_forever(),
    }
}

/// The machine as bring-up sees it.
pub struct Machine {
    /// Identifiers by number.
    apic_ids: &'static [u32],
    /// The time at which the calling CPU's timer wakes it; setting it costs more than a sleep that ends too soon.
    alarm: Option<u64>,
    is_virtual: bool,
}

impl Machine {
    /// The machine as the calling CPU sees it.
    pub fn new(apic_ids: &'static [u32]) -> Self {
        Self { apic_ids, alarm: None, is_virtual: is_virtual() }
    }

    /// One turn of a short waiting loop. PAUSE is for the sibling thread of a real CPU; under a hypervisor it may
    /// end the CPU's turn, and in QEMU's emulator it takes a lock that the partner needs in order to wake.
    pub fn relax(&self) {
        if self.is_virtual { cpu::idle_a_moment() } else { cpu::pause() }
    }

    /// Halts until an interrupt, or until the time stamp counter shows `until` or a little earlier. Interrupts are
    /// masked but for the halt itself, so one that was sent since the last halt ends this one.
    pub fn sleep_until(&mut self, until: u64) {
        // It may have fired a little before its time.
        if PerCpu::current().timer_fired.swap(false, Ordering::Relaxed) {
            self.alarm = None;
        }
        if self.alarm.is_none_or(|alarm| alarm > until) {
            timer::set_alarm(until);
            self.alarm = Some(until);
        }
        cpu::wait_for_interrupt();
    }

    /// Sleeps no more. The CPU that had set the timer for something else before checks it again.
    pub fn stay_awake(&mut self) {
        if self.alarm.take().is_some() {
            timer::clear_alarm();
            PerCpu::current().timer_fired.store(true, Ordering::Relaxed);
        }
    }
}

impl Clock for Machine {
    fn now(&mut self) -> u64 {
        cpu::tsc()
    }
}

impl Wake for Machine {
    fn wake(&mut self, index: u32) {
        self.apic_ids.get(index as usize).into_iter().for_each(|&apic_id| apic::send(apic_id, trap::vector::WAKE));
    }
}

impl Kick for Machine {
    fn pause(&mut self) {
        self.relax();
    }

    fn sleep(&mut self, until: u64) {
        self.sleep_until(until);
    }

    fn send_init(&mut self, apic_id: u32) {
        apic::send_init(apic_id);
    }

    fn send_startup(&mut self, apic_id: u32, page: u8) {
        apic::send_startup(apic_id, page);
    }

    fn broadcast_init(&mut self) {
        apic::broadcast_init();
    }

    fn broadcast_startup(&mut self, page: u8) {
        apic::broadcast_startup(page);
    }

    fn set_reset_vector(&mut self, page: u8) {
        write_warm_reset(SHUTDOWN_JUMP, u32::from(page) << 24);
    }

    fn clear_reset_vector(&mut self) {
        write_warm_reset(0, 0);
    }

    fn release(&mut self, index: u32) -> bool {
        release(index)
    }

    fn given_up(&mut self, index: u32) {
        if let Some((apic_id, mailbox)) = parked(index) {
            mailbox.condemn();
            // Whatever it does, it does not come back to memory that will be others'.
            apic::send_init(apic_id);
        }
    }
}

impl Station for Machine {
    fn tsc_adjust(&mut self) -> Option<u64> {
        tsc_adjust()
    }

    fn set_tsc_adjust(&mut self, value: u64) {
        // SAFETY: called only where the register exists; it moves this CPU's counter to agree with the others.
        unsafe { cpu::write_msr(MSR_TSC_ADJUST, value) };
    }

    fn release(&mut self, index: u32) -> bool {
        release(index)
    }
}

fn parked(index: u32) -> Option<(u32, &'static ParkSlot)> {
    *PARKED.get()?.mailboxes.get(index as usize)?
}

/// Lets a parked CPU go: mail, then the one interrupt that makes it check. Nobody sends a second one: it might
/// find the CPU on its way.
fn release(index: u32) -> bool {
    let (Some(adoption), Some((apic_id, mailbox))) = (PARKED.get(), parked(index)) else { return false };
    let entry = Entry { target: (&raw const ap_high) as u64, root: adoption.root, argument: 0 };
    match mailbox.release(apic_id, entry) {
        Ok(is_first) => !is_first || adoption.stuck == Some(index) || apic::send_nmi(apic_id),
        Err(_) => false,
    }
}

/// CPUs that the image before has parked.
pub struct Adoption {
    /// Identifier and mailbox by number; nothing where no CPU is parked.
    pub mailboxes: Vec<Option<(u32, &'static ParkSlot)>>,
    /// Page tables that show their mailboxes and this image.
    pub root: u64,
    /// One that is not woken, though it has mail: a self-test.
    pub stuck: Option<u32>,
}

static PARKED: spin::Once<Adoption> = spin::Once::new();

/// CPUs come from their mailboxes.
pub fn adopt(adoption: Adoption) {
    PARKED.call_once(|| adoption);
}

/// Returns whether CPUs come from mailboxes.
pub fn is_adopting() -> bool {
    PARKED.get().is_some()
}

/// Returns whether a hypervisor or an emulator is below (CPUID leaf 1 ECX bit 31, which CPUs keep clear).
pub fn is_virtual() -> bool {
    cpu::cpuid(1, 0).ecx & (1 << 31) != 0
}

/// Sends INIT to all others before anything is prepared for them, so that whatever delay it needs passes meanwhile;
/// returns when that was. They run nothing of ours yet, and whatever they ran, this ends it.
pub fn reset_others() -> Option<u64> {
    apic::broadcast_init_at_boot().then(cpu::tsc)
}

/// IA32_TSC_ADJUST of the calling CPU, where it exists.
pub fn tsc_adjust() -> Option<u64> {
    let exists = cpu::cpuid(0, 0).eax >= 7 && cpu::cpuid(7, 0).ebx & (1 << 1) != 0;
    // SAFETY: CPUID reports that the register exists; reading it has no effect.
    exists.then(|| unsafe { cpu::read_msr(MSR_TSC_ADJUST) })
}

fn write_warm_reset(code: u8, vector: u32) {
    // SAFETY: the CMOS shutdown code and the BIOS data area's vector are there for this; the first MiB is in the direct
    // map wherever the memory map calls it usable, and only then is the vector written.
    unsafe {
        port::write_u8(0x70, SHUTDOWN_REGISTER);
        port::write_u8(0x71, code);
    }
    memory::write_low(WARM_RESET_VECTOR, vector);
}

/// The calling CPU's clock, as `bringup` and reports count it.
pub fn ticks_to_us(ticks: u64) -> u64 {
    timer::ticks_to_ns(ticks) / 1000
}
