// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bringing up the other processors by the policy chosen, and sending each into its loop. Which of them is online
//! changes later, too: `changes`.

mod changes;
mod crossed;
pub mod threads;

pub use changes::{apic_id, bring_back, count, leave_order, online, put_to_rest, state};
pub use crossed::{adopt_running, expect_others, take_over};

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use boot::options::{KickTime, LogBuffer, Options, SelfTest, Smp, StopPhase, TscSync};
use bringup::startup::{Limits, Reach, Vendor, after_init_us, family};
use bringup::state::Phase;
use bringup::tsc::{Mode, SyncPlan};
use bringup::{
    BringUp, Crew, Follower, Group, Next, Plan, Policy, ProcessorCell, Shared, State, Summary, SyncOutcome, in_order,
    last_first_sign,
};
use handover::layout::ProcessorState;
use spin::Once;
use wire::Virtualization;

use crate::arch::apic::{self, Mode as ApicMode};
use crate::arch::percpu::{self, BOOT_PROCESSOR, MAX_PROCESSORS, PerCpu};
use crate::arch::smp::{self, Machine};
use crate::arch::svm::Svm;
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{counters, cpu, crossing, descriptor, ending, memory, speculation, timer};
use crate::kernel::console;
use crate::kernel::hooks;
use crate::kernel::inherited;
use crate::kernel::places;
use crate::kernel::platform::{BOOT, FIRMWARE};
use crate::kernel::timeline::{self, Name};
use crate::kernel::trial_pages;

/// One for each identifier.
static CELLS: Once<Vec<ProcessorCell>> = Once::new();
static GROUPS: [Group; MAX_PROCESSORS.div_ceil(bringup::GROUP_PROCESSORS)] =
    [const { Group::new() }; MAX_PROCESSORS.div_ceil(bringup::GROUP_PROCESSORS)];
static SHARED: Shared = Shared::new();
/// Identifiers by number; the boot processor is number 0.
static APIC_IDS: Once<Vec<u32>> = Once::new();
static CREW: Once<Crew<'static>> = Once::new();
/// The same processors with the plans by which they come later: each by name, whatever the first plan was.
static LATER: Once<Later> = Once::new();
/// When INIT was sent to all others; 0 if that has not been.
static RESET_AT: AtomicU64 = AtomicU64::new(0);
/// The guests are known: every processor may enter its loop.
static MAY_JOIN: AtomicBool = AtomicBool::new(false);
static VIRT: Once<Result<Svm, Unavailable>> = Once::new();
/// The virtualization extension that runs guests here, and its optional features by the manual's names.
pub static VIRTUALIZATION: Once<(Virtualization, Vec<&'static str>)> = Once::new();

/// A CPU of this image as the next one is told of it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its number.
    pub index: u32,
    /// Its APIC identifier.
    pub apic_id: u32,
    /// The state in which this image leaves it.
    pub state: ProcessorState,
}

/// The other processors, on their way or not yet.
pub struct Others {
    machine: Machine,
    crew: Option<&'static Crew<'static>>,
    /// Those that are wanted from the start.
    wanted: Vec<u32>,
    under_way: Option<BringUp<'static>>,
}

/// Sends INIT to the others first of all: if they are of a kind that needs time then, it passes while the boot goes on.
pub fn reset_others(options: &Options) {
    let are_all_wanted = options.cpus.is_none() && options.cpu.is_none();
    // Those that another image has parked are to stay as they are.
    let are_parked = options.smp == Smp::Park && inherited::known().is_some();
    if options.kick == KickTime::Early && options.smp != Smp::Serial && are_all_wanted && !are_parked {
        let _span = timeline::span(Name::ResetOthers, 0);
        RESET_AT.store(smp::reset_others().unwrap_or(0), Ordering::Relaxed);
    }
}

impl Others {
    /// Prepares every processor that the firmware names and the operator wants, and (unless the operator wants that
    /// later) tells them to start; waits for nobody.
    pub fn kick() -> Self {
        let mut this = Self { machine: Machine::new(&[]), crew: None, wanted: Vec::new(), under_way: None };
        let Some((_, options)) = BOOT.get() else { return this };
        let (ids, named) = identifiers(apic::id());
        let ids = APIC_IDS.call_once(|| ids);
        CELLS.call_once(|| ids.iter().map(|_| ProcessorCell::new()).collect());
        places::prepare(ids.len());
        if ids.len() > 1 {
            this.machine = Machine::new(ids);
            let parked = if options.smp == Smp::Park { adopt_parked(ids) } else { Vec::new() };
            this.wanted = if parked.is_empty() { wanted(options, ids.len() as u32) } else { parked };
            this.crew = prepare(ids, &this.wanted, options, named);
        }
        if options.kick == KickTime::Early {
            this.begin();
        }
        this
    }

