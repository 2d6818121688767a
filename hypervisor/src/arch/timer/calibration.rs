// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring the clocks.

use spin::Mutex;

use super::rates::{detect_deadline, refine_tsc_hz, set_apic_ratio, set_tsc_hz, ticks_to_ns, tsc_hz};
use super::reference::{NoReference, Reference};
use crate::arch::{apic, cpu};

const FEMTOSECONDS: u128 = 1_000_000_000_000_000;
/// The length of the first measurement: a millisecond. A longer measurement follows later, see [`refine`].
const FIRST_MEASUREMENT_FEMTOSECONDS: u64 = 1_000_000_000_000;
/// Readings of which the closest counts.
const CLOSEST_OF: u32 = 8;

/// The clock to refine by, and the first sample of it; nothing where the CPU itself reports its rate.
static FIRST: Mutex<Option<(Reference, Moment)>> = Mutex::new(None);

/// Measures the time stamp counter and the calling CPU's APIC timer against `reference`, or believes CPUID where
/// it reports the TSC's rate (leaf 15h). Returns the TSC's rate in Hz, and for the log how it is known.
pub fn calibrate(reference: Option<Reference>) -> Result<(u64, &'static str), NoReference> {
    let has_deadline = detect_deadline();
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
        set_apic_ratio(sample.apic_ratio);
    } else if !has_deadline {
        return Err(NoReference);
    }
    set_tsc_hz(tsc_hz);
    apic::prepare_timer(has_deadline);
    Ok((tsc_hz, source))
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
    let wanted = FIRST_MEASUREMENT_FEMTOSECONDS / reference.period_femtoseconds();
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
    // A value that is far off is a reading that was interrupted: the first measurement is better than that.
    let known = tsc_hz();
    if hz.abs_diff(known) < known / 50 {
        refine_tsc_hz(hz);
        log::debug!("clock: TSC at {hz} Hz");
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
