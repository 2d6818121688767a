// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: how fast the time stamp counter and the local APIC's timer run, and the one-shot alarm of each CPU.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::Mutex;

use super::{address, apic, cpu, port};

/// The address at which the HPET's page is mapped.
pub const HPET_MAPPED_AT: u64 = address::DEVICES + 0x20_0000;

/// 3.579545 MHz (ACPI 6.5, section 4.8.3.3).
const PM_TIMER_PERIOD_FEMTOSECONDS: u64 = 279_365_114;
const FEMTOSECONDS: u128 = 1_000_000_000_000_000;
/// The length of the first measurement: a millisecond. What it does not know is measured later, see [`refine`].
const FIRST_LOOK_FEMTOSECONDS: u64 = 1_000_000_000_000;
/// Readings of which the closest counts.
const CLOSEST_OF: u32 = 8;
const MSR_TSC_DEADLINE: u32 = 0x6e0;
const NANOSECONDS: u64 = 1_000_000_000;

static TSC_HZ: AtomicU64 = AtomicU64::new(0);
/// The clock to refine by, and the first sample of it; nothing where the CPU itself reports its rate.
static FIRST: Mutex<Option<(Reference, Moment)>> = Mutex::new(None);
static TICKS_PER_US: AtomicU64 = AtomicU64::new(0);
static TSC_AT_BOOT: AtomicU64 = AtomicU64::new(0);
/// APIC timer ticks per TSC tick, as a fixed-point number with 32 fractional bits.
static APIC_TICKS_PER_TSC: AtomicU64 = AtomicU64::new(0);
static HAS_DEADLINE: AtomicBool = AtomicBool::new(false);

/// A clock of known rate to measure the others against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// HPET, mapped at [`HPET_MAPPED_AT`]: fine-grained, a millisecond is enough.
    Hpet,
    /// The ACPI PM timer at this port, 24 bits wide.
    PmTimer(u16),
}

/// No clock of known rate is there, or it stands still.
#[derive(Clone, Copy, Debug)]
pub struct NoReference;

/// Notes the start of time: when the image's first instruction was.
pub fn start_at(ticks: u64) {
    TSC_AT_BOOT.store(ticks, Ordering::Relaxed);
}

/// The rates that [`calibrate`] found, and the start of time: for the next image, which need not measure anything.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Ticks of the time stamp counter per second.
    pub tsc_hz: u64,
    /// The counter at the start of time.
    pub tsc_at_boot: u64,
    /// APIC timer ticks per TSC tick, 32 bits behind the point.
    pub apic_ratio: u64,
}

/// Returns what is known of the clock.
pub fn rates() -> Rates {
    Rates {
        tsc_hz: TSC_HZ.load(Ordering::Relaxed),
        tsc_at_boot: TSC_AT_BOOT.load(Ordering::Relaxed),
        apic_ratio: APIC_TICKS_PER_TSC.load(Ordering::Relaxed),
    }
}

/// Goes on with the clock of the image before, which never stopped.
pub fn resume(rates: Rates) {
    HAS_DEADLINE.store(cpu::cpuid(1, 0).ecx & (1 << 24) != 0, Ordering::Relaxed);
    TSC_HZ.store(rates.tsc_hz, Ordering::Relaxed);
    TSC_AT_BOOT.store(rates.tsc_at_boot, Ordering::Relaxed);
    APIC_TICKS_PER_TSC.store(rates.apic_ratio, Ordering::Relaxed);
    TICKS_PER_US.store(rates.tsc_hz.div_ceil(1_000_000), Ordering::Relaxed);
}

/// Measures the time stamp counter and the calling CPU's APIC timer against `reference`, or believes CPUID where
/// it reports the TSC's rate (leaf 15h). Returns the TSC's rate in Hz, and for the log how it is known.
pub fn calibrate(reference: Option<Reference>) -> Result<(u64, &'static str), NoReference> {
    let has_deadline = cpu::cpuid(1, 0).ecx & (1 << 24) != 0;
    HAS_DEADLINE.store(has_deadline, Ordering::Relaxed);
    apic::prepare_timer(false);
    let sample = reference.ok_or(NoReference).and_then(|reference| Ok((reference, measure(reference)?)));
    let (tsc_hz, source) = match (tsc_hz_of_cpuid(), &sample) {
        (Some(hz), _) => (hz, "as CPUID leaf 15h states"),
        (None, Ok((reference, sample))) => (sample.tsc_hz(*reference), reference.as_source()),
        (None, Err(NoReference)) => return Err(NoReference),
    };
    if let Ok((reference, sample)) = &sample {
        if tsc_hz_of_cpuid().is_none() {
            *FIRST.lock() = Some((*reference, sample.first));
        }
        APIC_TICKS_PER_TSC.store(sample.apic_ratio, Ordering::Relaxed);
    } else if !has_deadline {
        return Err(NoReference);
    }
    TSC_HZ.store(tsc_hz, Ordering::Relaxed);
    TICKS_PER_US.store(tsc_hz.div_ceil(1_000_000), Ordering::Relaxed);
    apic::prepare_timer(has_deadline);
    Ok((tsc_hz, source))
}

