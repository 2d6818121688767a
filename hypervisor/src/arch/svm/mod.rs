// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD SVM on the machine (AMD APM vol. 2, chapter 15). What the control block states is decided in the `svm` crate;
//! here are the instructions, and the memory that the CPU reads.

mod extended;
mod page;

use alloc::vec::Vec;
use core::arch::{asm, global_asm};
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

use handover::state::Extended;
use mitigations::switch::{VARIANTS, Variant, in_guest};
use paging::{Flags, MapError, Nested, Tables};
use spin::Once;
use svm::code::number;
use svm::permission::{IO_MAP_BYTES, MSR_MAP_BYTES, Pass, fill_io_map, fill_msr_map, let_through};
use svm::vcpu::{Owner, SpecCtrl, Switched, Tables as TableAddresses};
use svm::{Features, Vcpu, Vmcb};
use units::{PageSize, PhysAddr};
use vm::cpuid::Speculation;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;
use vm::msr::number::{PRED_CMD, SPEC_CTRL};
use vm::vcpu::{EntryState, VcpuState};

use self::extended::ExtendedState;
use self::page::VmcbPage;
use super::address::DIRECT_MAP;
use super::guest_memory::GuestRam;
use super::memory::{TableFrames, permanent_frames};
use super::percpu::{MAX_CPUS, PerCpu};
use super::trap::TrapFrame;
use super::virt::{OutOfMemory, Unavailable, Virt};
use super::{counters, cpu, speculation};

global_asm!(include_str!("switch.S"));

/// A world switch.
type WorldSwitch = unsafe extern "C" fn(switched: *mut Switched, guest_vmcb: u64, host_vmcb: u64);

unsafe extern "C" {
    /// By [`Variant::index`].
    static svm_switches: [WorldSwitch; VARIANTS];
    /// The end of each of them.
    static svm_switch_ends: [u64; VARIANTS];
}

const MSR_EFER: u32 = 0xc000_0080;
const EFER_SVME: u64 = 1 << 12;
const MSR_VM_CR: u32 = 0xc001_0114;
const VM_CR_SVM_DISABLED: u64 = 1 << 4;
const MSR_HOST_SAVE: u32 = 0xc001_0117;

/// Physical addresses of the permission maps all guests share: they own the same registers and no port.
static MAPS: Once<Maps> = Once::new();
/// Each CPU's control block for its own FS, GS, TR and system call registers; 0 while it has none.
static HOST_VMCB: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
/// Each CPU's area for the rest of its state; 0 while it has none. A CPU that comes back finds both.
static HOST_SAVE: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

struct Maps {
    io: PhysAddr,
    msr: PhysAddr,
    /// The same for guests that are informed of an IBPB: PRED_CMD takes it without an exit, and where the CPU exchanges
    /// SPEC_CTRL, that is the guest's, too.
    msr_with_speculation: PhysAddr,
}

/// AMD SVM.
#[derive(Clone, Copy)]
pub struct Svm {
    features: Features,
}

/// One vCPU with the registers that stay in the CPU across exits.
pub struct SvmVcpu {
    state: Vcpu<VmcbPage>,
    extended: ExtendedState,
    /// The world switch of this vCPU: a choice that is made once costs no exit anything.
    switch: WorldSwitch,
}

/// A guest's nested page tables.
pub struct NestedSpace {
    tables: Option<Tables<Nested>>,
    root: PhysAddr,
}

impl Deref for SvmVcpu {
    type Target = Vcpu<VmcbPage>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

impl DerefMut for SvmVcpu {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.state
    }
}