    fn begin(&mut self) {
        if let (Some(crew), None, false) = (self.crew, &self.under_way, self.wanted.is_empty()) {
            let _span = timeline::span(Name::Kick, self.wanted.len() as u32);
            self.under_way = Some(BringUp::begin(crew, &self.wanted, &mut self.machine));
        }
    }

    /// Does what has become due since. Called between the steps of the boot.
    pub fn tend(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.tend(&mut self.machine);
        }
    }

    /// Waits until each of them is online or given up. Those that were not wanted can be brought online later.
    pub fn wait(mut self) {
        self.begin();
        if let (Some(crew), Some(under_way)) = (self.crew, self.under_way) {
            let _span = timeline::span(Name::AwaitOthers, self.wanted.len() as u32);
            let summary = under_way.wait(&mut self.machine);
            self.machine.stay_awake();
            report(crew, &summary);
        }
        if let (Some(crew), Some(ids)) = (self.crew, APIC_IDS.get()) {
            Later::after(crew.plan(), ids).into_iter().for_each(|later| _ = LATER.call_once(|| later));
        }
        console::log::tell_memory();
        log::info!("processors: {} online", online().len());
    }
}

/// All processors that can be used, this one first, then in the firmware's order; and how many the firmware names.
fn identifiers(mine: u32) -> (Vec<u32>, usize) {
    let tables = FIRMWARE.lock();
    let others = || tables.processors.iter().filter(|processor| processor.apic_id != mine);
    // In xAPIC mode an interrupt's destination has eight bits, of which one value means all.
    let is_reachable = |apic_id: &u32| apic::mode() == ApicMode::X2apic || *apic_id < 0xff;
    let enabled = || others().filter(|processor| processor.enabled).map(|processor| processor.apic_id);
    let unreachable = enabled().filter(|apic_id| !is_reachable(apic_id)).count();
    if unreachable > 0 {
        log::warn!("{unreachable} processors have APIC ids above 254 and are not used: that takes x2APIC mode");
    }
    let reachable = enabled().filter(is_reachable);
    let ids: Vec<u32> = core::iter::once(mine).chain(reachable).take(MAX_PROCESSORS).collect();
    let named = others().count() + 1;
    if named > MAX_PROCESSORS {
        log::warn!("{named} processors, of which this version uses {MAX_PROCESSORS}");
    }
    (ids, named)
}

fn cells() -> &'static [ProcessorCell] {
    CELLS.get().map_or(&[], Vec::as_slice)
}

fn cell(index: u32) -> Option<&'static ProcessorCell> {
    cells().get(index as usize)
}

/// The processors that wait at their mailboxes: they are those that are wanted.
fn adopt_parked(ids: &[u32]) -> Vec<u32> {
    let Some(adoption) = inherited::adoption(ids) else { return Vec::new() };
    let indices = 0..adoption.mailboxes.len() as u32;
    let parked = indices.filter(|index| adoption.mailboxes[*index as usize].is_some());
    let marked = parked.filter(|index| cell(*index).is_some_and(ProcessorCell::mark_parked));
    let marked = marked.collect();
    smp::adopt(adoption);
    marked
}

/// Which of `count` processors the operator wants from the start, but for the first, which is there.
fn wanted(options: &Options, count: u32) -> Vec<u32> {
    if let Some(list) = &options.cpu {
        if let Some(absent) = list.numbers().find(|number| *number >= count) {
            log::warn!("option cpu: there is no processor {absent}; this machine has 0 to {}", count - 1);
        }
        if !list.contains(0) {
            log::warn!("option cpu: processor 0 boots the host and is used too");
        }
    }
    let others = (1..count).filter(|index| options.cpu.is_none_or(|list| list.contains(*index)));
    others.take(options.cpus.map_or(MAX_PROCESSORS, |limit| limit as usize - 1)).collect()
}

/// Makes everything that those who are wanted need, so that none of them waits for a lock or for memory later.
fn prepare(ids: &'static [u32], wanted: &[u32], options: &Options, named: usize) -> Option<&'static Crew<'static>> {
    let _span = timeline::span(Name::PrepareOthers, wanted.len() as u32);
    let is_made = wanted.iter().all(|&index| prepare_one(index).is_ok());
    let page = smp::prepare(ids, enter).map_err(|error| log::error!("{NOT_STARTED}: {error}"));
    // One interrupt for all would wake those too that are not wanted, or that the firmware calls disabled.
    let plan = plan(options, page.ok().filter(|_| is_made)?, wanted.len() + 1 == named);
    let crew = Crew::new(ids, cells(), &GROUPS, &SHARED, plan).map_err(|error| log::error!("{NOT_STARTED}: {error}"));
    crew.ok().map(|crew| CREW.call_once(|| crew))
}

