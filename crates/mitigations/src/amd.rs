// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD's column of the table: which CPUs are affected, the measures, and the name of the result.

use crate::cpu::Zen;
use crate::status::Status::{self, Mitigation, Unknown, Vulnerable};
use crate::{Actions, Cpu, microcode};

/// One vulnerability on CPUs of one vendor.
pub struct Column {
    /// Returns true if this CPU has it.
    pub affects: fn(&Cpu) -> bool,
    /// Returns the measures for a CPU that has it.
    pub needs: fn(&Cpu) -> Actions,
    /// Returns the status, with all measures that are taken on the CPU.
    pub reports: fn(&Cpu, Actions) -> Status,
}

/// No CPU of this vendor.
pub const NEVER: Column =
    Column { affects: |_| false, needs: |_| Actions::empty(), reports: |_, _| Status::NotAffected };

const NO_MICROCODE: &str = "No microcode";
const IBPB_AT_EXIT: &str = "IBPB on VMEXIT";
const SMT_VULNERABLE: &str = "SMT vulnerable";

const fn smt(cpu: &Cpu) -> &'static str {
    if cpu.shares_cores { SMT_VULNERABLE } else { "" }
}

fn ibpb_at_exit(cpu: &Cpu) -> Actions {
    if cpu.has_ibpb() { Actions::IBPB_AT_EXIT } else { Actions::empty() }
}

/// Bounds checks are compiled without barriers. That no register keeps a guest's value takes the easiest gadgets away,
/// no more.
pub const SPECTRE_V1: Column = Column {
    affects: |_| true,
    needs: |_| Actions::CLEAR_REGISTERS,
    reports: |_, _| Vulnerable("registers cleared on VMEXIT", "no barriers behind bounds checks"),
};

/// Retpolines are not used: stable rustc 1.95 warns of the target features and announces an error, and `core` comes
/// without them.
pub const SPECTRE_V2: Column = Column {
    affects: |_| true,
    needs: |cpu| {
        let between = if cpu.has_ibpb() { Actions::IBPB_BETWEEN_GUESTS } else { Actions::empty() };
        let may_stay = cpu.has_ibrs_always_on() || cpu.has_virtual_spec_ctrl();
        let stuffed = Actions::STUFF_RETURN_STACK;
        between
            | match cpu {
                // "When Automatic IBRS is enabled, the internal return address stack used for return address
                // predictions is cleared on VMEXIT" (AMD APM vol. 2, section 3.1.7).
                _ if cpu.has_auto_ibrs() => Actions::AUTO_IBRS,
                _ if cpu.has_ibrs() && may_stay => Actions::IBRS | stuffed,
                _ if cpu.has_ibrs() => Actions::IBRS | Actions::IBRS_AT_EXIT | stuffed,
                _ => ibpb_at_exit(cpu) | stuffed,
            }
    },
    reports: |cpu, actions| {
        let host = match actions {
            _ if actions.contains(Actions::AUTO_IBRS) => "Enhanced / Automatic IBRS",
            _ if actions.contains(Actions::IBPB_AT_EXIT) => IBPB_AT_EXIT,
            _ if actions.contains(Actions::IBRS) => "IBRS",
            _ => return Vulnerable("no Automatic IBRS, no IBRS, no IBPB", ""),
        };
        match (actions.contains(Actions::IBPB_BETWEEN_GUESTS), cpu.shares_cores) {
            (true, false) => Mitigation(host, "IBPB: between guests"),
            (true, true) => Mitigation(host, "IBPB: between guests; SMT vulnerable"),
            (false, _) => Vulnerable(host, "no IBPB between guests"),
        }
    },
};

/// Nothing in the host runs code of others; guests protect theirs.
pub const SPEC_STORE_BYPASS: Column = Column {
    affects: |cpu| cpu.family >= 0x15 && !cpu.has_ssb_no(),
    needs: |_| Actions::empty(),
    reports: |cpu, _| match cpu.has_ssbd() {
        true => Mitigation("Speculative Store Bypass disabled by guests that set SPEC_CTRL.SSBD", ""),
        false => Vulnerable("no SSBD for guests", ""),
    },
};

/// Branch type confusion: even a RET follows what a guest has trained.
pub const RETBLEED: Column = Column {
    affects: |cpu| matches!(cpu.family, 0x15..=0x18) && !cpu.has_btc_no(),
    needs: ibpb_at_exit,
    reports: |cpu, actions| match actions.contains(Actions::IBPB_AT_EXIT) {
        true => Mitigation(IBPB_AT_EXIT, smt(cpu)),
        false => Vulnerable("no IBPB", smt(cpu)),
    },
};

