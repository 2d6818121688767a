// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's registers, whichever extension's control block holds them. The compiler refuses a method that is missing.

use handover::state::{ExtensionKind, Registers};
use vm::devices::StateError;
use vm::vcpu::{EntryState, Event, Gpr, Refusal, Rflags, Segment, SegmentName, TableRegister, VcpuState};

use super::vcpu::{Vcpu, Vendor};

/// Methods that the vendor's vCPU answers.
macro_rules! forward {
    () => {};
    (fn $name:ident(&$this:ident $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?; $($rest:tt)*) => {
        fn $name(&$this $(, $argument: $kind)*) $(-> $result)? {
            each!(Vendor: &$this.vendor, vendors => vendors.$name($($argument),*))
        }
        forward! { $($rest)* }
    };
    (fn $name:ident(&mut $this:ident $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?; $($rest:tt)*) => {
        fn $name(&mut $this $(, $argument: $kind)*) $(-> $result)? {
            each!(Vendor: &mut $this.vendor, vendors => vendors.$name($($argument),*))
        }
        forward! { $($rest)* }
    };
}

impl VcpuState for Vcpu {
    fn erased(&mut self) -> &mut dyn VcpuState {
        self
    }

    forward! {
        fn gpr(&self, register: Gpr) -> u64;
        fn set_gpr(&mut self, register: Gpr, value: u64);
        fn rip(&self) -> u64;
        fn set_rip(&mut self, rip: u64);
        fn rflags(&self) -> Rflags;
        fn set_rflags(&mut self, rflags: Rflags);
        fn cr0(&self) -> u64;
        fn cr2(&self) -> u64;
        fn cr3(&self) -> u64;
        fn cr4(&self) -> u64;
        fn dr6(&self) -> u64;
        fn set_dr6(&mut self, value: u64);
        fn dr7(&self) -> u64;
        fn efer(&self) -> u64;
        fn set_efer(&mut self, value: u64);
        fn pat(&self) -> u64;
        fn set_pat(&mut self, value: u64);
        fn segment(&self, name: SegmentName) -> Segment;
        fn gdtr(&self) -> TableRegister;
        fn idtr(&self) -> TableRegister;
        fn kernel_gs_base(&self) -> u64;
        fn cpl(&self) -> u8;
        fn next_rip(&self) -> Option<u64>;
        fn instruction_bytes(&self) -> &[u8];
        fn inject(&mut self, event: Event);
        fn event_pending(&self) -> bool;
        fn was_delivering(&self) -> bool;
        fn can_take_interrupt(&self) -> bool;
        fn is_in_interrupt_shadow(&self) -> bool;
        fn task_priority(&self) -> u8;
        fn set_task_priority(&mut self, priority: u8);
        fn withdraw_interrupt(&mut self) -> Option<u8>;
        fn refusal(&self) -> Option<Refusal>;
        fn drop_event(&mut self) -> bool;
        fn request_interrupt_window(&mut self, wanted: bool);
        fn watch_task_priority(&mut self, wanted: bool);
        fn watch_interrupt_return(&mut self, wanted: bool);
        fn watch_faults(&mut self, wanted: bool);
        fn watch_clock_reads(&mut self, wanted: bool);
        fn count_time(&mut self, wanted: bool);
        fn count_time_for_host(&mut self, wanted: bool);
        fn guest_ticks(&self) -> u64;
        fn set_tsc_offset(&mut self, ticks: u64);
        fn reset(&mut self, entry: &EntryState);
        fn extension(&self) -> ExtensionKind;
        fn save(&self, into: &mut Registers);
        fn restore(&mut self, from: &Registers) -> Result<(), StateError>;
        fn spec_ctrl(&self) -> u64;
        fn set_spec_ctrl(&mut self, value: u64);
        fn xcr0(&self) -> u64;
        fn set_xcr0(&mut self, value: u64);
    }
}