/// Makes what one of them needs, unless it has it.
fn prepare_one(index: u32) -> Result<(), smp::OutOfMemory> {
    let apic_id = apic_id(index).ok_or(smp::OutOfMemory)?;
    smp::give_stack(index)?;
    let log_bytes = BOOT.get().map_or(LogBuffer::DEFAULT, |(_, options)| options.log_buffer).other_bytes();
    console::log::add_ring(index, log_bytes);
    timeline::add_ring(index);
    if prepare_processor(index, apic_id) { Ok(()) } else { Err(smp::OutOfMemory) }
}

const NOT_STARTED: &str = "the other processors are not started";

fn plan(options: &Options, page: u8, is_all: bool) -> Plan {
    let reset_at = RESET_AT.load(Ordering::Relaxed);
    Plan {
        policy: match options.smp {
            Smp::Serial => Policy::Serial,
            Smp::Park if smp::is_adopting() => Policy::Park,
            Smp::Park | Smp::Parallel => Policy::Parallel,
        },
        reach: if is_all { Reach::Everyone } else { Reach::Each },
        startup_page: page,
        limits: limits(),
        sync: sync_plan(options),
        reset_at: (reset_at != 0).then_some(reset_at),
    }
}

/// How processors come that did not come at first, or have left.
struct Later {
    new: Crew<'static>,
    /// Without a comparison of clocks.
    back: Crew<'static>,
}

impl Later {
    /// Each by name, whatever the first plan was.
    fn after(first: &Plan, ids: &'static [u32]) -> Option<Self> {
        let new = Plan { policy: Policy::Parallel, reach: Reach::Each, reset_at: None, ..*first };
        let back = Plan { sync: SyncPlan { mode: Mode::Skip, ..new.sync }, ..new };
        let [new, back] = [new, back].map(|plan| Crew::new(ids, cells(), &GROUPS, &SHARED, plan).ok());
        Some(Self { new: new?, back: back? })
    }

    /// The plan for one of them. INIT leaves a time stamp counter and its adjustment as they are (AMD APM vol 2, table
    /// 14-1; Intel SDM vol 3, table 10-1), so what was settled once about a clock holds.
    fn crew(&self, index: u32) -> &Crew<'static> {
        let outcome = self.new.cell(index).map(|cell| cell.sync().outcome);
        match outcome {
            Some(SyncOutcome::Skipped | SyncOutcome::Agrees | SyncOutcome::Corrected) => &self.back,
            _ => &self.new,
        }
    }
}

fn limits() -> Limits {
    let leaf = cpu::cpuid(0, 0);
    let mut letters = [0; 12];
    for (place, register) in letters.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    let family = family(cpu::cpuid(1, 0).eax);
    Limits::new(timer::us_to_ticks(1), after_init_us(Vendor::from_letters(&letters), family))
}

fn sync_plan(options: &Options) -> SyncPlan {
    SyncPlan {
        mode: match options.tsc {
            // The clock of a parked processor has not stopped.
            TscSync::Auto if options.smp == Smp::Park && inherited::clocks_agree() => Mode::Skip,
            TscSync::Auto => Mode::Auto,
            TscSync::Skip => Mode::Skip,
            TscSync::Measure => Mode::Measure,
        },
        is_invariant: cpu::cpuid(0x8000_0000, 0).eax >= 0x8000_0007 && cpu::cpuid(0x8000_0007, 0).edx & (1 << 8) != 0,
        boot_adjust: smp::tsc_adjust(),
        package_shift: package_shift(),
        shares_processors: smp::is_virtual(),
    }
}

/// CPUID leaf 0Bh: the last level's shift.
fn package_shift() -> u32 {
    if cpu::cpuid(0, 0).eax < 0xb {
        return 0;
    }
    let levels = (0..8).map(|level| cpu::cpuid(0xb, level)).take_while(|leaf| leaf.ecx >> 8 & 0xff != 0);
    levels.map(|leaf| leaf.eax & 0x1f).last().unwrap_or(0)
}