/// Speculative return stack overflow ("Inception"). Compilers' safe RET needs a nightly rustc, so it is an IBPB. On Zen
/// 1 and 2 a core with one thread is not affected, and any IBPB flushes branch types; later ones need microcode for
/// that.
pub const SPEC_RSTACK_OVERFLOW: Column = Column {
    affects: |cpu| cpu.zen().is_some() && !cpu.has_srso_no(),
    needs: |cpu| match cpu.zen() {
        Some(Zen::Zen1 | Zen::Zen2) if !cpu.shares_cores => Actions::empty(),
        Some(Zen::Zen5) if cpu.has_bp_spec_reduce() => Actions::REDUCE_SPECULATION,
        Some(Zen::Zen3 | Zen::Zen4) if !cpu.has_ibpb_brtype() => Actions::empty(),
        _ => ibpb_at_exit(cpu),
    },
    reports: |cpu, actions| match cpu.zen() {
        Some(Zen::Zen1 | Zen::Zen2) if !cpu.shares_cores => Mitigation("SMT disabled", ""),
        _ if actions.contains(Actions::REDUCE_SPECULATION) => Mitigation("Reduced Speculation", ""),
        Some(Zen::Zen3 | Zen::Zen4) if !cpu.has_ibpb_brtype() => Vulnerable(NO_MICROCODE, ""),
        _ if actions.contains(Actions::IBPB_AT_EXIT) => Mitigation(IBPB_AT_EXIT, ""),
        _ => Vulnerable(NO_MICROCODE, ""),
    },
};

/// Transient scheduler attacks on Zen 3 and Zen 4.
pub const TSA: Column = Column {
    affects: |cpu| matches!(cpu.zen(), Some(Zen::Zen3 | Zen::Zen4)) && !(cpu.has_tsa_sq_no() && cpu.has_tsa_l1_no()),
    needs: |_| Actions::CLEAR_BUFFERS,
    reports: |cpu, _| match clears_by_verw(cpu) {
        true => Mitigation("Clear CPU buffers", smt(cpu)),
        false => Vulnerable("Clear CPU buffers attempted, no microcode", ""),
    },
};

/// Returns whether VERW clears the buffers that transient scheduler attacks sample. CPUs themselves do not report it;
/// hypervisors do.
pub fn clears_by_verw(cpu: &Cpu) -> bool {
    cpu.has_verw_clear() || !cpu.is_virtual && microcode::clears_by_verw(cpu.microcode)
}

/// A guest's user mode against a monitor's user mode: the host has none.
pub const VMSCAPE: Column = Column {
    affects: |cpu| cpu.zen().is_some(),
    needs: |_| Actions::empty(),
    reports: |_, _| Mitigation("no user mode in the host", ""),
};

/// A division by zero on Zen 1 leaves the quotient before it where it can be read.
pub const DIV0: Column = Column {
    affects: |cpu| cpu.zen() == Some(Zen::Zen1),
    needs: |_| Actions::CLEAR_DIVIDER,
    reports: |cpu, _| Mitigation("Clear divider before VMRUN", smt(cpu)),
};

/// A thread that goes to sleep leaves its return predictions to the other one. The bulletin asks hypervisors to
/// intercept the instructions that put one to sleep: HLT and MWAIT always are (`svm::intercept`).
pub const SMT_RSB: Column = Column {
    affects: |cpu| matches!(cpu.zen(), Some(Zen::Zen1 | Zen::Zen2)) && cpu.shares_cores,
    needs: |_| Actions::empty(),
    reports: |_, _| Mitigation("HLT and MWAIT intercepted", ""),
};

/// Zen 2 may roll a vector register back to another's value.
pub const ZENBLEED: Column = Column {
    affects: |cpu| cpu.zen() == Some(Zen::Zen2),
    needs: |cpu| match has_zenbleed_microcode(cpu) {
        true => Actions::empty(),
        false if cpu.has_de_cfg => Actions::ZENBLEED,
        false => Actions::empty(),
    },
    reports: |cpu, actions| match actions.contains(Actions::ZENBLEED) {
        _ if has_zenbleed_microcode(cpu) => Mitigation("Microcode", ""),
        true if cpu.is_virtual => Unknown("a hypervisor is below, which may ignore DE_CFG bit 9"),
        true => Mitigation("DE_CFG bit 9", ""),
        false => Vulnerable(NO_MICROCODE, ""),
    },
};

fn has_zenbleed_microcode(cpu: &Cpu) -> bool {
    !cpu.is_virtual && microcode::fixes_zenbleed(cpu.model, cpu.microcode)
}
