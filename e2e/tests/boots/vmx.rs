// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel VMX, in Bochs, which checks the control fields, the host's state and the guest's at each VM entry; a single
//! complaint of it fails the test. The rules are those of AMD SVM there (`bochs`).

use anyhow::{Result, ensure};
use e2e::place::Kernel;
use e2e::recipe::{Recipe, tiny};
use wire::Virtualization;

use super::Rule;
use super::bochs;
use super::update::{are_stained, two_keepers};

pub const RULES: &[Rule] = &[("guests_go_on_when_the_image_is_replaced", guests_go_on)];

/// For the long suite.
pub const LONG_RULES: &[Rule] = &[
    ("linux_reaches_userspace_and_powers_off", || bochs::boot(MODEL, &[Kernel::V6_1, Kernel::V6_12], 1)),
    ("linux_of_two_cpus_reaches_userspace_and_powers_off", || bochs::boot(MODEL, &[Kernel::V6_1, Kernel::V6_12], 2)),
    ("linux_runs_on_a_newer_cpu", || bochs::boot(NEWER, &[Kernel::V6_1], 2)),
    ("two_cpus_are_updated_twenty_times", || bochs::are_updated(two_keepers()?.cpus(2).on_model(MODEL), 20)),
    ("an_image_that_fails_in_the_blackout_is_left_again", || bochs::failing_images_are_left(MODEL)),
    ("the_host_starts_its_guests_again", || bochs::the_host_restarts(MODEL)),
    ("what_hostile_guests_do_is_answered", || bochs::hostile_guests_are_answered(MODEL)),
    ("a_cpu_without_unrestricted_guests_runs_none", an_old_cpu_runs_no_guest),
];

/// Of Bochs's models: EPT, VPID, unrestricted guests.
const MODEL: &str = "broadwell_ult";
/// The same with AVX-512.
const NEWER: &str = "corei7_skylake_x";
/// VMX without unrestricted guests.
const OLD: &str = "corei5_lynnfield_750";

fn guests_go_on() -> Result<()> {
    let mut host = bochs::start(&two_keepers()?.cpus(1).on_model(MODEL))?;
    are_stained(&mut host)?;
    let info = host.client()?.info()?;
    let features = ["ept", "unrestricted-guest", "vpid"];
    let has_all = features.iter().all(|feature| info.features.iter().any(|has| has == feature));
    ensure!(info.virtualization == Virtualization::Vmx && has_all, "{info:?}");
    bochs::go_on_after(host, 1)
}

/// The host is up, and logs why no guest is.
fn an_old_cpu_runs_no_guest() -> Result<()> {
    let mut host = bochs::start(&Recipe::new().cpus(1).on_model(OLD).guest(tiny("guest", "keeper", "do=fresh,wait")?))?;
    let reason = host.failure("guest")?;
    let (control, hint) = ("unrestricted guest", "take a CPU that has it");
    ensure!(reason.contains("VMX") && reason.contains(control) && reason.contains(hint), "{reason}");
    host.logs(&[&reason])?;
    bochs::ends(host)
}