fn report(crew: &Crew<'_>, summary: &Summary) {
    for (index, phase) in &summary.dead {
        let apic_id = crew.apic_id(*index).unwrap_or(0);
        log::error!(
            "processor {index} (APIC id {apic_id}) did not come further than {phase}: the host goes on without it"
        );
    }
    let came = |(index, _): &(u32, _)| crew.state(*index) != State::Offline;
    for (index, waits) in in_order(crew, summary.wait_began).filter(came) {
        let Some(sync) = crew.cell(index).map(ProcessorCell::sync) else { continue };
        log::debug!(
            "bring-up {index}: first-sign {} initialisation {} tsc-sync {} online {} cycles; tsc {sync:?}",
            waits.first_sign,
            waits.initialisation,
            waits.tsc_sync,
            waits.online
        );
    }
    log::debug!("bring-up policy: {:?}", crew.plan().policy);
    log::info!(
        "bring-up: {} processors in {} cycles ({} us), of which kicks {} and waits {}, for the last first sign {}",
        summary.online,
        summary.total_ticks,
        smp::ticks_to_us(summary.total_ticks),
        summary.kick_ticks,
        summary.wait_ticks,
        last_first_sign(crew, summary.wait_began)
    );
}

/// Where a started processor goes on: its own way through the states, then its loop.
fn enter() -> ! {
    let (Some(first), Some(apic_ids)) = (CREW.get(), APIC_IDS.get()) else { cpu::halt_forever() };
    let Some(index) = first.index_of(apic::id()) else { cpu::halt_forever() };
    let crew = LATER.get().map_or(first, |later| later.crew(index));
    // Whoever sleeps takes interrupts, which need these three; all of it was made before.
    PerCpu::install(index, apic::id());
    descriptor::load(index);
    timer::prepare_this_processor();
    if inherited::generation() > 1 && LATER.get().is_none() {
        timeline::end(Name::Parked, index);
    }
    let stop = stop_at(index);
    if stop == Some(Phase::FirstSign) {
        cpu::halt_forever();
    }
    let mut machine = Machine::new(apic_ids);
    let Ok(mut follower) = Follower::arrive(crew, index, &mut machine) else { cpu::halt_forever() };
    loop {
        if ending::is_under_way() || (stop.is_some() && stop == crew.state(index).awaited()) {
            cpu::halt_forever();
        }
        match follower.poll(&mut machine) {
            Next::Again => machine.relax(),
            Next::Sleep { until } => machine.sleep_until(until),
            Next::Initialise => {
                if follower.initialised(&mut machine) == Next::Halt {
                    cpu::halt_forever();
                }
            }
            Next::Online => break machine.stay_awake(),
            Next::Halt => cpu::halt_forever(),
        }
    }
    note_way(index);
    // Interrupts are masked from each look to the wait itself, so the wake-up that follows the flag is not lost.
    while !MAY_JOIN.load(Ordering::Acquire) {
        cpu::wait_for_interrupt();
    }
    run()
}

/// Puts the calling processor's way to here on its timeline.
fn note_way(index: u32) {
    let Some(stamps) = cell(index).map(ProcessorCell::stamps) else { return };
    let [kicked, alive, initialised] = [stamps.kicked, stamps.alive, stamps.initialised];
    timeline::spent(Name::FirstSign, index, kicked, alive);
    timeline::spent(Name::Initialisation, index, alive, initialised);
    timeline::spent(Name::TscSync, index, initialised, stamps.synchronised);
    timeline::spent(Name::GoingOnline, index, stamps.synchronised, stamps.online);
}

/// Where a self-test makes this processor stop for good.
fn stop_at(index: u32) -> Option<Phase> {
    let (_, options) = BOOT.get()?;
    options.self_tests.iter().find_map(|test| match *test {
        SelfTest::Stop { processor, phase } if processor == index => Some(match phase {
            StopPhase::FirstSign => Phase::FirstSign,
            StopPhase::Initialisation => Phase::Initialisation,
            StopPhase::TscSync => Phase::TscSync,
            StopPhase::Online => Phase::Online,
        }),
        _ => None,
    })
}

/// The guests are known: lets the others into their loops and enters this processor's own.
pub fn join() -> ! {
    changes::open_all();
    MAY_JOIN.store(true, Ordering::Release);
    online().into_iter().for_each(percpu::wake);
    run()
}

/// Every processor that is online, this one (the boot processor) first, for a restart.
pub fn members() -> Vec<Member> {
    let mine = PerCpu::current();
    let state = ProcessorState::HandsOver;
    let first = Member { index: mine.index, apic_id: mine.apic_id, state };
    let parked = |(index, apic_id)| Member { index, apic_id, state: ProcessorState::Parked };
    core::iter::once(first).chain(others().map(parked)).collect()
}

