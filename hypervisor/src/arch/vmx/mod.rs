// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel VMX on the machine (Intel SDM vol. 3, chapters 24 to 33, in the numbering of the crate `vmx`). That crate
//! decides what a VMCS holds; here are the instructions, and the memory that the CPU reads. [`super::virt`] alone
//! imports this module.
//!
//! ```text
//! Vmx ──► EptSpace ──► VmxVcpu ──► switch.S
//!  │          │            ├─ VmcsPages: its VMCS, its virtual-APIC page
//!  │          └─ bitmap    └─ ExtendedState: registers that stay loaded across exits
//!  └─ operation: VMXON and VMXOFF of each CPU; host: what exits load
//! ```

mod bitmap;
mod host;
mod operation;
mod page;
mod space;
mod switch;
mod vcpu;

use alloc::vec::Vec;

use spin::Once;
use vmx::entry::Bounds;
use vmx::{Capabilities, Control, Settings, Unusable, firmware, msr};

use super::cpu;
use super::guest_memory::GuestRam;
use super::unavailable::{OutOfMemory, Unavailable};

pub use space::EptSpace;
pub use switch::interrupted_guest;
pub use vcpu::VmxVcpu;

/// Tags that a CPU has: VPID 0 is the host's (section 29.1).
const TAGS: u32 = 0xffff;

static SETTINGS: Once<Settings> = Once::new();

/// Intel VMX.
#[derive(Clone, Copy)]
pub struct Vmx {
    settings: &'static Settings,
}

impl Vmx {
    /// VMX, if this CPU has it with all that is needed.
    pub fn detect() -> Result<Self, Unavailable> {
        if cpu::cpuid(1, 0).ecx & (1 << 5) == 0 {
            return Err(Unavailable::NoExtension);
        }
        let settings = SETTINGS.try_call_once(read_settings).map_err(Unavailable::Vmx)?;
        Ok(Self { settings })
    }

    pub fn feature_names(&self) -> Vec<&'static str> {
        let has = |control| self.settings.controls.has(control);
        let ept_vpid = self.settings.capabilities().ept_vpid;
        let named = [
            (true, "ept"),
            (true, "unrestricted-guest"),
            (ept_vpid.pages_1_gib(), "ept-1gb"),
            (has(Control::EnableVpid), "vpid"),
            (has(Control::PauseLoopExiting), "ple"),
        ];
        named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect()
    }

    pub fn tags(&self) -> u32 {
        TAGS
    }

    pub fn prepare(&self, index: u32) -> Result<(), Unavailable> {
        operation::prepare(index, self.settings)?;
        bitmap::prepare().map_err(|OutOfMemory| Unavailable::OutOfMemory)
    }

    pub fn enable(&self) -> Result<(), Unavailable> {
        operation::enter(self.settings)
    }

    pub fn disable(&self) {
        operation::leave();
    }

    /// The calling CPU, from which every vCPU has departed, is another image's for a while, which may not know VMX.
    pub fn lend(&self) {
        operation::leave();
    }

    /// Reclaims the calling CPU for this image.
    pub fn reclaim(&self) -> Result<(), Unavailable> {
        operation::enter(self.settings)
    }

    /// Counters need nothing of VMX.
    pub fn while_enabled<T>(&self, act: impl FnOnce() -> T) -> T {
        act()
    }

    pub fn create_space(&self, memory: &GuestRam) -> Result<EptSpace, OutOfMemory> {
        EptSpace::new(memory, self.settings)
    }
}

/// Reads this CPU's capabilities.
fn read_settings() -> Result<Settings, Unusable> {
    // SAFETY: the register exists with VMX (section 24.7); reading it has no effect.
    firmware::enabling(unsafe { cpu::read_msr(msr::FEATURE_CONTROL) })?;
    // SAFETY: the crate asks for MSRs that exist, by what those before them say; reading them has no effect.
    let capabilities = Capabilities::read(|register| unsafe { cpu::read_msr(register) })?;
    let widths = cpu::cpuid(0x8000_0008, 0).eax;
    Settings::for_cpu(Bounds {
        capabilities,
        physical_bits: widths as u8,
        linear_bits: (widths >> 8) as u8,
        perf_global_ctrl: 0,
    })
}