impl Svm {
    /// SVM, if this CPU has it with all that is needed.
    pub fn detect() -> Result<Self, Unavailable> {
        if cpu::cpuid(0x8000_0000, 0).eax < 0x8000_000a || cpu::cpuid(0x8000_0001, 0).ecx & (1 << 2) == 0 {
            return Err(Unavailable::NoExtension);
        }
        // SAFETY: the register exists with SVM (section 15.30.1); reading it has no effect.
        if unsafe { cpu::read_msr(MSR_VM_CR) } & VM_CR_SVM_DISABLED != 0 {
            return Err(Unavailable::LockedByFirmware);
        }
        let leaf = cpu::cpuid(0x8000_000a, 0);
        let features = Features::from_cpuid(leaf.ebx, leaf.edx);
        if features.nested_paging { Ok(Self { features }) } else { Err(Unavailable::NoNestedPaging) }
    }

    /// Optional features that this CPU has, by the manual's names.
    pub fn feature_names(&self) -> Vec<&'static str> {
        let Features { next_rip, decode_assists, flush_by_asid, clean_bits, pause_filter, .. } = self.features;
        let named = [
            (true, "nested-paging"),
            (next_rip, "nrips"),
            (decode_assists, "decode-assists"),
            (flush_by_asid, "flush-by-asid"),
            (clean_bits, "vmcb-clean"),
            (pause_filter, "pause-filter"),
        ];
        named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }
}

impl Virt for Svm {
    type State = Vcpu<VmcbPage>;
    type Vcpu = SvmVcpu;
    type Space = NestedSpace;

