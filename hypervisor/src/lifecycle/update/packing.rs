// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests packed for the new image while they run.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use ::update::packed;
use handover::block::{BlockMut, Owner};
use handover::image::Reader;
use handover::layout::guests::{Guest as GuestRecord, MemoryUse};
use handover::layout::{Kind, padded};
use handover::schema::Described as _;
use handover::state::{self, BlockKind};
use units::PAGE_BYTES;
use zerocopy::IntoBytes as _;

use super::guest_state;
use super::hand_over_state::HandOverState;
use crate::guests::console::{INPUT_BYTES, OUTPUT_BYTES};
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::networks;
use crate::guests::slots::GUESTS;

/// Behind a block's first page: CPUID's leaves; the XSAVE area; version 3's PCI functions.
const POLICY_TAIL_BYTES: u64 = 2 * PAGE_BYTES;
const VCPU_TAIL_BYTES: u64 = PAGE_BYTES;
const VERSION_3_DEVICES_TAIL_BYTES: u64 = PAGE_BYTES;
const CONSOLE_TAIL_BYTES: u64 = (OUTPUT_BYTES + INPUT_BYTES) as u64;

impl HandOverState {
    /// Packs what all guests that run need, for a reader of this version. State that does not change while they run is
    /// saved at once.
    ///
    /// # Errors
    /// Why a guest cannot be handed over.
    pub fn pack(version: u32) -> Result<Self, String> {
        let mut this = Self::of_the_host()?;
        this.add_streams()?;
        this.ports = networks::counted::section();
        if !this.ports.is_empty() && version < Kind::Ports.since() {
            return Err(format!("the bundle has networks, which hand-over version {version} does not carry"));
        }
        for (rank, guest) in (0..).zip(GUESTS.all()) {
            guest.set_rank(rank);
            this.pack_guest(&guest, version)?;
        }
        Ok(this)
    }

    fn pack_guest(&mut self, guest: &Guest, version: u32) -> Result<(), String> {
        let run = guest.run::<Instance>();
        let shown = run.as_ref().map(|run| guest_state::run_now(run));
        let (status, before) = guest.status_and_before_pause();
        let state = guest_state::number(guest, status.state)?;
        self.guests.push(GuestRecord {
            name: padded(&guest.config.name),
            config_digest: guest.config_now().digest().into(),
            since_ns: status.since_ns.into(),
            since_before_pause_ns: before.as_ref().map_or(0, |before| before.since_ns).into(),
            nested_root: shown.map_or(0, |run| run.nested_root).into(),
            number: guest.rank().into(),
            vcpus: guest.config.vcpus.into(),
            state: (state as u32).into(),
            state_before_pause: match &before {
                Some(before) => guest_state::number(guest, before.state)? as u32,
                None => 0,
            }
            .into(),
            flags: packed::flags(shown, guest.lease().is_running(), version).into(),
            zero: 0.into(),
            throttled_since_ns: guest.health.throttled_since_ns().unwrap_or(0).into(),
            reason: padded(status.reason.as_deref().unwrap_or_default()),
        });
        match run {
            Some(run) => self.pack_run(guest, &run, version),
            None => Ok(()),
        }
    }

    fn pack_run(&mut self, guest: &Guest, run: &Arc<Instance>, version: u32) -> Result<(), String> {
        let number = guest.rank();
        let name = &guest.config.name;
        if !run.functions().is_empty() && number != guest.number {
            return Err(format!(
                "guest '{name}': it has PCI functions, and a guest before it was deleted: stop it first, or create one"
            ));
        }
        if !run.functions().is_empty() && version < state::Functions::SINCE {
            return Err(format!(
                "guest '{name}': it has PCI functions, which hand-over version {version} does not carry: stop it first"
            ));
        }
        if !run.machine.can_be_read_by(Reader::of(version)) {
            return Err(format!(
                "guest '{name}': its CPUID shows SPEC_CTRL or IBPB, which hand-over version {version} does not carry"
            ));
        }
        guest.gather_console();
        match run.machine.memory().blocks() {
            Some(_) => self.pack_on_demand(Owner { guest: number, vcpu: 0 }, run, version)?,
            None => run.machine.memory().pieces().iter().for_each(|piece| {
                self.add_memory(number, piece.physical, piece.bytes, piece.gpa, MemoryUse::Memory);
            }),
        }
        self.add_memory(number, run.space_root(), PAGE_BYTES, 0, MemoryUse::NestedTables);
        for vcpu in 0..guest.config.vcpus {
            let (cpu, own) = (guest.cpu_of(vcpu as usize), guest.own_cpu(vcpu as usize));
            self.add(BlockKind::Vcpu, Owner { guest: number, vcpu }, cpu, own, VCPU_TAIL_BYTES)?;
        }
        let home = guest.home();
        let owner = Owner { guest: number, vcpu: 0 };
        let devices = VERSION_3_DEVICES_TAIL_BYTES.max(run.machine.devices_tail_bytes() as u64);
        self.add(BlockKind::Devices, owner, home, home, devices)?;
        self.add(BlockKind::Console, owner, home, home, CONSOLE_TAIL_BYTES)?;
        self.pack_functions(owner, run, version)?;
        let policy = self.add(BlockKind::Policy, owner, home, home, POLICY_TAIL_BYTES)?;
        let too_large = || format!("guest '{}': its CPUID table does not fit into its block", guest.config.name);
        policy.with(|bytes| {
            let mut block =
                BlockMut::<state::Policy>::begin(bytes, owner, version).map_err(|error| error.to_string())?;
            let (policy, tail) = block.parts().map_err(|error| error.to_string())?;
            let used = run.machine.save_policy(policy, tail).map_err(|_| too_large())?;
            block.finish(used).map_err(|error| error.to_string())
        })
    }

    fn pack_functions(&mut self, owner: Owner, run: &Instance, version: u32) -> Result<(), String> {
        let functions = run.functions().all();
        if functions.is_empty() {
            return Ok(());
        }
        let bytes = functions.len() * size_of::<state::AssignedFunction>();
        let home = run.guest.home();
        let block = self.add(BlockKind::Functions, owner, home, home, bytes as u64)?;
        block.with(|bytes| {
            let text = |error: handover::block::BlockError| error.to_string();
            let mut block = BlockMut::<state::Functions>::begin(bytes, owner, version).map_err(text)?;
            let (head, tail) = block.parts().map_err(text)?;
            head.count = (functions.len() as u32).into();
            let places = tail.chunks_exact_mut(size_of::<state::AssignedFunction>());
            for (function, place) in functions.iter().zip(places) {
                place.copy_from_slice(function.lock().packed().as_bytes());
            }
            block.finish(functions.len() * size_of::<state::AssignedFunction>()).map_err(text)
        })
    }
}
