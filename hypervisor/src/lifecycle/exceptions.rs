// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of exceptions, for reports.

/// An exception's short and long name.
pub fn exception_name(vector: u8) -> &'static str {
    NAMES.get(usize::from(vector)).copied().unwrap_or("?")
}

const NAMES: [&str; 22] = [
    "#DE divide error",
    "#DB debug",
    "NMI",
    "#BP breakpoint",
    "#OF overflow",
    "#BR bound range",
    "#UD invalid opcode",
    "#NM device not available",
    "#DF double fault",
    "coprocessor overrun",
    "#TS invalid TSS",
    "#NP segment not present",
    "#SS stack",
    "#GP general protection",
    "#PF page fault",
    "reserved",
    "#MF x87",
    "#AC alignment check",
    "#MC machine check",
    "#XF SIMD",
    "reserved",
    "#CP control protection",
];