    fn name(&self) -> &'static str {
        "svm"
    }

    fn tags(&self) -> u32 {
        self.features.asids
    }

    fn enable(&self) -> Result<(), Unavailable> {
        let (save_area, host_vmcb) = own_frames(PerCpu::current().index)?;
        // SAFETY: `detect` found SVM, not disabled; the save area is a whole frame that belongs to this CPU.
        unsafe {
            cpu::write_msr(MSR_EFER, cpu::read_msr(MSR_EFER) | EFER_SVME);
            cpu::write_msr(MSR_HOST_SAVE, save_area);
        }
        // SAFETY: the frame belongs to this CPU; VMSAVE only writes to it. GS, TR and the rest are final by now.
        unsafe { asm!("vmsave rax", in("rax") host_vmcb, options(nostack, preserves_flags)) };
        counters::prepare_this_cpu();
        speculation::prepare_this_cpu();
        Ok(())
    }

    fn disable(&self) {
        counters::leave_this_cpu();
        // SAFETY: `enable` set the bit on this CPU, which holds no guest any more; the global interrupt flag is
        // set outside of `svm_switch`, without which clearing the bit is undefined (section 15.4).
        unsafe { cpu::write_msr(MSR_EFER, cpu::read_msr(MSR_EFER) & !EFER_SVME) };
    }

    fn create_space(&self, memory: &GuestRam) -> Result<NestedSpace, OutOfMemory> {
        let largest = if cpu::cpuid(0x8000_0001, 0).edx & (1 << 26) != 0 { PageSize::Gib1 } else { PageSize::Mib2 };
        let mut frames = TableFrames::anywhere();
        let tables = Tables::new(&mut frames, largest).map_err(|_| OutOfMemory)?;
        let mut space = NestedSpace { root: tables.root(), tables: Some(tables) };
        for slot in memory.slots() {
            space.show(slot.gpa, PhysAddr(slot.physical), slot.bytes).map_err(|_| OutOfMemory)?;
        }
        Ok(space)
    }

    fn create_vcpu(
        &self,
        guest: u32,
        space: &NestedSpace,
        entry: &EntryState,
        offered: Speculation,
    ) -> Result<SvmVcpu, OutOfMemory> {
        let maps = MAPS.get().ok_or(OutOfMemory)?;
        let msr = if offered.has_ibpb { maps.msr_with_speculation } else { maps.msr };
        let tables = TableAddresses { io_map: maps.io.0, msr_map: msr.0, nested_root: space.root.0 };
        let page = VmcbPage::allocate().ok_or(OutOfMemory)?;
        let owner = Owner { vmcb: page.physical(), guest };
        let mut state = Vcpu::new(page, self.features, 1, tables, entry);
        state.switched_mut().owner = owner;
        let mut vcpu = SvmVcpu { state, extended: ExtendedState::after_reset(), switch: plain_switch() };
        self.choose_switch(&mut vcpu);
        Ok(vcpu)
    }

    fn load(&self, vcpu: &mut SvmVcpu) {
        speculation::follow_guest(vcpu.state.switched_mut().owner.guest);
        vcpu.extended.load();
        self.choose_switch(vcpu);
    }

    fn choose_switch(&self, vcpu: &mut SvmVcpu) {
        let (actions, guest) = (speculation::actions(), vcpu.state.spec_ctrl());
        let variant = Variant::choose(actions, guest, self.features.virtual_spec_ctrl, vcpu.state.counts_time());
        vcpu.state.switched_mut().spec_ctrl =
            SpecCtrl { in_guest: in_guest(actions, guest), in_host: actions.host_spec_ctrl() };
        // SAFETY: the assembly has as many entries, each a world switch, and nothing writes there.
        let switches = unsafe { &svm_switches };
        vcpu.switch = switches.get(variant.index()).copied().unwrap_or_else(plain_switch);
    }

    fn arrive(&self, vcpu: &mut SvmVcpu, tag: u32) {
        vcpu.state.arrive(tag);
    }

    fn unload(&self, vcpu: &mut SvmVcpu) {
        vcpu.state.set_xcr0(vcpu.extended.xcr0());
        vcpu.extended.save();
    }

    fn prepare(&self, index: u32) -> Result<(), Unavailable> {
        own_frames(index)?;
        MAPS.try_call_once(make_maps).map(|_| ()).map_err(|OutOfMemory| Unavailable::OutOfMemory)
    }

    fn space_root(space: &NestedSpace) -> u64 {
        space.root.0
    }

    fn save_extended(&self, vcpu: &SvmVcpu, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        vcpu.extended.save_into(into, tail)
    }

    fn restore_extended(&self, vcpu: &mut SvmVcpu, from: &Extended, tail: &[u8]) -> Result<(), StateError> {
        let xcr0 = vcpu.state.xcr0();
        vcpu.extended.restore_from(from, tail, xcr0)
    }

    #[inline]
    fn run(&self, vcpu: &mut SvmVcpu) -> Exit {
        vcpu.extended.follow(vcpu.state.xcr0());
        let guest_vmcb = vcpu.state.holder().physical();
        let host_vmcb = HOST_VMCB[PerCpu::current().index as usize].load(Ordering::Relaxed);
        // SAFETY: both blocks are whole frames, the guest's prepared by the `svm` crate with tables that show only the
        // guest's own memory; this CPU has been enabled; the assembly keeps every register that Rust expects to
        // be kept (the guest's x87, SSE and AVX registers stay loaded: the hypervisor is built without them).
        unsafe { (vcpu.switch)(vcpu.state.switched_mut(), guest_vmcb, host_vmcb) };
        let exit = vcpu.state.after_exit();
        match exit {
            // What CPUID reports depends on it.
            Exit::Cpuid => vcpu.state.set_xcr0(vcpu.extended.xcr0()),
            Exit::InterruptWindow => cpu::poll_pending_interrupts(),
            _ => {}
        }
        exit
    }
}

/// The world switch without anything beside it.
fn plain_switch() -> WorldSwitch {
    // SAFETY: as in `choose_switch`.
    unsafe { (&raw const svm_switches[0]).read() }
}

/// Does something with SVM enabled, on a CPU that has it.
pub fn with_extension<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: the register exists on every x86-64 CPU; reading it has no effect.
    let before = unsafe { cpu::read_msr(MSR_EFER) };
    // SAFETY: the caller has found SVM, not disabled; without VMRUN the bit changes nothing for the code that runs.
    unsafe { cpu::write_msr(MSR_EFER, before | EFER_SVME) };
    let result = act();
    // SAFETY: as it was; the global interrupt flag is set.
    unsafe { cpu::write_msr(MSR_EFER, before) };
    result
}

