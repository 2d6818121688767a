// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data of each CPU, found through GS.

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use mca::Pending;
use profile::Place;
use spin::Once;
use wire::CpuPerf;

use super::calls::Calls;
use super::cpu_local::{self, HEAD, Head, cpu_local};
use super::figures::Figures;
use super::{apic, cpu, trap};

/// The register that holds the address of the calling CPU's data.
pub const MSR_GS_BASE: u32 = 0xc000_0101;

/// One CPU's own data. Interrupt handlers raise its flags, the CPU's loop lowers them.
pub struct PerCpu {
    /// Number of the CPU, from 0, in bring-up order.
    pub index: u32,
    /// Its local APIC's identifier.
    pub apic_id: u32,
    /// The CPU's timer has fired.
    pub timer_fired: AtomicBool,
    /// A PCI function that a guest has has interrupted the CPU ([`super::device_vectors`]).
    pub device_raised: AtomicBool,
    /// The calls for its loop.
    pub calls: Calls,
    /// It holds one vCPU at most, so that a kick can be for that one only.
    pub holds_one: AtomicBool,
    /// It has come online and not left.
    is_here: AtomicBool,
    /// The time at which it last came online.
    online_since: AtomicU64,
    /// Ticks since then in which it had nothing to do.
    idle_ticks: AtomicU64,
    /// Since when it has nothing to do; 0 while it has.
    idle_since: AtomicU64,
    /// The last time that it was asked to flush its TLB and did.
    pub flushed_at: AtomicU64,
    /// Errors of the hardware that its loop has to account for.
    pub damage: Pending,
    /// The place of its samples while a profile is taken.
    pub samples: Place,
    /// The values of the host's counters on it.
    pub figures: Figures<CpuPerf>,
}

/// The CPU that booted the host; it also serves the control channel.
pub const BOOT_CPU: u32 = 0;

/// The number of a CPU that fails before it has one.
const UNNUMBERED: u32 = u32::MAX - 1;

/// CPUs this image can use.
pub const MAX_CPUS: usize = 256;

cpu_local! {
    /// Made before the CPU starts; it lives for ever, and a CPU that comes back finds it.
    static OWN: Once<PerCpu> = Once::new();
}
/// CPUs that have taken their data and have not left.
static ONLINE: AtomicU32 = AtomicU32::new(0);
/// The boot CPU has its own data.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

impl PerCpu {
    /// Makes the data of the CPU `index` before it starts, unless it has some. `None` if the machine has no such CPU.
    pub fn prepare(index: u32, apic_id: u32) -> Option<&'static Self> {
        OWN.of(index).map(|own| own.call_once(|| Self::new(index, apic_id)))
    }

    /// The calling CPU takes its own data, and can be interrupted from then on.
    pub fn install(index: u32, apic_id: u32) {
        let (Some(this), Some(head)) = (Self::prepare(index, apic_id), HEAD.of(index)) else {
            panic!("CPU {index} has no area for per-CPU data");
        };
        head.own.store(this as *const Self as u64, Ordering::Relaxed);
        // SAFETY: the hypervisor uses GS for nothing else, and the area lives for ever.
        unsafe { cpu::write_msr(MSR_GS_BASE, cpu_local::area(index).unwrap_or(0)) };
        this.timer_fired.store(false, Ordering::Relaxed);
        this.calls.clear();
        this.holds_one.store(true, Ordering::Relaxed);
        this.idle_ticks.store(0, Ordering::Relaxed);
        this.idle_since.store(0, Ordering::Relaxed);
        this.online_since.store(cpu::tsc(), Ordering::Relaxed);
        this.is_here.store(true, Ordering::Release);
        ONLINE.fetch_add(1, Ordering::Release);
        IS_INSTALLED.store(true, Ordering::Release);
    }

    fn new(index: u32, apic_id: u32) -> Self {
        Self {
            index,
            apic_id,
            timer_fired: AtomicBool::new(false),
            device_raised: AtomicBool::new(false),
            calls: Calls::new(),
            holds_one: AtomicBool::new(true),
            is_here: AtomicBool::new(false),
            online_since: AtomicU64::new(0),
            idle_ticks: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            flushed_at: AtomicU64::new(0),
            damage: Pending::new(),
            samples: Place::default(),
            figures: Figures::default(),
        }
    }

    /// The calling CPU is not counted any more: it leaves the host. Its data stay as they are.
    pub fn leave(&self) {
        self.is_here.store(false, Ordering::Release);
        ONLINE.fetch_sub(1, Ordering::Release);
    }

    /// Returns whether it is online.
    pub fn is_here(&self) -> bool {
        self.is_here.load(Ordering::Acquire)
    }

    /// Returns whether it has nothing to do, for its own handlers.
    pub fn is_idle(&self) -> bool {
        self.idle_since.load(Ordering::Relaxed) != 0
    }

    /// Waits for an interrupt, and books the time as idle.
    pub fn wait_for_interrupt(&self) {
        let since = cpu::tsc();
        self.idle_since.store(since, Ordering::Relaxed);
        cpu::wait_for_interrupt();
        self.idle_since.store(0, Ordering::Relaxed);
        let idle = self.idle_ticks.load(Ordering::Relaxed) + cpu::tsc().saturating_sub(since);
        self.idle_ticks.store(idle, Ordering::Relaxed);
    }

    /// Thousandths of the time since it came online in which it had something to do. Read from elsewhere it may be off
    /// by the moment at which it is read.
    pub fn busy_permille(&self) -> u32 {
        let now = cpu::tsc();
        let idle_now = match self.idle_since.load(Ordering::Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        };
        let idle = self.idle_ticks.load(Ordering::Relaxed).saturating_add(idle_now);
        let online = now.saturating_sub(self.online_since.load(Ordering::Relaxed)).max(1);
        let busy = online.saturating_sub(idle);
        (u128::from(busy) * 1000 / u128::from(online)) as u32
    }

    /// The calling CPU's own data.
    #[inline]
    pub fn current() -> &'static Self {
        let this: *const Self;
        // SAFETY: GS points at the CPU's area from `install` on, and its head has the address of this structure;
        // nothing that runs before that calls this (`number` distinguishes the two).
        unsafe {
            asm!("mov {}, gs:[{own}]", out(reg) this, own = const offset_of!(Head, own),
                options(nostack, preserves_flags, readonly));
            &*this
        }
    }

    /// The number of the calling CPU, 0 while there is only one and nothing is installed.
    pub fn current_index() -> u32 {
        if IS_INSTALLED.load(Ordering::Acquire) { Self::current().index } else { 0 }
    }
}