/// Prepares the calling CPU's timer as [`calibrate`] did for the first.
pub fn prepare_this_cpu() {
    apic::prepare_timer(HAS_DEADLINE.load(Ordering::Relaxed));
}

/// The time stamp counter and what is left of the APIC timer's count, read one after the other: the time between the
/// two readings is the same each time, and falls out of a difference.
struct Counted {
    tsc: u64,
    left: u32,
}

impl Counted {
    fn now() -> Self {
        Self { tsc: cpu::tsc(), left: apic::timer_count() }
    }

    /// APIC timer ticks per TSC tick, 32 bits behind the point.
    fn ratio_since(&self, first: &Self) -> u64 {
        let ticks = u64::from(first.left.saturating_sub(self.left));
        ((u128::from(ticks) << 32) / u128::from(self.tsc.wrapping_sub(first.tsc).max(1))) as u64
    }
}

/// A reading of the time stamp counter and of the reference, as nearly at once as could be had.
#[derive(Clone, Copy)]
struct Moment {
    tsc: u64,
    reference: u64,
}

impl Moment {
    /// The closest of several: the reading that took least is the one that nothing came between.
    fn closest(reference: Reference) -> Self {
        let attempts = (0..CLOSEST_OF).map(|_| {
            let before = cpu::tsc();
            let reference = reference.now();
            let after = cpu::tsc();
            (after.wrapping_sub(before), Self { tsc: before + after.wrapping_sub(before) / 2, reference })
        });
        attempts.min_by_key(|(took, _)| *took).map_or(Self { tsc: 0, reference: 0 }, |(_, moment)| moment)
    }
}

/// Two moments apart, and what the APIC's timer counted near them.
struct Sample {
    first: Moment,
    last: Moment,
    /// APIC timer ticks per TSC tick, 32 bits behind the point.
    apic_ratio: u64,
}

impl Sample {
    fn tsc_hz(&self, reference: Reference) -> u64 {
        rate(self.first, self.last, reference)
    }
}

/// The time stamp counter's rate between two moments; 0 if the reference stood still.
fn rate(first: Moment, last: Moment, reference: Reference) -> u64 {
    let tsc_ticks = u128::from(last.tsc.wrapping_sub(first.tsc));
    let elapsed = u128::from(last.reference.wrapping_sub(first.reference) & reference.mask());
    let period = u128::from(reference.period_femtoseconds());
    let femtoseconds = elapsed * period;
    (tsc_ticks * FEMTOSECONDS).checked_div(femtoseconds).unwrap_or(0) as u64
}

fn measure(reference: Reference) -> Result<Sample, NoReference> {
    reference.start()?;
    let wanted = FIRST_LOOK_FEMTOSECONDS / reference.period_femtoseconds();
    apic::start_timer(u32::MAX);
    let first = Moment::closest(reference);
    let counted_from = Counted::now();
    // Bounded: a reference that stands still is given up after far more reads than any real one needs.
    for _ in 0..20_000_000u32 {
        if reference.now().wrapping_sub(first.reference) & reference.mask() >= wanted {
            let apic_ratio = Counted::now().ratio_since(&counted_from);
            let last = Moment::closest(reference);
            apic::start_timer(0);
            return Ok(Sample { first, last, apic_ratio });
        }
    }
    apic::start_timer(0);
    Err(NoReference)
}

/// Measures the time stamp counter's rate again, over all the time since the first measurement: a first one of a
/// millisecond knows it to some hundred parts per million, a second of boot to less than one. Call it before a guest is
/// shown the rate.
pub fn refine() {
    let first = *FIRST.lock();
    let Some((reference, first)) = first else { return };
    let elapsed_ns = ticks_to_ns(cpu::tsc().wrapping_sub(first.tsc));
    if elapsed_ns > reference.unambiguous_ns() {
        return;
    }
    let hz = rate(first, Moment::closest(reference), reference);
    // What is far off is a reading that something came between: the first measurement is better than that.
    let known = tsc_hz();
    if hz.abs_diff(known) < known / 50 {
        TSC_HZ.store(hz, Ordering::Relaxed);
        log::debug!("clock: TSC at {hz} Hz");
    }
}

impl Reference {
    fn start(self) -> Result<(), NoReference> {
        let Self::Hpet = self else { return Ok(()) };
        // SAFETY: the HPET's page is mapped uncached at this address (the caller chose it as reference).
        unsafe {
            let configuration = (HPET_MAPPED_AT + 0x10) as *mut u32;
            core::ptr::write_volatile(configuration, core::ptr::read_volatile(configuration) | 1);
        }
        // IA-PC HPET 1.0a, section 2.3.4: at most 100 ns, never 0.
        if (1..=100_000_000).contains(&self.period_femtoseconds()) { Ok(()) } else { Err(NoReference) }
    }