/// A CPU's area in which VMRUN saves the host, and its own VMCB.
fn own_frames(index: u32) -> Result<(u64, u64), Unavailable> {
    let areas = HOST_SAVE.get(index as usize).zip(HOST_VMCB.get(index as usize));
    let (save_area, host_vmcb) = areas.ok_or(Unavailable::OutOfMemory)?;
    Ok((own_frame(save_area)?, own_frame(host_vmcb)?))
}

/// The frame whose address a CPU keeps here, made when it first needs it.
fn own_frame(at: &AtomicU64) -> Result<u64, Unavailable> {
    let known = at.load(Ordering::Relaxed);
    if known != 0 {
        return Ok(known);
    }
    let frame = permanent_frames(4096).ok_or(Unavailable::OutOfMemory)?;
    at.store(frame.0, Ordering::Relaxed);
    Ok(frame.0)
}

/// The guest that an NMI has taken the calling CPU from. It is let in where the world switch ends: there it has
/// waited for the switch, unless it was what ended the guest's time.
pub fn guest_taken_from(frame: &TrapFrame) -> Option<u32> {
    // SAFETY: the assembly has as many entries, and nothing writes there.
    if !unsafe { &svm_switch_ends }.contains(&frame.rip) {
        return None;
    }
    // SAFETY: at this instruction RDI is the switch's first argument again, which its caller holds.
    let owner = unsafe { (&raw const (*(frame.rdi as *const Switched)).owner).read() };
    // SAFETY: the control block lives as long as the owner of the argument; the CPU writes it only within the
    // switch.
    let code = unsafe { (&raw const (*((DIRECT_MAP + owner.vmcb) as *const Vmcb)).control.exit_code).read_volatile() };
    (code == number::NMI).then_some(owner.guest)
}

/// Closes the global interrupt flag for good, so that not even an NMI comes in: for a self-test. Nothing where SVM is
/// off.
pub fn close_global_interrupts() {
    // SAFETY: the register exists on every x86-64 CPU; reading it has no effect.
    if unsafe { cpu::read_msr(MSR_EFER) } & EFER_SVME != 0 {
        // SAFETY: SVM is on, so the instruction exists; the caller wants this CPU to hear nothing any more.
        unsafe { asm!("clgi", options(nostack)) };
    }
}

fn make_maps() -> Result<Maps, OutOfMemory> {
    let io = permanent_frames(IO_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let msr = permanent_frames(MSR_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let bytes = |at: PhysAddr, count: usize| {
        // SAFETY: the frames were just allocated; no guest runs on these maps yet.
        unsafe { core::slice::from_raw_parts_mut((DIRECT_MAP + at.0) as *mut u8, count) }
    };
    fill_io_map(bytes(io, IO_MAP_BYTES));
    fill_msr_map(bytes(msr, MSR_MAP_BYTES), vm::msr::OWNED_BY_GUEST);
    let msr_with_speculation = permanent_frames(MSR_MAP_BYTES as u64).ok_or(OutOfMemory)?;
    let map = bytes(msr_with_speculation, MSR_MAP_BYTES);
    fill_msr_map(map, vm::msr::OWNED_BY_GUEST);
    let_through(map, PRED_CMD, Pass::Write);
    if speculation::assessment().is_some_and(|assessment| assessment.cpu.has_virtual_spec_ctrl()) {
        let_through(map, SPEC_CTRL, Pass::Both);
    }
    Ok(Maps { io, msr, msr_with_speculation })
}

impl NestedSpace {
    fn show(&mut self, gpa: u64, physical: PhysAddr, bytes: u64) -> Result<(), MapError> {
        let flags = Flags::WRITABLE | Flags::USER;
        match &mut self.tables {
            Some(tables) => tables.map(&mut TableFrames::anywhere(), gpa, physical, bytes, flags),
            None => Ok(()),
        }
    }
}

impl Drop for NestedSpace {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take() {
            tables.free_all(&mut TableFrames::anywhere());
        }
    }
}