/// The calling CPU's number; `None` while it has no data of its own, whatever the others have.
pub fn number() -> Option<u32> {
    // SAFETY: the register exists on every x86-64 CPU; reading it has no effect.
    let is_installed = unsafe { cpu::read_msr(MSR_GS_BASE) } != 0;
    is_installed.then(|| PerCpu::current().index)
}

/// The number of the calling CPU, for reports: 0 while no CPU has data of its own, [`UNNUMBERED`] while only others
/// have.
pub fn my_number() -> u32 {
    match number() {
        Some(number) => number,
        None if online() == 0 => 0,
        None => UNNUMBERED,
    }
}

/// Makes CPU `index` check its work, soon: from its loop, whatever it does now.
pub fn wake(index: u32) {
    if index == PerCpu::current().index {
        PerCpu::current().calls.for_work();
    } else if let Some(other) = of(index) {
        apic::send(other.apic_id, trap::vector::WAKE);
    }
}

/// Makes CPU `index` check the interrupts of its vCPUs, soon. One that runs its guest leaves it;
/// that is all it takes.
#[inline]
pub fn kick(index: u32) {
    if index == PerCpu::current().index {
        PerCpu::current().calls.for_choice();
    } else if let Some(other) = of(index) {
        apic::send(other.apic_id, trap::vector::KICK);
    }
}

/// The same for a vCPU that the running one has something for: where both share a CPU, the running one keeps it for its
/// slice.
#[inline]
pub fn kick_behind(index: u32) {
    if index == PerCpu::current().index {
        PerCpu::current().calls.for_choice_behind();
    } else {
        kick(index);
    }
}

/// Interrupts the calling CPU as soon as it takes interrupts: one that enters a guest meanwhile leaves it at
/// once.
pub fn interrupt_self() {
    apic::send(PerCpu::current().apic_id, trap::vector::KICK);
}

/// A CPU's data, once they are made.
#[inline]
pub fn of(index: u32) -> Option<&'static PerCpu> {
    OWN.of(index)?.get()
}

/// The numbers of the CPUs that have installed their data and have not left.
pub fn indices() -> impl Iterator<Item = u32> {
    (0..cpu_local::count()).filter(|&index| of(index).is_some_and(PerCpu::is_here))
}

/// The numbers of all CPUs that there may be.
pub fn all() -> impl Iterator<Item = u32> {
    0..cpu_local::count()
}

/// Returns how many CPUs have installed their data and have not left.
pub fn online() -> u32 {
    ONLINE.load(Ordering::Acquire)
}