    fn as_source(self) -> &'static str {
        match self {
            Self::Hpet => "measured against the HPET",
            Self::PmTimer(_) => "measured against the ACPI PM timer",
        }
    }

    fn period_femtoseconds(self) -> u64 {
        match self {
            // SAFETY: as in `start`; the period is constant.
            Self::Hpet => unsafe { u64::from(core::ptr::read_volatile((HPET_MAPPED_AT + 4) as *const u32)) },
            Self::PmTimer(_) => PM_TIMER_PERIOD_FEMTOSECONDS,
        }
    }

    /// The low half of the HPET's counter is enough for half a minute; the PM timer has 24 bits.
    fn mask(self) -> u64 {
        match self {
            Self::Hpet => u64::from(u32::MAX),
            Self::PmTimer(_) => 0xff_ffff,
        }
    }

    /// Returns how long its counter distinguishes, with half in reserve.
    fn unambiguous_ns(self) -> u64 {
        (u128::from(self.mask()) * u128::from(self.period_femtoseconds()) / 2_000_000) as u64
    }

    fn now(self) -> u64 {
        match self {
            // SAFETY: mapped as above; reading the counter changes nothing.
            Self::Hpet => unsafe { u64::from(core::ptr::read_volatile((HPET_MAPPED_AT + 0xf0) as *const u32)) },
            // SAFETY: the FADT names this port as the PM timer; reading it changes nothing.
            Self::PmTimer(at) => unsafe { u64::from(port::read_u32(at)) },
        }
    }
}

/// CPUID leaf 15h: crystal Hz and ratio, where both are reported.
fn tsc_hz_of_cpuid() -> Option<u64> {
    if cpu::cpuid(0, 0).eax < 0x15 {
        return None;
    }
    let leaf = cpu::cpuid(0x15, 0);
    let hz = u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax.max(1));
    (hz > 0).then_some(hz)
}

/// Ticks of the time stamp counter per second; 0 before calibration.
pub fn tsc_hz() -> u64 {
    TSC_HZ.load(Ordering::Relaxed)
}

/// The time stamp counter at [`start_at`].
pub fn origin() -> u64 {
    TSC_AT_BOOT.load(Ordering::Relaxed)
}

/// Nanoseconds since [`start_at`]; 0 before calibration.
pub fn uptime_ns() -> u64 {
    ticks_to_ns(cpu::tsc().wrapping_sub(TSC_AT_BOOT.load(Ordering::Relaxed)))
}

/// Tries until it succeeds, for `us` microseconds at most (so many times where the TSC's rate is not known yet). What a
/// lock's holder needs is time, not attempts: a hypervisor or an emulator below may not run it for a while.
pub fn try_for<T>(us: u64, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let (began, ticks) = (cpu::tsc(), us_to_ticks(us));
    let mut tries = 0;
    loop {
        if let Some(found) = attempt() {
            return Some(found);
        }
        tries += 1;
        if cpu::tsc().wrapping_sub(began) > ticks && tries > us {
            return None;
        }
        cpu::pause();
    }
}

/// Microseconds as TSC ticks; 0 before calibration.
#[inline]
pub fn us_to_ticks(microseconds: u64) -> u64 {
    microseconds * TICKS_PER_US.load(Ordering::Relaxed)
}

/// TSC ticks as nanoseconds; 0 before calibration.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    match tsc_hz() {
        0 => 0,
        hz => (u128::from(ticks) * u128::from(NANOSECONDS) / u128::from(hz)) as u64,
    }
}

/// Makes the calling CPU's timer fire when the time stamp counter reaches `deadline`; at once if it has.
#[inline]
pub fn set_alarm(deadline: u64) {
    if HAS_DEADLINE.load(Ordering::Relaxed) {
        // SAFETY: CPUID reports that the register exists; 0 would disarm, so a deadline in the past is 1.
        unsafe { cpu::write_msr(MSR_TSC_DEADLINE, deadline.max(1)) };
        return;
    }
    let ticks = deadline.saturating_sub(cpu::tsc());
    // Rounded up: an interrupt before its time only costs another one.
    let count = ((u128::from(ticks) * u128::from(APIC_TICKS_PER_TSC.load(Ordering::Relaxed))) >> 32) + 1;
    // A deadline further off than the counter reaches fires early; the CPU that set it checks the clock again.
    apic::start_timer(count.clamp(1, u128::from(u32::MAX)) as u32);
}

/// Stops the calling CPU's timer.
pub fn clear_alarm() {
    if HAS_DEADLINE.load(Ordering::Relaxed) {
        // SAFETY: CPUID reports that the register exists; 0 disarms.
        unsafe { cpu::write_msr(MSR_TSC_DEADLINE, 0) };
    } else {
        apic::start_timer(0);
    }
}

/// Waits at least `microseconds`, spinning: for hardware that gives no other choice.
pub fn delay_us(microseconds: u64) {
    let end = cpu::tsc() + microseconds * tsc_hz() / 1_000_000;
    while cpu::tsc() < end {
        cpu::pause();
    }
}
