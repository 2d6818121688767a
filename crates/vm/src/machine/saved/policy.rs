// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as its guest saw it when it booted: every image shows it the same one, whatever that image would choose
//! for a new guest.

use handover::state::{self, CpuidLeaf, DeviceKind, later_policy, policy_flag};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::Full;
use crate::cpu::cpuid::CpuidTable;
use crate::cpu::kvmclock::TscScale;
use crate::devices::StateError;
use crate::devices::device::Tag;
use crate::machine::{Machine, MachineConfig};
use crate::memory::GuestMemory;

/// The most vCPUs of one guest.
const MOST_VCPUS: u32 = 4096;

impl<M: GuestMemory> Machine<M> {
    /// Saves what does not change while the guest runs: before it stops. Returns the bytes of `tail` that are in use; a
    /// page is enough.
    ///
    /// # Errors
    /// [`Full`] if `tail` is too short.
    pub fn save_policy(&self, into: &mut state::Policy, tail: &mut [u8]) -> Result<usize, Full> {
        let mut leaves = 0;
        let mut used = 0;
        let mut is_full = false;
        self.cpuid.save(|leaf| match tail.get_mut(used..used + size_of::<CpuidLeaf>()) {
            Some(place) => {
                place.copy_from_slice(leaf.as_bytes());
                (leaves, used) = (leaves + 1, used + size_of::<CpuidLeaf>());
            }
            None => is_full = true,
        });
        let (multiplier, shift) = self.scale.parts();
        *into = state::Policy {
            boot_unix_ns: self.boot_unix_ns.into(),
            vcpus: (self.mailboxes.len() as u32).into(),
            flags: if self.bus.has(Tag::only(DeviceKind::DebugExit)) { policy_flag::HAS_DEBUG_EXIT } else { 0 }.into(),
            scale_multiplier: multiplier.into(),
            scale_shift: u32::from(shift.cast_unsigned()).into(),
            leaves: u32::into(leaves),
            zero: 0.into(),
            later_flags: if self.has_misc_enable { 0 } else { later_policy::NO_MISC_ENABLE }.into(),
            later_zero: 0.into(),
        };
        if is_full { Err(Full) } else { Ok(used) }
    }

    /// A machine for a guest that another image has started, with the guest's memory. Its vCPUs and
    /// devices are as after power-on until they are restored.
    ///
    /// # Errors
    /// [`StateError`] if no machine can be so.
    pub fn adopt(memory: M, from: &state::Policy, tail: &[u8]) -> Result<Self, StateError> {
        let refused = |field, reason| StateError { field, reason };
        let vcpus = from.vcpus.get();
        if !(1..=MOST_VCPUS).contains(&vcpus) {
            return Err(refused("policy.vcpus", "none, or too many"));
        }
        if from.flags.get() & !policy_flag::ALL != 0 || from.later_flags.get() & !later_policy::ALL != 0 {
            return Err(refused("policy.flags", "a flag is unknown"));
        }
        let shift = u8::try_from(from.scale_shift.get()).ok().map(u8::cast_signed);
        let scale = shift.and_then(|shift| TscScale::from_parts(from.scale_multiplier.get(), shift));
        let leaves = <[CpuidLeaf]>::ref_from_bytes(tail).ok().filter(|all| all.len() == from.leaves.get() as usize);
        let leaves =
            leaves.ok_or(refused("policy.leaves", "their number differs from the header, or they are cut off"))?;
        let machine = Self::new(
            memory,
            MachineConfig {
                vcpus,
                cpuid: CpuidTable::restored(leaves, vcpus)?,
                scale: scale.ok_or(refused("policy.scale", "no clock runs so"))?,
                boot_unix_ns: from.boot_unix_ns.get(),
                has_debug_exit: from.flags.get() & policy_flag::HAS_DEBUG_EXIT != 0,
            },
        );
        Ok(Self { has_misc_enable: from.later_flags.get() & later_policy::NO_MISC_ENABLE == 0, ..machine })
    }
}