/// Sends INIT to every processor that is not online: wherever it stands, it needs no memory of this image's from then
/// on.
pub fn init_absent() {
    let absent = (1..changes::count()).filter(|index| changes::state(*index) != Some(State::Online));
    absent.filter_map(changes::apic_id).for_each(apic::send_init);
}

/// Identifiers of all processors that are online.
pub fn online_apic_ids() -> Vec<u32> {
    core::iter::once(apic::id()).chain(others().map(|(_, apic_id)| apic_id)).collect()
}

fn others() -> impl Iterator<Item = (u32, u32)> {
    let others = changes::online().into_iter().filter(|index| *index != BOOT_PROCESSOR);
    others.filter_map(|index| Some((index, changes::apic_id(index)?)))
}

/// Whether all processors' clocks agree, as far as is known.
pub fn clocks_agree() -> bool {
    let mut outcomes = others().filter_map(|(index, _)| cell(index).map(|cell| cell.sync().outcome));
    outcomes.all(|outcome| matches!(outcome, SyncOutcome::Skipped | SyncOutcome::Agrees | SyncOutcome::Corrected))
}

/// The calling processor, on which no guest is loaded, is about to leave this image: nothing is left in it of any
/// guest, nor of what runs them.
pub fn forget_guests() {
    if let Some(Ok(svm)) = VIRT.get() {
        svm.disable();
    }
    crossing::forget_guests();
}

fn run() -> ! {
    let virt = match VIRT.get() {
        Some(Ok(svm)) => svm.prepare(PerCpu::current().index).and_then(|()| svm.enable()).map(|()| *svm),
        Some(Err(unavailable)) => Err(*unavailable),
        None => Err(Unavailable::NoExtension),
    };
    if let Some(hooks) = hooks::get() {
        (hooks.run)(virt);
    }
    changes::rest(virt)
}

/// The virtualization extension, where guests can run.
pub fn virt() -> Option<Svm> {
    VIRT.get().copied()?.ok()
}

/// Makes what a CPU has for itself, before it starts. Returns whether there was memory for it.
pub fn prepare_processor(index: u32, apic_id: u32) -> bool {
    PerCpu::prepare(index, apic_id);
    descriptor::prepare(index, || {
        let stack = memory::new_interrupt_stack();
        stack.map_err(|error| log::error!("no interrupt stack for processor {index}: {error:?}")).ok()
    })
}

/// Finds out what this processor offers to run guests with.
pub fn detect_virtualization() {
    let _span = timeline::span(Name::Virtualization, 0);
    let mut counting = None;
    let detected = VIRT.call_once(|| {
        let svm = Svm::detect()?;
        assess_speculation();
        // Before anybody readies a processor for guests.
        counting = detect_counters();
        Ok(svm)
    });
    match detected {
        Ok(svm) => {
            let mut names = svm.feature_names();
            names.extend(counting);
            log::info!("virtualization: {} with {}", svm.name(), names.join(", "));
            VIRTUALIZATION.call_once(|| (Virtualization::Svm, names));
        }
        Err(unavailable) => log::error!("{unavailable}"),
    }
}

/// Finds out which speculation vulnerabilities this processor has. Traps of an image on trial are the old image's.
fn assess_speculation() {
    let Some((_, options)) = BOOT.get() else { return };
    let may_probe = !trial_pages::is_on_trial();
    let assessment = speculation::detect(options.mitigations, threads::are_shared(), may_probe);
    let rows = || mitigations::TABLE.iter().zip(&assessment.statuses);
    for (row, status) in rows() {
        log::debug!("mitigations: {}: {status}", row.name);
    }
    let open = rows().filter(|(_, status)| status.is_vulnerable()).map(|(row, _)| row.name);
    let open = open.collect::<Vec<_>>().join(", ");
    let mode = if options.mitigations == mitigations::Mode::Off { "off" } else { "auto" };
    log::info!("mitigations: {mode}; vulnerable to {}", if open.is_empty() { "nothing known" } else { &open });
}

/// The processor's counters, if guests' events are to be counted with them and can be: their name.
fn detect_counters() -> Option<&'static str> {
    if BOOT.get().is_none_or(|(_, options)| options.pmu != pmu::Choice::Hardware) {
        return None;
    }
    match counters::detect() {
        Ok(description) => {
            log::info!("performance counters: {}, {} of them", description.name(), description.counters);
            Some(description.name())
        }
        Err(unusable) => {
            log::warn!("option pmu=hardware: this processor's counters cannot be used, {unusable}; pmu=soft is used");
            None
        }
    }
}
