// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about a CPU that the table needs, as plain values.
//!
//! Bits: AMD APM vol. 3 (revision 3.36), appendix E.4, functions 8000_0008h EBX, 8000_000Ah EDX and 8000_0021h;
//! families and models of each generation: AMD's revision guides and security bulletins, as named in [`crate::table`].

/// The CPU's vendor, as far as the table has a column for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// AMD, and Hygon: its family 18h is AMD's first generation of Zen.
    Amd,
    /// Any other: there is no column.
    #[default]
    Other,
}

/// A feature that a CPU claims, and that must be tested: a hypervisor below may claim a feature that its MSRs refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Feature {
    /// MSR 48h.
    SpecCtrl = 1,
    /// MSR 49h.
    PredCmd = 2,
    /// EFER.AIBRSE.
    AutoIbrs = 4,
    /// MSR C001_1029h.
    DeCfg = 8,
    /// MSR C001_102Eh.
    BpCfg = 16,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::SpecCtrl, Self::PredCmd, Self::AutoIbrs, Self::DeCfg, Self::BpCfg];
}

/// AMD's generations of Zen; the CPUs of one share their vulnerabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Zen {
    Zen1,
    Zen2,
    Zen3,
    Zen4,
    Zen5,
}

/// A CPU, and how it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its vendor.
    pub vendor: Vendor,
    /// Family, extended family added.
    pub family: u32,
    /// Model, extended model included.
    pub model: u32,
    /// Microcode revision (MSR 8Bh); 0 if unknown.
    pub microcode: u32,
    /// A hypervisor or an emulator is below: its microcode revision has no meaning.
    pub is_virtual: bool,
    /// CPUID 8000_0008h EBX.
    pub sizes_ebx: u32,
    /// CPUID 8000_000Ah EDX.
    pub svm_edx: u32,
    /// CPUID 8000_0021h EAX.
    pub extended_eax: u32,
    /// CPUID 8000_0021h ECX.
    pub extended_ecx: u32,
    /// MSR C001_1029h exists.
    pub has_de_cfg: bool,
    /// Guests run on more than one thread of a core.
    pub shares_cores: bool,
}

/// Names of single bits.
macro_rules! bits {
    ($($(#[$attribute:meta])* $name:ident: $register:ident, $bit:literal;)*) => {$(
        $(#[$attribute])*
        pub const fn $name(&self) -> bool {
            self.$register & (1 << $bit) != 0
        }
    )*};
}

impl Cpu {
    /// The facts that `cpuid` returns: EAX, EBX, ECX and EDX of a leaf. The microcode's revision is left unknown.
    pub fn read(cpuid: impl Fn(u32) -> [u32; 4]) -> Self {
        let [_, b, c, d] = cpuid(0);
        let mut name = [0; 12];
        for (place, register) in name.chunks_exact_mut(4).zip([b, d, c]) {
            place.copy_from_slice(&register.to_le_bytes());
        }
        let vendor = match &name {
            b"AuthenticAMD" | b"HygonGenuine" => Vendor::Amd,
            _ => Vendor::Other,
        };
        let [version, _, features, _] = cpuid(1);
        let last = cpuid(0x8000_0000)[0];
        let extended = |leaf| if leaf <= last { cpuid(leaf) } else { [0; 4] };
        let (family, model) = family_and_model(version);
        Self {
            vendor,
            family,
            model,
            microcode: 0,
            is_virtual: features & (1 << 31) != 0,
            sizes_ebx: extended(0x8000_0008)[1],
            svm_edx: extended(0x8000_000a)[3],
            extended_eax: extended(0x8000_0021)[0],
            extended_ecx: extended(0x8000_0021)[2],
            // AMD, "Software techniques for managing speculation" (90343), mitigation G-2: families 10h and later but
            // 11h.
            has_de_cfg: vendor == Vendor::Amd && family >= 0x10 && family != 0x11,
            shares_cores: false,
        }
    }

    bits! {
        /// Indirect branch prediction barrier: PRED_CMD bit 0.
        has_ibpb: sizes_ebx, 12;
        /// SPEC_CTRL bit 0.
        has_ibrs: sizes_ebx, 14;
        /// IBRS may stay set: it need not be written at each entry to the host.
        has_ibrs_always_on: sizes_ebx, 16;
        /// SPEC_CTRL bit 2.
        has_ssbd: sizes_ebx, 24;
        /// Not affected by speculative store bypass.
        has_ssb_no: sizes_ebx, 26;
        /// Not affected by branch type confusion.
        has_btc_no: sizes_ebx, 29;
        /// LFENCE is always serializing.
        has_serializing_lfence: extended_eax, 2;
        /// VERW clears the buffers that transient scheduler attacks sample.
        has_verw_clear: extended_eax, 5;
        /// EFER.AIBRSE.
        has_auto_ibrs: extended_eax, 8;
        /// IBPB flushes predictions of branch types.
        has_ibpb_brtype: extended_eax, 28;
        /// Not affected by speculative return stack overflow.
        has_srso_no: extended_eax, 29;
        /// BP_CFG bit 4 reduces speculation of guests.
        has_bp_spec_reduce: extended_eax, 31;
        /// Not affected by the transient scheduler attack on the store queue.
        has_tsa_sq_no: extended_ecx, 1;
        /// Not affected by the transient scheduler attack on the L1 data cache.
        has_tsa_l1_no: extended_ecx, 2;
        /// VMRUN exchanges SPEC_CTRL (section 15.5.1 of AMD APM vol. 2, VMCB offset 6E0h).
        has_virtual_spec_ctrl: svm_edx, 20;
    }

    /// Its generation of Zen; `None` for other CPUs.
    pub const fn zen(&self) -> Option<Zen> {
        match (self.vendor, self.family, self.model) {
            (Vendor::Amd, 0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Some(Zen::Zen2),
            (Vendor::Amd, 0x17 | 0x18, _) => Some(Zen::Zen1),
            (Vendor::Amd, 0x19, 0x00..=0x0f | 0x20..=0x5f) => Some(Zen::Zen3),
            (Vendor::Amd, 0x19, _) => Some(Zen::Zen4),
            (Vendor::Amd, 0x1a, _) => Some(Zen::Zen5),
            _ => None,
        }
    }

    /// Returns whether it claims a feature.
    pub const fn has(&self, feature: Feature) -> bool {
        match feature {
            // IBRS, STIBP, SSBD or PSFD: each is a bit of SPEC_CTRL.
            Feature::SpecCtrl => self.sizes_ebx & SPEC_CTRL_FEATURES != 0,
            Feature::PredCmd => self.has_ibpb(),
            Feature::AutoIbrs => self.has_auto_ibrs(),
            Feature::DeCfg => self.has_de_cfg,
            Feature::BpCfg => self.has_bp_spec_reduce(),
        }
    }

    /// The same CPU without a feature that it claimed and that did not work.
    #[must_use]
    pub const fn without(mut self, feature: Feature) -> Self {
        match feature {
            Feature::SpecCtrl => {
                self.sizes_ebx &= !SPEC_CTRL_ALL;
                self.svm_edx &= !(1 << 20);
            }
            Feature::PredCmd => self.sizes_ebx &= !(1 << 12 | 1 << 30),
            Feature::AutoIbrs => self.extended_eax &= !(1 << 8),
            Feature::DeCfg => self.has_de_cfg = false,
            Feature::BpCfg => self.extended_eax &= !(1 << 31),
        }
        self
    }

    /// The bits of SPEC_CTRL that it takes: IBRS, STIBP, SSBD, PSFD.
    pub const fn spec_ctrl_bits(&self) -> u64 {
        let named = [(14, 0), (15, 1), (24, 2), (28, 7)];
        let (mut bits, mut next) = (0, 0);
        while next < named.len() {
            let (feature, bit) = named[next];
            if self.sizes_ebx & (1 << feature) != 0 {
                bits |= 1 << bit;
            }
            next += 1;
        }
        bits
    }

    /// Returns whether LFENCE is serializing once [`Actions::SERIALIZE_LFENCE`] has been carried out: by the CPUID bit,
    /// by DE_CFG bit 1, or because it always is (families 0Fh and 11h; AMD, "Software techniques for managing
    /// speculation", mitigation G-2).
    ///
    /// [`Actions::SERIALIZE_LFENCE`]: crate::Actions::SERIALIZE_LFENCE
    pub const fn lfence_serializes(&self) -> bool {
        let is_old = matches!(self.family, 0x0..=0xf | 0x11);
        self.has_serializing_lfence() || self.has_de_cfg || matches!(self.vendor, Vendor::Amd) && is_old
    }
}

/// 8000_0008h EBX: features that are a bit of SPEC_CTRL.
const SPEC_CTRL_FEATURES: u32 = 1 << 14 | 1 << 15 | 1 << 24 | 1 << 28;
/// The same, and the registers with more detail about them.
const SPEC_CTRL_ALL: u32 = SPEC_CTRL_FEATURES | 1 << 16 | 1 << 17 | 1 << 18 | 1 << 19;

/// Family and model of CPUID leaf 1 EAX (AMD APM vol. 3, E.3.2).
const fn family_and_model(version: u32) -> (u32, u32) {
    let (family, model) = (version >> 8 & 0xf, version >> 4 & 0xf);
    if family == 0xf { (family + (version >> 20 & 0xff), model | version >> 12 & 0xf0) } else { (family, model) }
}
